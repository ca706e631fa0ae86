//! Where the bytes of disks come from.

use k8s_openapi::api::core::v1;
use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, LocalObjectReference};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::open_enum::open_enum;

/// One storage source for the guest; a disk or filesystem of the same name attaches it, and one source
/// is set.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// DNS label that disks and filesystems use to refer to this volume; must be unique in the list.
    pub name: String,
    /// Disk image stored on the node itself; needs the HostDisk feature gate and ties the guest to that
    /// data.
    pub host_disk: Option<HostDisk>,
    /// Existing claim in the same namespace used directly as a disk; guest writes persist.
    pub persistent_volume_claim: Option<PersistentVolumeClaimVolumeSource>,
    /// Generated cloud-init seed disk in NoCloud format.
    pub cloud_init_no_cloud: Option<CloudInitNoCloudSource>,
    /// Generated cloud-init seed disk in the OpenStack config drive format.
    pub cloud_init_config_drive: Option<CloudInitConfigDriveSource>,
    /// CD-ROM carrying a Windows answer file for unattended setup.
    pub sysprep: Option<SysprepSource>,
    /// Disk image shipped in a container image; guest writes are lost when the VMI stops.
    pub container_disk: Option<ContainerDiskSource>,
    /// Copy-on-write layer over a claim; the claim stays untouched and guest writes are lost at stop.
    pub ephemeral: Option<EphemeralVolumeSource>,
    /// Blank scratch disk that keeps its data across guest reboots but not past the life of the VMI.
    pub empty_disk: Option<EmptyDiskSource>,
    /// DataVolume whose claim becomes the disk; the guest waits until the import has finished.
    pub data_volume: Option<DataVolumeRef>,
    /// ConfigMap exposed as a small ISO disk, or as a directory when used with a virtiofs filesystem.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub config_map: Option<ConfigMapVolumeSource>,
    /// Secret exposed as a small ISO disk, or as a directory when used with a virtiofs filesystem.
    pub secret: Option<SecretVolumeSource>,
    /// Metadata of the VMI exposed to the guest as files.
    #[serde(rename = "downwardAPI")]
    pub downward_api: Option<DownwardApiVolumeSource>,
    /// Service account token, CA and namespace exposed to the guest as files; at most one per VMI.
    pub service_account: Option<ServiceAccountVolumeSource>,
    /// Small read-only disk through which the guest reads metrics about its host.
    pub downward_metrics: Option<DownwardMetricsVolumeSource>,
    /// Claim that receives a dump of guest memory; normally added by the memory dump subresource.
    pub memory_dump: Option<MemoryDumpVolumeSource>,
    /// Directory already mounted in the launcher container, shared with the guest over virtiofs.
    pub container_path: Option<ContainerPathVolumeSource>,
}

impl Volume {
    /// Whether what is on it outlives the machine, so that there is something to back up.
    pub fn outlives_machine(&self) -> bool {
        self.persistent_volume_claim.is_some() || self.data_volume.is_some() || self.host_disk.is_some()
    }
}

/// Disk image file on the node's filesystem.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostDisk {
    /// Absolute path of the image file on the node.
    pub path: String,
    /// `Disk` requires the file to exist; `DiskOrCreate` makes a sparse one when it is missing.
    pub type_: HostDiskType,
    /// Size of the image when it has to be created, such as 10Gi; refused with type `Disk`.
    pub capacity: Option<Quantity>,
    /// True if every node sees the same file at this path, which makes live migration possible.
    pub shared: Option<bool>,
}

/// Reference to an existing claim in the namespace of the VMI.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolumeClaimVolumeSource {
    /// True if the volume may be attached to and detached from a running guest; false if unset.
    pub hotpluggable: Option<bool>,
    /// Name of the PersistentVolumeClaim, in the same namespace.
    pub claim_name: String,
    /// Mount the claim read-only; false if unset.
    pub read_only: Option<bool>,
}

/// User and network data for a NoCloud seed disk; at least one of the two is needed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudInitNoCloudSource {
    /// Secret whose `userdata` key holds the user data; use it for passwords or anything above 2048 bytes.
    pub secret_ref: Option<LocalObjectReference>,
    /// User data in base64, at most 2048 bytes decoded; excludes the other user data fields.
    pub user_data_base64: Option<String>,
    /// User data as plain text, at most 2048 bytes; excludes the other user data fields.
    pub user_data: Option<String>,
    /// Secret whose `networkdata` key holds the network configuration, with no 2048-byte limit.
    pub network_data_secret_ref: Option<LocalObjectReference>,
    /// Network configuration in base64, at most 2048 bytes decoded; excludes the other network data fields.
    pub network_data_base64: Option<String>,
    /// Network configuration as plain text, at most 2048 bytes; excludes the other network data fields.
    pub network_data: Option<String>,
}

/// User and network data for a config drive seed disk; at least one of the two is needed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudInitConfigDriveSource {
    /// Secret whose `userdata` key holds the user data; use it for passwords or anything above 2048 bytes.
    pub secret_ref: Option<LocalObjectReference>,
    /// User data in base64, at most 2048 bytes decoded; excludes the other user data fields.
    pub user_data_base64: Option<String>,
    /// User data as plain text, at most 2048 bytes; excludes the other user data fields.
    pub user_data: Option<String>,
    /// Secret whose `networkdata` key holds the network configuration, with no 2048-byte limit.
    pub network_data_secret_ref: Option<LocalObjectReference>,
    /// Network configuration in base64, at most 2048 bytes decoded; excludes the other network data fields.
    pub network_data_base64: Option<String>,
    /// Network configuration as plain text, at most 2048 bytes; excludes the other network data fields.
    pub network_data: Option<String>,
}

/// Where the Windows answer file comes from; set either the Secret or the ConfigMap.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SysprepSource {
    /// Secret with an `autounattend.xml` or `unattend.xml` key; preferable when the file holds passwords.
    pub secret: Option<LocalObjectReference>,
    /// ConfigMap with an `autounattend.xml` or `unattend.xml` key.
    pub config_map: Option<LocalObjectReference>,
}

/// Disk image packed in a container image and pulled from a registry.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerDiskSource {
    /// Container image reference, for instance quay.io/containerdisks/fedora:latest.
    pub image: String,
    /// Name of a registry credentials Secret in the same namespace, for private images.
    pub image_pull_secret: Option<String>,
    /// Path of the disk file inside the image; if unset, the single file under /disk is used.
    pub path: Option<String>,
    /// Always, Never or IfNotPresent; Always for the latest tag and IfNotPresent otherwise if unset.
    #[schemars(extend("x-strict" = { "enum": ["Always", "IfNotPresent", "Never"] }))]
    pub image_pull_policy: Option<String>,
}

/// Throwaway overlay on top of a claim.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EphemeralVolumeSource {
    /// Claim that serves as the read-only base image under the overlay.
    pub persistent_volume_claim: Option<v1::PersistentVolumeClaimVolumeSource>,
}

/// Blank sparse disk that lives as long as the VMI.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmptyDiskSource {
    /// Size the guest sees, such as 2Gi; space on the node is used only as data is written.
    pub capacity: Quantity,
}

/// Reference to a DataVolume in the namespace of the VMI.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeRef {
    /// Name of the DataVolume, which is also the name of the claim behind it.
    pub name: String,
    /// True if the volume may be attached to and detached from a running guest; false if unset.
    pub hotpluggable: Option<bool>,
}

/// Reference to a ConfigMap in the namespace of the VMI.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapVolumeSource {
    /// True to start the guest even when the ConfigMap is missing; false if unset.
    pub optional: Option<bool>,
    /// Label of the ISO the guest sees; cfgdata if unset.
    pub volume_label: Option<String>,
    /// Name of the ConfigMap; each of its keys becomes a file.
    #[schemars(extend("default" = ""))]
    pub name: Option<String>,
}

/// Reference to a Secret in the namespace of the VMI.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretVolumeSource {
    /// Name of the Secret; each of its keys becomes a file.
    pub secret_name: Option<String>,
    /// True to start the guest even when the Secret is missing; false if unset.
    pub optional: Option<bool>,
    /// Label of the ISO the guest sees; cfgdata if unset.
    pub volume_label: Option<String>,
}

/// Files made from the metadata of the VMI, such as labels and annotations.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DownwardApiVolumeSource {
    /// The files to create, each with its path and the field it is filled from.
    pub fields: Option<Vec<DownwardAPIVolumeFile>>,
    /// Label of the ISO the guest sees; cfgdata if unset.
    pub volume_label: Option<String>,
}

/// Service account whose credentials the guest can read.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccountVolumeSource {
    /// Name of a ServiceAccount in the same namespace; the launcher pod runs under it too.
    pub service_account_name: Option<String>,
}

/// Host metrics disk; it takes no settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DownwardMetricsVolumeSource {}

/// Claim that guest memory is dumped to.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryDumpVolumeSource {
    /// True if the claim may be attached to and detached from a running guest; false if unset.
    pub hotpluggable: Option<bool>,
    /// Name of the PersistentVolumeClaim, which must have room for the guest memory.
    pub claim_name: String,
    /// Mount the claim read-only; leave it false, since the dump has to be written.
    pub read_only: Option<bool>,
}

/// Launcher container directory shared with the guest; needs a virtiofs filesystem of the same name.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerPathVolumeSource {
    /// Absolute path of an existing mount in the compute container, without `..`; at most 4096 characters.
    #[schemars(extend("maxLength" = 4096, "x-kubernetes-validations" = [{"rule": r#"self.startsWith('/')"#, "message": "the path must be absolute"}, {"rule": r#"!self.contains('..')"#, "message": "the path must not contain .."}]))]
    pub path: String,
    /// Always true, which is also the default; false is refused because writing is not supported.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": r#"self == true"#, "message": "only read-only is supported"}], "default" = true))]
    pub read_only: Option<bool>,
}

/// Claim attached to the launcher pod for KubeVirt's own use; the guest does not see it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UtilityVolume {
    /// Name of the entry, unique among the utility volumes and the ordinary volumes.
    pub name: String,
    /// What the volume is for: `MemoryDump` or `Backup`.
    pub type_: Option<UtilityVolumeType>,
    /// Name of the PersistentVolumeClaim, in the same namespace.
    pub claim_name: String,
    /// Mount the claim read-only; false if unset.
    pub read_only: Option<bool>,
}

open_enum! {
    /// Whether a missing image file is created (`DiskOrCreate`) or is an error (`Disk`).
    pub enum HostDiskType {
        DiskOrCreate = "DiskOrCreate",
        Disk = "Disk",
    }
}

open_enum! {
    /// Purpose of a utility volume: `MemoryDump` or `Backup`.
    pub enum UtilityVolumeType {
        MemoryDump = "MemoryDump",
        Backup = "Backup",
    }
}
