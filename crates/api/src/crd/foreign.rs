//! What the generated schemas of Kubernetes' own types leave out.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Kubernetes' pattern for quantities.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Types that are replaced as a whole when they are applied.
const ATOMIC_MAPS: &[&str] = &[
    "api.core.v1.LocalObjectReference",
    "api.core.v1.NodeSelector",
    "api.core.v1.NodeSelectorTerm",
    "api.core.v1.ObjectFieldSelector",
    "api.core.v1.ResourceFieldSelector",
    "api.core.v1.TypedLocalObjectReference",
    "apimachinery.pkg.apis.meta.v1.LabelSelector",
];

/// Lists that are replaced as a whole when they are applied.
const ATOMIC_LISTS: &[(&str, &[&str])] = &[
    ("api.core.v1.ExecAction", &["command"]),
    ("api.core.v1.HTTPGetAction", &["httpHeaders"]),
    ("api.core.v1.NodeAffinity", &["preferredDuringSchedulingIgnoredDuringExecution"]),
    ("api.core.v1.NodeSelector", &["nodeSelectorTerms"]),
    ("api.core.v1.NodeSelectorRequirement", &["values"]),
    ("api.core.v1.NodeSelectorTerm", &["matchExpressions", "matchFields"]),
    ("api.core.v1.PersistentVolumeClaimSpec", &["accessModes"]),
    ("api.core.v1.PodAffinity", AFFINITY_TERMS),
    ("api.core.v1.PodAntiAffinity", AFFINITY_TERMS),
    ("api.core.v1.PodAffinityTerm", &["matchLabelKeys", "mismatchLabelKeys", "namespaces"]),
    ("api.core.v1.PodDNSConfig", &["nameservers", "options", "searches"]),
    ("api.core.v1.TopologySpreadConstraint", &["matchLabelKeys"]),
    ("apimachinery.pkg.apis.meta.v1.LabelSelector", &["matchExpressions"]),
    ("apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement", &["values"]),
];

const AFFINITY_TERMS: &[&str] =
    &["preferredDuringSchedulingIgnoredDuringExecution", "requiredDuringSchedulingIgnoredDuringExecution"];

/// Words of closed sets, which a CRD does not list but the original's webhooks hold objects to.
const WORDS: &[(&str, &str, &[&str])] = &[
    ("api.core.v1.HTTPGetAction", "scheme", &["HTTP", "HTTPS"]),
    (
        "api.core.v1.NodeSelectorRequirement",
        "operator",
        &["DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"],
    ),
    ("api.core.v1.PersistentVolumeClaimSpec", "volumeMode", &["Block", "Filesystem", "FromStorageProfile"]),
    ("api.core.v1.Toleration", "effect", &["NoExecute", "NoSchedule", "PreferNoSchedule"]),
    ("api.core.v1.Toleration", "operator", &["Equal", "Exists"]),
    ("api.core.v1.TopologySpreadConstraint", "nodeAffinityPolicy", &["Honor", "Ignore"]),
    ("api.core.v1.TopologySpreadConstraint", "nodeTaintsPolicy", &["Honor", "Ignore"]),
    ("api.core.v1.TopologySpreadConstraint", "whenUnsatisfiable", &["DoNotSchedule", "ScheduleAnyway"]),
];

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Adds to a definition of Kubernetes what its generated schema does not say.
pub(super) fn adjust(name: &str, schema: &mut Value) {
    let name = name.strip_prefix("io.k8s.").unwrap_or(name);
    if ATOMIC_MAPS.contains(&name) {
        schema["x-kubernetes-map-type"] = json!("atomic");
    }
    for (_, fields) in ATOMIC_LISTS.iter().filter(|(type_, _)| *type_ == name) {
        for field in *fields {
            schema["properties"][field]["x-kubernetes-list-type"] = json!("atomic");
        }
    }
    for (_, field, words) in WORDS.iter().filter(|(type_, ..)| *type_ == name) {
        schema["properties"][field]["x-strict"] = json!({ "enum": words });
    }
    match name {
        "api.core.v1.PersistentVolumeClaimSpec" => {
            let mode = json!({ "type": "string", "enum": ACCESS_MODES });
            schema["properties"]["accessModes"]["x-strict"] = json!({ "items": mode });
        }
        "api.core.v1.LocalObjectReference" => {
            schema["properties"]["name"]["default"] = json!("");
            schema["required"] = Value::Null;
        }
        "apimachinery.pkg.apis.meta.v1.Condition" => {
            schema["properties"]["status"]["enum"] = json!(["True", "False", "Unknown"]);
        }
        "apimachinery.pkg.api.resource.Quantity" => {
            *schema = int_or_string();
            schema["pattern"] = json!(QUANTITY);
        }
        "apimachinery.pkg.util.intstr.IntOrString" => *schema = int_or_string(),
        _ => {}
    }
    // An object inside of another keeps metadata that this version does not know.
    if name == "apimachinery.pkg.apis.meta.v1.ObjectMeta" {
        *schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    }
}

fn int_or_string() -> Value {
    json!({ "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] })
}

/// Conditions whose every field is held to Kubernetes' conventions.
pub(crate) fn checked_conditions(generator: &mut SchemaGenerator) -> Schema {
    let condition = generator.subschema_for::<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition>();
    let condition = condition.to_value();
    json_schema!({ "type": "array", "items": {
        "$ref": condition["$ref"],
        "properties": {
            "lastTransitionTime": { "type": "string", "format": "date-time" },
            "message": { "type": "string", "maxLength": 32768 },
            "observedGeneration": { "type": "integer", "format": "int64", "minimum": 0 },
            "reason": {
                "type": "string",
                "minLength": 1,
                "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
            "type": {
                "type": "string",
                "maxLength": 316,
                "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
            },
        },
    } })
}
