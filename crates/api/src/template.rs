//! Templates of virtual machines and requests to make them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::LocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::kind::kind;

kind! {
    /// Request to turn an existing virtual machine into a template.
    VirtualMachineTemplateRequest: TEMPLATE, "v1alpha1", "virtualmachinetemplaterequests", NamespaceResourceScope;
    spec: VirtualMachineTemplateRequestSpec,
    status: VirtualMachineTemplateRequestStatus
}

kind! {
    /// A parameterized virtual machine from which users create their own.
    VirtualMachineTemplate: TEMPLATE, "v1alpha1", "virtualmachinetemplates", NamespaceResourceScope;
    spec: VirtualMachineTemplateSpec,
    status: VirtualMachineTemplateStatus
}

/// A virtual machine with placeholders and the parameters that fill them.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineTemplateSpec {
    /// VirtualMachine manifest with `${NAME}` placeholders; a literal namespace in it is ignored.
    #[schemars(extend("type" = "object", "x-kubernetes-preserve-unknown-fields" = true))]
    pub virtual_machine: serde_json::Value,
    /// Values to substitute for placeholders when the template is processed.
    pub parameters: Option<Vec<Parameter>>,
    /// Note shown to users on how to use the created machine.
    pub message: Option<String>,
}

/// A named value substituted into a template.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Parameter {
    /// Identifier used in the manifest as `${NAME}`.
    pub name: String,
    /// Friendlier label for user interfaces.
    pub display_name: Option<String>,
    /// What the parameter is for.
    pub description: Option<String>,
    /// Default value; when set, nothing is generated.
    pub value: Option<String>,
    /// Set to `expression`, the only generator, to make a random value from the pattern in `from`.
    #[schemars(extend("enum" = ["expression"]))]
    pub generate: Option<String>,
    /// Pattern for the generator: a bracketed character range followed by a length in braces.
    pub from: Option<String>,
    /// Processing fails if the parameter ends up with no given or generated value; false if unset.
    pub required: Option<bool>,
}

/// Observed state of a template.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineTemplateStatus {
    /// `Ready` is True when the template can be processed.
    pub conditions: Option<Vec<v1::Condition>>,
}

/// Source machine and resulting template; immutable once created.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineTemplateRequestSpec {
    /// The virtual machine to make a template of.
    pub virtual_machine_ref: VirtualMachineReference,
    /// Name of the new template; the request's own name if unset.
    pub template_name: Option<String>,
    /// Labels for the new template; keys under `template.kubevirt.io/` are refused.
    pub template_labels: Option<BTreeMap<String, String>>,
    /// Seconds to keep a successful request before deleting it; kept if unset, failed ones always stay.
    pub ttl_seconds_after_finished: Option<i32>,
}

/// Points at a virtual machine in any namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineReference {
    /// Namespace of the virtual machine.
    pub namespace: String,
    /// Name of the virtual machine.
    pub name: String,
}

/// Observed state of a template request.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineTemplateRequestStatus {
    /// `Ready` is True once the template exists; `Progressing` tells whether work is under way.
    pub conditions: Option<Vec<v1::Condition>>,
    /// The template that was created, in the request's namespace.
    #[schemars(extend("x-kubernetes-map-type" = null))]
    pub template_ref: Option<LocalObjectReference>,
}
