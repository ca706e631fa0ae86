//! Whether pods with a placement could be made at all: node selectors, affinities and tolerations.

use k8s_openapi::api::core::v1::Toleration;
use kubevirt_api::kubevirt::install::NodePlacement;

use crate::validate::vmi_spec::domain::placement::affinity;
use crate::validate::{labels, names};
use crate::{Path, Problems};

/// The first reason why no pod could be placed so, if there is one.
pub fn problem(placement: &NodePlacement) -> Option<String> {
    let mut problems = Problems::default();
    let selector = Path::new("nodeSelector");
    for (key, value) in placement.node_selector.iter().flatten() {
        labels::check_key(&selector, key, &mut problems);
        labels::check_value(&selector, value, &mut problems);
    }
    let tolerations = Path::new("tolerations");
    for (index, toleration) in placement.tolerations.iter().flatten().enumerate() {
        if let Some(problem) = toleration_problem(toleration) {
            problems.invalid(&tolerations.index(index), problem);
        }
    }
    if let Some(affinity) = &placement.affinity {
        affinity::check(&Path::new("affinity"), affinity, &mut problems);
    }
    problems.iter().next().map(ToString::to_string)
}

fn toleration_problem(toleration: &Toleration) -> Option<String> {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let (key, value) = (text(&toleration.key), text(&toleration.value));
    let (operator, effect) = (text(&toleration.operator), text(&toleration.effect));
    if !key.is_empty() && !names::is_label_key(&key) {
        return Some(format!("{key:?} is not the key of a taint"));
    }
    match operator.as_str() {
        "Exists" if !value.is_empty() => return Some("Exists takes no value".into()),
        "" | "Equal" if key.is_empty() => return Some("without a key the operator must be Exists".into()),
        "" | "Equal" if !names::is_label_value(&value) => {
            return Some(format!("{value:?} is not the value of a taint"));
        }
        "Exists" | "" | "Equal" => {}
        other => return Some(format!("{other:?} is not an operator of tolerations; use Equal or Exists")),
    }
    if !["", "NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect.as_str()) {
        return Some(format!("{effect:?} is not an effect of taints"));
    }
    let timed = toleration.toleration_seconds.is_some();
    (timed && effect != "NoExecute").then(|| "tolerationSeconds needs the effect NoExecute".into())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::read;

    #[test]
    fn placements_that_pods_can_and_cannot_have() {
        let node = |value: Value| json!({ "affinity": { "nodeAffinity": value } });
        let term = |value: Value| {
            node(
                json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [value] } }),
            )
        };
        let wanted = |value: Value| term(json!({ "matchExpressions": [value] }));
        let tolerated = |value: Value| json!({ "tolerations": [value] });
        let pods = |value: Value| json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [value] } } });
        let near = |weight: i32| {
            json!({ "affinity": { "podAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
                { "weight": weight, "podAffinityTerm": { "topologyKey": "zone" } },
            ] } } })
        };
        let good = [
            json!({}),
            json!({ "nodeSelector": { "kubernetes.io/os": "linux", "a": "" } }),
            tolerated(json!({ "operator": "Exists" })),
            tolerated(json!({ "key": "a", "value": "b", "effect": "NoSchedule" })),
            tolerated(
                json!({ "key": "a", "operator": "Equal", "effect": "NoExecute", "tolerationSeconds": 5 }),
            ),
            wanted(json!({ "key": "a", "operator": "In", "values": ["b"] })),
            wanted(json!({ "key": "a", "operator": "Gt", "values": ["5"] })),
            wanted(json!({ "key": "a", "operator": "Exists" })),
            term(json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n"] }] })),
            pods(
                json!({ "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "a": "b" } } }),
            ),
            near(1),
            near(100),
        ];
        let bad = [
            json!({ "nodeSelector": { "a b": "c" } }),
            json!({ "nodeSelector": { "a": "b c" } }),
            tolerated(json!({ "operator": "Exists", "value": "b" })),
            tolerated(json!({ "value": "b" })),
            tolerated(json!({ "key": "a", "operator": "In" })),
            tolerated(json!({ "key": "-a" })),
            tolerated(json!({ "key": "a", "value": "b c" })),
            tolerated(json!({ "key": "a", "effect": "Never" })),
            tolerated(json!({ "key": "a", "effect": "NoSchedule", "tolerationSeconds": 5 })),
            node(json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [] } })),
            node(
                json!({ "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 0, "preference": {} }] }),
            ),
            wanted(json!({ "key": "a", "operator": "In" })),
            wanted(json!({ "key": "a", "operator": "Exists", "values": ["b"] })),
            wanted(json!({ "key": "a", "operator": "Lt", "values": ["1", "2"] })),
            wanted(json!({ "key": "a", "operator": "Near" })),
            wanted(json!({ "key": "", "operator": "Exists" })),
            term(json!({ "matchFields": [{ "key": "metadata.uid", "operator": "In", "values": ["n"] }] })),
            term(
                json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n", "m"] }] }),
            ),
            pods(json!({ "topologyKey": "" })),
            pods(json!({ "topologyKey": "a", "labelSelector": { "matchLabels": { "-": "b" } } })),
            near(0),
            near(101),
        ];
        for placement in good {
            assert_eq!(problem(&read(placement.clone())), None, "{placement}");
        }
        for placement in bad {
            assert!(problem(&read(placement.clone())).is_some(), "{placement}");
        }
    }
}
