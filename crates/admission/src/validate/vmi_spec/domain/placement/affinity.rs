//! Affinity to nodes and to other pods. The paths leave `affinity` out, as users of the original know them.

use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm,
    WeightedPodAffinityTerm,
};

use crate::validate::labels;
use crate::validate::names::{DNS_LABEL, DNS_SUBDOMAIN, is_dns_label, is_dns_subdomain};
use crate::{Path, Problems};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Everything that is wrong.
pub(crate) fn check(path: &Path<'_>, affinity: &Affinity, problems: &mut Problems) {
    if let Some(node) = &affinity.node_affinity {
        check_node(&path.at("nodeAffinity"), node, problems);
    }
    if let Some(pod) = &affinity.pod_affinity {
        let required = pod.required_during_scheduling_ignored_during_execution.as_deref();
        let preferred = pod.preferred_during_scheduling_ignored_during_execution.as_deref();
        check_pod(&path.at("podAffinity"), required, preferred, problems);
    }
    if let Some(pod) = &affinity.pod_anti_affinity {
        let required = pod.required_during_scheduling_ignored_during_execution.as_deref();
        let preferred = pod.preferred_during_scheduling_ignored_during_execution.as_deref();
        check_pod(&path.at("podAntiAffinity"), required, preferred, problems);
    }
}

fn check_node(field: &Path<'_>, affinity: &NodeAffinity, problems: &mut Problems) {
    if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
        let required_field = field.at(REQUIRED);
        let terms = required_field.at("nodeSelectorTerms");
        if required.node_selector_terms.is_empty() {
            problems.invalid(&terms, "at least one term is needed");
        }
        for (index, term) in required.node_selector_terms.iter().enumerate() {
            check_term(&terms.index(index), term, problems);
        }
    }
    let preferred = field.at(PREFERRED);
    let terms = affinity.preferred_during_scheduling_ignored_during_execution.iter().flatten();
    for (index, term) in terms.enumerate() {
        let field = preferred.index(index);
        check_weight(&field, term.weight, problems);
        check_term(&field.at("preference"), &term.preference, problems);
    }
}

fn check_term(field: &Path<'_>, term: &NodeSelectorTerm, problems: &mut Problems) {
    let expressions = field.at("matchExpressions");
    for (index, requirement) in term.match_expressions.iter().flatten().enumerate() {
        check_label(&expressions.index(index), requirement, problems);
    }
    let fields = field.at("matchFields");
    for (index, requirement) in term.match_fields.iter().flatten().enumerate() {
        check_field(&fields.index(index), requirement, problems);
    }
}

fn check_label(field: &Path<'_>, requirement: &NodeSelectorRequirement, problems: &mut Problems) {
    let values = requirement.values.as_deref().unwrap_or_default();
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => {
            problems.invalid(&field.at("values"), "In and NotIn need at least one value");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            problems.invalid(&field.at("values"), "Exists and DoesNotExist take no values");
        }
        "Gt" | "Lt" if values.len() != 1 => {
            problems.invalid(&field.at("values"), "Gt and Lt need exactly one value");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => {
            let message = format!("{other:?} is not In, NotIn, Exists, DoesNotExist, Gt or Lt");
            problems.invalid(&field.at("operator"), message);
        }
    }
    labels::check_key(&field.at("key"), &requirement.key, problems);
}

fn check_field(field: &Path<'_>, requirement: &NodeSelectorRequirement, problems: &mut Problems) {
    let values = requirement.values.as_deref().unwrap_or_default();
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.len() != 1 => {
            problems.invalid(&field.at("values"), "a field is matched with exactly one value");
        }
        "In" | "NotIn" => {}
        other => problems.invalid(&field.at("operator"), format!("{other:?} is not In or NotIn")),
    }
    if requirement.key != "metadata.name" {
        let message = format!("nodes are matched by metadata.name, not by {:?}", requirement.key);
        problems.invalid(&field.at("key"), message);
        return;
    }
    for (index, name) in values.iter().enumerate().filter(|(_, name)| !is_dns_subdomain(name)) {
        let message = format!("{name:?} cannot name a node: {DNS_SUBDOMAIN}");
        problems.invalid(&field.at("values").index(index), message);
    }
}

fn check_pod(
    field: &Path<'_>,
    required: Option<&[PodAffinityTerm]>,
    preferred: Option<&[WeightedPodAffinityTerm]>,
    problems: &mut Problems,
) {
    let required_field = field.at(REQUIRED);
    for (index, term) in required.unwrap_or_default().iter().enumerate() {
        check_pod_term(&required_field.index(index), term, problems);
    }
    let preferred_field = field.at(PREFERRED);
    for (index, term) in preferred.unwrap_or_default().iter().enumerate() {
        let field = preferred_field.index(index);
        check_weight(&field, term.weight, problems);
        check_pod_term(&field.at("podAffinityTerm"), &term.pod_affinity_term, problems);
    }
}

fn check_pod_term(field: &Path<'_>, term: &PodAffinityTerm, problems: &mut Problems) {
    for (name, selector) in
        [("labelSelector", &term.label_selector), ("namespaceSelector", &term.namespace_selector)]
    {
        if let Some(selector) = selector {
            labels::check(&field.at(name), selector, problems);
        }
    }
    for name in term.namespaces.iter().flatten().filter(|name| !is_dns_label(name)) {
        problems.invalid(&field.at("namespace"), format!("{name:?} cannot name a namespace: {DNS_LABEL}"));
    }
    labels::check_key(&field.at("topologyKey"), &term.topology_key, problems);
}

fn check_weight(field: &Path<'_>, weight: i32, problems: &mut Problems) {
    if !(1..=100).contains(&weight) {
        problems.invalid(&field.at("weight"), format!("a weight is from 1 to 100, not {weight}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::super::testing::run;
    use super::{PREFERRED, REQUIRED};
    use crate::testing::World;

    fn node(requirement: Value, kind: &str) -> Value {
        json!({ "affinity": { "nodeAffinity": { REQUIRED: { "nodeSelectorTerms": [{ kind: [requirement] }] } } } })
    }

    fn label(operator: &str, values: &[&str]) -> Value {
        node(json!({ "key": "zone", "operator": operator, "values": values }), "matchExpressions")
    }

    fn field(key: &str, operator: &str, values: &[&str]) -> Value {
        node(json!({ "key": key, "operator": operator, "values": values }), "matchFields")
    }

    #[test]
    fn affinity_to_nodes() {
        const TERMS: &str =
            "spec.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
        let at = |rest: &str| format!("{TERMS}[0].{rest}");
        let preferred = |weight: i32, term: Value| json!({ "affinity": { "nodeAffinity": { PREFERRED: [{ "weight": weight, "preference": term }] } } });
        let weight = "spec.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight";
        let values = at("matchExpressions[0].values");
        let operator = at("matchExpressions[0].operator");
        let field_values = at("matchFields[0].values");
        let bad_key = node(json!({ "key": "not a key", "operator": "Exists" }), "matchExpressions");
        run(
            &World::default(),
            &[
                ("in", label("In", &["a"]), &[]),
                ("not in", label("NotIn", &["a", "b"]), &[]),
                ("exists", label("Exists", &[]), &[]),
                ("does not exist", label("DoesNotExist", &[]), &[]),
                ("greater", label("Gt", &["1"]), &[]),
                ("less", label("Lt", &["1"]), &[]),
                ("in nothing", label("In", &[]), &[&values]),
                ("exists with value", label("Exists", &["a"]), &[&values]),
                ("greater than nothing", label("Gt", &[]), &[&values]),
                ("less than two", label("Lt", &["1", "2"]), &[&values]),
                ("unknown operator", label("Near", &["a"]), &[&operator]),
                ("bad key", bad_key, &[&at("matchExpressions[0].key")]),
                ("name", field("metadata.name", "In", &["node-1"]), &[]),
                ("two names", field("metadata.name", "NotIn", &["node-1", "node-2"]), &[&field_values]),
                ("no name", field("metadata.name", "In", &[]), &[&field_values]),
                ("bad name", field("metadata.name", "In", &["Node_1"]), &[&at("matchFields[0].values[0]")]),
                ("name exists", field("metadata.name", "Exists", &[]), &[&at("matchFields[0].operator")]),
                ("other field", field("metadata.uid", "In", &["a"]), &[&at("matchFields[0].key")]),
                (
                    "no terms",
                    json!({ "affinity": { "nodeAffinity": { REQUIRED: { "nodeSelectorTerms": [] } } } }),
                    &[TERMS],
                ),
                ("preferred", preferred(1, json!({})), &[]),
                ("most preferred", preferred(100, json!({})), &[]),
                ("no weight", preferred(0, json!({})), &[weight]),
                ("heavy", preferred(101, json!({})), &[weight]),
                (
                    "bad preference",
                    preferred(1, json!({ "matchExpressions": [{ "key": "a", "operator": "In" }] })),
                    &[
                        "spec.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values",
                    ],
                ),
            ],
        );
    }

    #[test]
    fn affinity_to_pods() {
        for kind in ["podAffinity", "podAntiAffinity"] {
            let required = |term: Value| json!({ "affinity": { kind: { REQUIRED: [term] } } });
            let preferred = |weight: i32, term: Value| json!({ "affinity": { kind: { PREFERRED: [{ "weight": weight, "podAffinityTerm": term }] } } });
            let at = |rest: &str| format!("spec.{kind}.{REQUIRED}[0].{rest}");
            let preferred_at = |rest: &str| format!("spec.{kind}.{PREFERRED}[0].{rest}");
            let expression = |operator: &str, values: &[&str]| {
                required(json!({ "topologyKey": "zone", "labelSelector": {
                    "matchExpressions": [{ "key": "app", "operator": operator, "values": values }],
                } }))
            };
            let labels = |which: &str, key: &str, value: &str| {
                required(json!({ "topologyKey": "zone", which: { "matchLabels": { key: value } } }))
            };
            let values = at("labelSelector.matchExpressions[0].values");
            let match_labels = at("labelSelector.matchLabels");
            let topology = at("topologyKey");
            run(
                &World::default(),
                &[
                    ("term", required(json!({ "topologyKey": "kubernetes.io/hostname" })), &[]),
                    ("no topology", required(json!({ "topologyKey": "" })), &[&topology]),
                    ("bad topology", required(json!({ "topologyKey": "a b" })), &[&topology]),
                    ("labels", labels("labelSelector", "app", "web"), &[]),
                    ("bad label key", labels("labelSelector", "a b", "web"), &[&match_labels]),
                    ("bad label value", labels("labelSelector", "app", "-web"), &[&match_labels]),
                    (
                        "bad namespace label",
                        labels("namespaceSelector", "a b", "web"),
                        &[&at("namespaceSelector.matchLabels")],
                    ),
                    ("in", expression("In", &["a"]), &[]),
                    ("exists", expression("Exists", &[]), &[]),
                    ("in nothing", expression("NotIn", &[]), &[&values]),
                    ("exists with value", expression("DoesNotExist", &["a"]), &[&values]),
                    (
                        "greater",
                        expression("Gt", &["1"]),
                        &[&at("labelSelector.matchExpressions[0].operator")],
                    ),
                    (
                        "bad value",
                        expression("In", &["a", "b c"]),
                        &[&at("labelSelector.matchExpressions[0].values[1]")],
                    ),
                    ("namespaces", required(json!({ "topologyKey": "zone", "namespaces": ["a", "b"] })), &[]),
                    (
                        "bad namespace",
                        required(json!({ "topologyKey": "zone", "namespaces": ["A"] })),
                        &[&at("namespace")],
                    ),
                    ("preferred", preferred(50, json!({ "topologyKey": "zone" })), &[]),
                    ("no weight", preferred(0, json!({ "topologyKey": "zone" })), &[&preferred_at("weight")]),
                    (
                        "preferred nowhere",
                        preferred(1, json!({ "topologyKey": "" })),
                        &[&preferred_at("podAffinityTerm.topologyKey")],
                    ),
                ],
            );
        }
    }
}
