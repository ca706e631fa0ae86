//! Whether pods with a placement could be made at all: node selectors, affinities and tolerations.

use k8s_openapi::api::core::v1::{
    Affinity, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm, Toleration,
};
use kubevirt_api::kubevirt::install::NodePlacement;

use crate::validate::{labels, names};

type Outcome = Result<(), String>;

/// The first reason why no pod could be placed so, if there is one.
pub fn problem(placement: &NodePlacement) -> Option<String> {
    check(placement).err()
}

fn check(placement: &NodePlacement) -> Outcome {
    for (name, value) in placement.node_selector.iter().flatten() {
        check_label(name, Some(value))?;
    }
    placement.tolerations.iter().flatten().try_for_each(check_toleration)?;
    placement.affinity.as_ref().map_or(Ok(()), check_affinity)
}

fn require(holds: bool, problem: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(problem()) }
}

fn check_label(name: &str, value: Option<&str>) -> Outcome {
    require(names::is_label_key(name), || format!("{name:?} is not the name of a label"))?;
    require(value.is_none_or(names::is_label_value), || format!("{value:?} is not the value of a label"))
}

fn check_toleration(toleration: &Toleration) -> Outcome {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let (key, value) = (text(&toleration.key), text(&toleration.value));
    let (operator, effect) = (text(&toleration.operator), text(&toleration.effect));
    require(key.is_empty() || names::is_label_key(&key), || format!("{key:?} is not the key of a taint"))?;
    match operator.as_str() {
        "Exists" => require(value.is_empty(), || "a toleration with Exists takes no value".into())?,
        "" | "Equal" => {
            require(!key.is_empty(), || "a toleration without a key must have the operator Exists".into())?;
            require(names::is_label_value(&value), || format!("{value:?} is not the value of a taint"))?;
        }
        other => return Err(format!("{other:?} is not an operator of tolerations; use Equal or Exists")),
    }
    let known = ["", "NoSchedule", "PreferNoSchedule", "NoExecute"];
    require(known.contains(&effect.as_str()), || format!("{effect:?} is not an effect of taints"))?;
    let timed = toleration.toleration_seconds.is_some();
    require(!timed || effect == "NoExecute", || "tolerationSeconds needs the effect NoExecute".into())
}

fn check_affinity(affinity: &Affinity) -> Outcome {
    if let Some(nodes) = &affinity.node_affinity {
        if let Some(required) = &nodes.required_during_scheduling_ignored_during_execution {
            require(!required.node_selector_terms.is_empty(), || {
                "a required node affinity needs a term".into()
            })?;
            required.node_selector_terms.iter().try_for_each(check_term)?;
        }
        for preferred in nodes.preferred_during_scheduling_ignored_during_execution.iter().flatten() {
            check_weight(preferred.weight)?;
            check_term(&preferred.preference)?;
        }
    }
    let near = affinity.pod_affinity.as_ref().map(|pods| {
        (
            &pods.required_during_scheduling_ignored_during_execution,
            &pods.preferred_during_scheduling_ignored_during_execution,
        )
    });
    let apart = affinity.pod_anti_affinity.as_ref().map(|pods| {
        (
            &pods.required_during_scheduling_ignored_during_execution,
            &pods.preferred_during_scheduling_ignored_during_execution,
        )
    });
    for (required, preferred) in near.into_iter().chain(apart) {
        required.iter().flatten().try_for_each(check_pod_term)?;
        for term in preferred.iter().flatten() {
            check_weight(term.weight)?;
            check_pod_term(&term.pod_affinity_term)?;
        }
    }
    Ok(())
}

fn check_weight(weight: i32) -> Outcome {
    require((1..=100).contains(&weight), || format!("the weight {weight} is not from 1 to 100"))
}

fn check_term(term: &NodeSelectorTerm) -> Outcome {
    term.match_expressions.iter().flatten().try_for_each(check_requirement)?;
    for field in term.match_fields.iter().flatten() {
        let known = field.key == "metadata.name" && ["In", "NotIn"].contains(&field.operator.as_str());
        let one = field.values.as_ref().is_some_and(|values| values.len() == 1);
        require(known && one, || {
            "matchFields takes only metadata.name with In or NotIn and one value".into()
        })?;
    }
    Ok(())
}

fn check_requirement(wanted: &NodeSelectorRequirement) -> Outcome {
    let (key, operator) = (&wanted.key, wanted.operator.as_str());
    let values = wanted.values.as_deref().unwrap_or_default();
    check_label(key, None)?;
    match operator {
        "In" | "NotIn" => require(!values.is_empty(), || format!("{operator} for {key:?} needs values")),
        "Exists" | "DoesNotExist" => {
            require(values.is_empty(), || format!("{operator} for {key:?} takes no values"))
        }
        "Gt" | "Lt" => require(values.len() == 1, || format!("{operator} for {key:?} takes one value")),
        other => Err(format!("{other:?} is not an operator of node selectors")),
    }
}

fn check_pod_term(term: &PodAffinityTerm) -> Outcome {
    require(!term.topology_key.is_empty(), || "a pod affinity needs a topologyKey".into())?;
    check_label(&term.topology_key, None)?;
    let selectors = [&term.label_selector, &term.namespace_selector];
    selectors.into_iter().flatten().try_for_each(|selector| labels::problem(selector).map_or(Ok(()), Err))
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
