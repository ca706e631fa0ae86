//! What holds the handlers to their own nodes, and to the labels and annotations that are theirs.

use kubevirt_api::names::components::policies::{NODE_RESTRICTION, NODE_RESTRICTION_BINDING};
use kubevirt_api::names::external::kubernetes::NODE_OF_TOKEN;
use kubevirt_api::names::{accounts, annotations, labels};
use serde_json::{Value, json};

use super::accounts::user;
use super::metadata;
use crate::config::InstallConfig;

/// Labels that a handler may write on its node.
pub const NODE_LABELS: [&str; 12] = [
    labels::NODE_SCHEDULABLE,
    labels::CPU_MANAGER,
    labels::DEPRECATED_CPU_MANAGER,
    labels::OBSOLETE_HOST_MODEL,
    labels::REALTIME,
    labels::SEV,
    labels::SEV_ES,
    labels::SEV_SNP,
    labels::SECURE_EXECUTION,
    labels::TDX,
    labels::KSM_ENABLED,
    labels::TSC_FREQUENCY,
];

/// Starts of labels that a handler may write on its node.
pub const NODE_LABEL_PREFIXES: [&str; 11] = [
    labels::CPU_FEATURE_PREFIX,
    labels::CPU_MODEL_PREFIX,
    labels::CPU_MODEL_MIGRATION_PREFIX,
    labels::CPU_TIMER_PREFIX,
    labels::CPU_VENDOR_PREFIX,
    labels::TSC_FREQUENCY_SCHEDULING_PREFIX,
    labels::HYPERV_PREFIX,
    labels::MACHINE_TYPE_PREFIX,
    labels::HOST_MODEL_CPU_PREFIX,
    labels::HOST_MODEL_REQUIRED_FEATURES_PREFIX,
    labels::VM_ARCH_PREFIX,
];

/// Annotations that a handler may write on its node.
pub const NODE_ANNOTATIONS: [&str; 2] = [annotations::NODE_HEARTBEAT, annotations::KSM_HANDLER_MANAGED];

/// The policy and what puts it into force.
pub fn all(config: &InstallConfig) -> Vec<Value> {
    vec![node_restriction(config), binding()]
}

fn node_restriction(config: &InstallConfig) -> Value {
    let nodes = json!([{
        "apiGroups": [""], "apiVersions": ["*"], "resources": ["nodes", "nodes/*"], "operations": ["UPDATE"]
    }]);
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata::global(NODE_RESTRICTION),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": nodes },
            "matchConditions": [{
                "name": "is-a-handler",
                "expression": format!("request.userInfo.username == '{}'", user(config, accounts::HANDLER)),
            }],
            "variables": variables(),
            "validations": validations(),
        },
    })
}

fn variables() -> Value {
    let of = |object: &str, field: &str| format!("{object}.metadata.?{field}.orValue({{}})");
    json!([
        { "name": "oldLabels", "expression": of("oldObject", "labels") },
        { "name": "newLabels", "expression": of("object", "labels") },
        { "name": "oldAnnotations", "expression": of("oldObject", "annotations") },
        { "name": "newAnnotations", "expression": of("object", "annotations") },
        { "name": "labels", "expression": list(&NODE_LABELS) },
        { "name": "labelPrefixes", "expression": list(&NODE_LABEL_PREFIXES) },
        { "name": "annotations", "expression": list(&NODE_ANNOTATIONS) },
        { "name": "nodes", "expression": format!("request.userInfo.extra[?'{NODE_OF_TOKEN}'].orValue([])") },
    ])
}

fn validations() -> Value {
    let label = "(k in variables.labels || variables.labelPrefixes.exists(prefix, k.startsWith(prefix)))";
    let annotation = "k in variables.annotations";
    let kept = "['labels', 'annotations', 'managedFields', 'resourceVersion']";
    let metadata = format!(
        "object.metadata.all(k, k in {kept} || (k in oldObject.metadata && object.metadata[k] == oldObject.metadata[k])) \
         && oldObject.metadata.all(k, k in {kept} || k in object.metadata)"
    );
    json!([
        rule("object.metadata.name in variables.nodes", "this user cannot modify this node"),
        rule("object.spec == oldObject.spec", "this user cannot modify spec of node"),
        rule(&metadata, "this user can only change allowed metadata fields"),
        rule(&same_keys("Labels", label), "this user cannot add/delete non kubevirt-owned labels"),
        rule(&same_values("Labels", label), "this user cannot update non kubevirt-owned labels"),
        rule(
            &same_keys("Annotations", annotation),
            "this user cannot add/delete non kubevirt-owned annotations"
        ),
        rule(
            &same_values("Annotations", annotation),
            "this user cannot update non kubevirt-owned annotations"
        ),
    ])
}

/// There is what there was, but for keys that are the handler's.
fn same_keys(map: &str, is_ours: &str) -> String {
    let (old, new) = (format!("variables.old{map}"), format!("variables.new{map}"));
    format!("{new}.all(k, {is_ours} || k in {old}) && {old}.all(k, {is_ours} || k in {new})")
}

/// Everything is as it was, but for keys that are the handler's and such as come or go.
fn same_values(map: &str, is_ours: &str) -> String {
    let (old, new) = (format!("variables.old{map}"), format!("variables.new{map}"));
    format!("{new}.all(k, {is_ours} || !(k in {old}) || {new}[k] == {old}[k])")
}

fn rule(expression: &str, message: &str) -> Value {
    json!({ "expression": expression, "message": message, "reason": "Forbidden" })
}

/// A list of texts, none of which has a quote.
fn list(texts: &[&str]) -> String {
    format!("['{}']", texts.join("', '"))
}

fn binding() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata::global(NODE_RESTRICTION_BINDING),
        "spec": { "policyName": NODE_RESTRICTION, "validationActions": ["Deny"] },
    })
}
