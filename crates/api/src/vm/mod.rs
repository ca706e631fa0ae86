//! A virtual machine that outlives its instances: `VirtualMachine`.

pub mod status;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::data_volume::DataVolumeSpec;
use crate::kind::kind;
use crate::open_enum::open_enum;
use crate::vm::status::VirtualMachineStatus;
use crate::vmi::VmiTemplate;

kind! {
    /// A machine that keeps its definition and disks while stopped, and runs as a VirtualMachineInstance.
    VirtualMachine: KUBEVIRT, "v1", "virtualmachines", NamespaceResourceScope;
    spec: VirtualMachineSpec,
    status: VirtualMachineStatus
}

/// Desired definition and run state; set exactly one of runStrategy and the older running.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineSpec {
    /// Deprecated, use runStrategy: true acts like Always and false like Halted.
    pub running: Option<bool>,
    /// When to run: Always, Halted, Manual, RerunOnFailure, Once or WaitAsReceiver; excludes running.
    pub run_strategy: Option<RunStrategy>,
    /// Instance type that provides CPU, memory and related sizing; the template must not set these too.
    pub instancetype: Option<InstancetypeMatcher>,
    /// Preference that supplies defaults for whatever the template leaves open.
    pub preference: Option<PreferenceMatcher>,
    /// The instance to create at each start; most edits take effect only after a restart.
    pub template: VmiTemplate,
    /// DataVolumes created along with the machine and deleted with it; the template refers to them by name.
    #[serde(default, deserialize_with = "crate::null::empty_items")]
    pub data_volume_templates: Option<Vec<DataVolumeTemplate>>,
    /// On volume changes, `Replacement` swaps them at restart, `Migration` copies live; Replacement if
    /// unset.
    pub update_volumes_strategy: Option<UpdateVolumesStrategy>,
}

/// Chooses an instance type by name, or infers it from a volume.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstancetypeMatcher {
    /// Name of the instance type; leave out when inferring it from a volume.
    pub name: Option<String>,
    /// VirtualMachineInstancetype or VirtualMachineClusterInstancetype; the cluster-wide kind if unset.
    pub kind: Option<String>,
    /// ControllerRevision with the exact copy to use, so edits of the original do not apply.
    pub revision_name: Option<String>,
    /// Volume whose backing object is labelled with the instance type; cleared once resolved.
    pub infer_from_volume: Option<String>,
    /// If inference fails, `Reject` the machine or `Ignore` the instance type; Reject if unset.
    pub infer_from_volume_failure_policy: Option<InferFromVolumeFailurePolicy>,
}

/// Chooses a preference by name, or infers it from a volume.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreferenceMatcher {
    /// Name of the preference; leave out when inferring it from a volume.
    pub name: Option<String>,
    /// VirtualMachinePreference or VirtualMachineClusterPreference; the cluster-wide kind if unset.
    pub kind: Option<String>,
    /// ControllerRevision with the exact copy to use, so edits of the original do not apply.
    pub revision_name: Option<String>,
    /// Volume whose backing object is labelled with the preference; cleared once resolved.
    pub infer_from_volume: Option<String>,
    /// If inference fails, `Reject` the machine or `Ignore` the preference; Reject if unset.
    pub infer_from_volume_failure_policy: Option<InferFromVolumeFailurePolicy>,
}

/// A DataVolume to create for the machine, named by its metadata.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("nullable" = true))]
pub struct DataVolumeTemplate {
    /// The group and version of the API, as a DataVolume has them; optional.
    pub api_version: Option<String>,
    /// What the object is: `DataVolume`; optional.
    pub kind: Option<String>,
    /// Labels, annotations and the rest of the standard metadata.
    #[schemars(extend("nullable" = true))]
    pub metadata: Option<ObjectMeta>,
    /// Where the data comes from and what storage to request, as in a DataVolume.
    pub spec: DataVolumeSpec,
    /// Unused, accepted only so that old manifests still load.
    #[schemars(extend("nullable" = true))]
    pub status: Option<DataVolumeTemplateStatus>,
}

/// Empty placeholder kept for old manifests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeTemplateStatus {}

open_enum! {
    /// When a machine should run, and whether it is restarted after it stops.
    pub enum RunStrategy {
        Always = "Always",
        Halted = "Halted",
        Manual = "Manual",
        RerunOnFailure = "RerunOnFailure",
        Once = "Once",
        WaitAsReceiver = "WaitAsReceiver",
    }
}

open_enum! {
    /// What a failed inference does: `Reject` the machine or `Ignore` the reference.
    pub enum InferFromVolumeFailurePolicy {
        Reject = "Reject",
        Ignore = "Ignore",
    }
}

open_enum! {
    /// How changed volumes are applied: `Replacement` at restart or `Migration` of the data.
    pub enum UpdateVolumesStrategy {
        Migration = "Migration",
        Replacement = "Replacement",
    }
}
