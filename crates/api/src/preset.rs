//! Defaults merged into matching instances: `VirtualMachineInstancePreset`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::kind::kind;
use crate::vmi::domain::DomainSpec;

kind! {
    /// Deprecated: settings merged into new VMIs that match a label selector; prefer instance types.
    VirtualMachineInstancePreset: KUBEVIRT, "v1", "virtualmachineinstancepresets", NamespaceResourceScope;
    spec: VirtualMachineInstancePresetSpec
}

/// Selection and content of a preset.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineInstancePresetSpec {
    /// Labels of the VMIs it applies to, in the same namespace and only at creation.
    pub selector: LabelSelector,
    /// Virtual hardware settings to merge in; sections the VMI already sets keep their own values.
    pub domain: Option<DomainSpec>,
}
