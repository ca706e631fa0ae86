//! What runs on a node changes only the instances of that node.

use kubevirt_api::names::accounts;
use kubevirt_api::names::external::kubernetes::NODE_OF_TOKEN;
use kubevirt_api::vmi::VirtualMachineInstance;

use crate::{Context, Gate, Path, Problems};

/// Everything that is wrong.
pub(super) fn check(
    cx: &Context<'_>,
    new: &VirtualMachineInstance,
    old: &VirtualMachineInstance,
    problems: &mut Problems,
) {
    if !cx.by_account(accounts::HANDLER) || !cx.config.enabled(Gate::NodeRestriction) {
        return;
    }
    let Some(node) = cx.request.user.extra.get(NODE_OF_TOKEN).and_then(|values| values.first()) else {
        problems.invalid(&Path::WHOLE, "the token of virt-handler does not say on which node it is");
        return;
    };
    let source = old.status.as_ref().and_then(|status| status.node_name.as_deref()).unwrap_or_default();
    let target = target(old);
    if node != source && (target.is_empty() || node != target) {
        let message = format!(
            "Node restriction, virt-handler is only allowed to modify VMIs it owns: this one is on {source:?}, \
             and not on {node}"
        );
        problems.invalid(&Path::WHOLE, message);
    } else if target.is_empty() && !self::target(new).is_empty() {
        problems.invalid(&Path::WHOLE, "virt-handler does not choose where an instance migrates to");
    }
}

/// The node that an instance is moving to, if any.
fn target(vmi: &VirtualMachineInstance) -> &str {
    let state = vmi.status.as_ref().and_then(|status| status.migration_state.as_ref());
    state.and_then(|state| state.target_node.as_deref()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use kubevirt_api::vmi::VirtualMachineInstance;
    use serde_json::json;

    use super::super::tests::base;
    use crate::testing::{World, assert_fields, patched, read};

    #[test]
    fn a_handler_changes_only_instances_of_its_node() {
        let vmi = |source: &str, target: &str| -> VirtualMachineInstance {
            read(patched(
                &base(),
                &json!({ "status": { "nodeName": source, "migrationState": { "targetNode": target } } }),
            ))
        };
        let handler = |node: Option<&str>| {
            let mut world = World::default().updating().by("system:serviceaccount:kubevirt:kubevirt-handler");
            let extra =
                node.map(|node| ("authentication.kubernetes.io/node-name".to_owned(), vec![node.to_owned()]));
            world.request.user.extra = extra.into_iter().collect();
            world
        };
        for (name, world, old, new, expected) in [
            ("own", handler(Some("a")), vmi("a", ""), vmi("a", ""), &[][..]),
            ("other", handler(Some("b")), vmi("a", ""), vmi("a", ""), &[""]),
            ("target", handler(Some("b")), vmi("a", "b"), vmi("a", "b"), &[]),
            ("neither", handler(Some("c")), vmi("a", "b"), vmi("a", "b"), &[""]),
            ("unscheduled", handler(Some("a")), vmi("", ""), vmi("", ""), &[""]),
            ("no node", handler(None), vmi("a", ""), vmi("a", ""), &[""]),
            ("sets target", handler(Some("a")), vmi("a", ""), vmi("a", "b"), &[""]),
            ("changes target", handler(Some("a")), vmi("a", "b"), vmi("a", "c"), &[]),
            ("controller", World::default().updating().by_controller(), vmi("a", ""), vmi("a", "b"), &[]),
            ("user", World::default().updating().by("x:kubevirt-handler"), vmi("a", ""), vmi("a", "b"), &[]),
        ] {
            let problems = world.run(|cx| super::super::check(cx, &new, Some(&old)));
            assert_fields(name, &problems, expected);
        }
        let mut off = handler(Some("b"));
        off.config = World::default()
            .with_configuration(
                json!({ "developerConfiguration": { "disabledFeatureGates": ["NodeRestriction"] } }),
            )
            .config;
        let problems = off.run(|cx| super::super::check(cx, &vmi("a", ""), Some(&vmi("a", ""))));
        assert_fields("gate off", &problems, &[]);
    }
}
