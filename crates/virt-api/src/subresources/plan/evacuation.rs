//! Calling off that an instance leaves its node.

use k8s_openapi::api::core::v1::Node;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::json;

use super::name_of;
use crate::subresources::change::{Change, Target};
use crate::subresources::failure::{About, Failure};
use crate::subresources::options::EvacuateCancelOptions;
use crate::subresources::seen::Seen;

const PATH: &str = "/status/evacuationNodeName";

/// The node that the instance is to leave, or else the one that it is on.
pub fn node(vmi: &VirtualMachineInstance) -> &str {
    let status = vmi.status.as_ref();
    let leaves =
        status.and_then(|status| status.evacuation_node_name.as_deref()).filter(|name| !name.is_empty());
    leaves.or(status.and_then(|status| status.node_name.as_deref())).unwrap_or_default()
}

/// Whether its node lets it stay: a node that is drained by its taint would have it leave again.
pub fn check(node: &Node, drain_taint: &str) -> Result<(), Failure> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    if taints.iter().any(|taint| taint.key == drain_taint && taint.effect == "NoSchedule") {
        return Err(Failure::bad_request(format!(
            "Node {:?} has NodeDrainTaintKey \"{drain_taint}:NoSchedule\"",
            name_of(node)
        )));
    }
    Ok(())
}

/// Calls it off; nothing if the instance is not to leave. A request that names no node, as those of KubeVirt's virtctl,
/// means whichever it is.
pub fn cancel(
    vmi: &Seen<VirtualMachineInstance>,
    options: &EvacuateCancelOptions,
) -> Result<Option<Change>, Failure> {
    let leaves = vmi.at(PATH).as_str().unwrap_or_default();
    if leaves.is_empty() {
        return Ok(None);
    }
    let meant = options.evacuation_node_name.as_str();
    if !meant.is_empty() && meant != leaves {
        let why = format!("evacuationNodeName is {leaves:?} and not {meant:?}");
        return Err(Failure::conflict(About::Instance, name_of(&**vmi), why));
    }
    Ok(Some(Change::of(Target::Instance).test(PATH, &json!(leaves)).remove(PATH)))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::testing::seen;
    use super::*;

    fn vmi(leaves: Value) -> Seen<VirtualMachineInstance> {
        seen(
            json!({ "spec": { "domain": { "devices": {} } }, "status": { "nodeName": "here", "evacuationNodeName": leaves } }),
        )
    }

    fn options(node: &str) -> EvacuateCancelOptions {
        EvacuateCancelOptions { evacuation_node_name: node.into(), ..EvacuateCancelOptions::default() }
    }

    #[test]
    fn only_the_evacuation_that_is_meant() {
        assert_eq!(cancel(&vmi(Value::Null), &options("")), Ok(None));
        assert_eq!(cancel(&vmi(json!("here")), &options("there")).unwrap_err().code, 409);
        for meant in ["here", ""] {
            let change = cancel(&vmi(json!("here")), &options(meant)).unwrap().unwrap();
            let test = json!({ "op": "test", "path": PATH, "value": "here" });
            assert_eq!((change.operations.len(), &change.operations[0]), (2, &test), "{meant:?}");
        }
        assert_eq!(node(&vmi(json!("there"))), "there");
        assert_eq!(node(&vmi(json!(""))), "here");
    }

    #[test]
    fn not_on_a_node_that_is_drained_by_its_taint() {
        let node = |key: &str, effect: &str| -> Node {
            let taints = json!([{ "key": key, "effect": effect }]);
            serde_json::from_value(json!({ "metadata": { "name": "n" }, "spec": { "taints": taints } }))
                .unwrap()
        };
        let failure = check(&node("kubevirt.io/drain", "NoSchedule"), "kubevirt.io/drain").unwrap_err();
        assert_eq!(failure.message, "Node \"n\" has NodeDrainTaintKey \"kubevirt.io/drain:NoSchedule\"");
        assert!(check(&node("kubevirt.io/drain", "NoExecute"), "kubevirt.io/drain").is_ok());
        assert!(check(&node("other", "NoSchedule"), "kubevirt.io/drain").is_ok());
        assert!(check(&Node::default(), "kubevirt.io/drain").is_ok());
    }
}
