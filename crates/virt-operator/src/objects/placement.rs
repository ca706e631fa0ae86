//! On which nodes the components run.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, Toleration};
use kubevirt_api::kubevirt::install::NodePlacement;
use kubevirt_api::names::external::kubernetes::{HOSTNAME, NODE_ROLE_CONTROL_PLANE, OS};
use kubevirt_api::names::labels;
use serde_json::{Value, json};

/// Puts a pod of the control plane onto nodes: apart from its like, and rather where the cluster's own control
/// plane is, unless the installation says something of nodes.
pub(super) fn infra(pod: &mut Value, component: &str, wanted: &NodePlacement) {
    let asked = wanted.affinity.clone().unwrap_or_default();
    let mut affinity = json!({ "podAntiAffinity": apart(component) });
    let mut tolerations = vec![critical()];
    if asked.node_affinity.is_none() && wanted.node_selector.is_none() {
        affinity["nodeAffinity"] = on_control_plane();
        tolerations.push(json!({
            "key": NODE_ROLE_CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"
        }));
    }
    place(pod, wanted, Some(affinity), tolerations);
}

/// Puts a pod onto every node that is wanted.
pub(super) fn workloads(pod: &mut Value, wanted: &NodePlacement) {
    place(pod, wanted, None, vec![critical()]);
}

fn place(pod: &mut Value, wanted: &NodePlacement, affinity: Option<Value>, mut tolerations: Vec<Value>) {
    let mut selector: BTreeMap<String, String> = wanted.node_selector.clone().unwrap_or_default();
    selector.entry(OS.to_owned()).or_insert_with(|| "linux".to_owned());
    pod["nodeSelector"] = json!(selector);
    let asked: &[Toleration] = wanted.tolerations.as_deref().unwrap_or_default();
    tolerations.extend(asked.iter().map(|toleration| json!(toleration)));
    pod["tolerations"] = json!(tolerations);
    let mut together = affinity.unwrap_or(Value::Null);
    if let Some(asked) = &wanted.affinity {
        merge(&mut together, affinity_value(asked));
    }
    if !together.is_null() {
        pod["affinity"] = together;
    }
}

fn affinity_value(affinity: &Affinity) -> Value {
    json!(affinity)
}

/// Adds the terms of one affinity to another's.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) => into.extend(from),
        (into, from) => *into = from,
    }
}

fn critical() -> Value {
    json!({ "key": "CriticalAddonsOnly", "operator": "Exists" })
}

/// Not on the node of another of its kind, where there is a choice.
fn apart(component: &str) -> Value {
    let expression = json!({ "key": labels::APP, "operator": "In", "values": [component] });
    json!({ "preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 1,
        "podAffinityTerm": {
            "topologyKey": HOSTNAME,
            "labelSelector": { "matchExpressions": [expression] },
        },
    }] })
}

/// Wanted, not required: many clusters hide their control plane.
fn on_control_plane() -> Value {
    let expression = json!({ "key": NODE_ROLE_CONTROL_PLANE, "operator": "Exists" });
    json!({ "preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 100,
        "preference": { "matchExpressions": [expression] },
    }] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(value: Value) -> NodePlacement {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_wanted_adds_to_what_is_usual() {
        let mut pod = json!({});
        let term = json!({ "weight": 7, "podAffinityTerm": { "topologyKey": "zone" } });
        infra(
            &mut pod,
            "virt-api",
            &wanted(json!({
                "nodeSelector": { "a": "b" },
                "tolerations": [{ "key": "own", "operator": "Exists" }],
                "affinity": {
                    "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [term] },
                },
            })),
        );
        assert_eq!(pod["nodeSelector"], json!({ "a": "b", OS: "linux" }));
        assert_eq!(pod["tolerations"], json!([critical(), { "key": "own", "operator": "Exists" }]));
        let terms = &pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
        assert_eq!((terms[0]["weight"].as_i64(), terms[1]["weight"].as_i64()), (Some(1), Some(7)));
        assert_eq!(pod["affinity"]["nodeAffinity"], Value::Null, "a selector says enough of nodes");
    }

    #[test]
    fn without_a_wish_the_control_plane_is_preferred() {
        let mut pod = json!({});
        infra(&mut pod, "virt-api", &NodePlacement::default());
        assert_eq!(pod["affinity"]["nodeAffinity"], on_control_plane());
        assert_eq!(pod["tolerations"][1]["key"], NODE_ROLE_CONTROL_PLANE);
        let mut pod = json!({});
        workloads(&mut pod, &NodePlacement::default());
        assert_eq!(pod["affinity"], Value::Null);
    }
}
