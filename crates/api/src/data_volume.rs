//! What the Containerized Data Importer offers and machines use: data volumes, and how storage is set up.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaimSpec, TypedLocalObjectReference, TypedObjectReference, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::condition::Condition;
use crate::kind::kind;
use crate::open_enum::open_enum;

kind! {
    /// A claim that the importer makes and fills; known to clusters that have it installed.
    DataVolume: CDI, "v1beta1", "datavolumes", NamespaceResourceScope;
    spec: DataVolumeSpec,
    status: DataVolumeStatus
}

kind! {
    /// How the importer is set up; there is one, and it is called `config`.
    CDIConfig: CDI, "v1beta1", "cdiconfigs", ClusterResourceScope;
    spec: CdiConfigSpec,
    status: CdiConfigStatus
}

kind! {
    /// What is known of a storage class; it has the name of the class.
    StorageProfile: CDI, "v1beta1", "storageprofiles", ClusterResourceScope;
    spec: StorageProfileSpec,
    status: StorageProfileStatus
}

/// What the administrator sets; nothing that machines need.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CdiConfigSpec {}

/// What the importer reckons with.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CdiConfigStatus {
    /// Share of a file system that is not for disk images.
    pub filesystem_overhead: Option<FilesystemOverhead>,
}

/// Share of a file system that is not for disk images, such as `0.055`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilesystemOverhead {
    /// For all storage classes that are not listed.
    pub global: Option<String>,
    /// By storage class.
    pub storage_class: Option<BTreeMap<String, String>>,
}

/// What the administrator sets; nothing that machines need.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageProfileSpec {}

/// What claims of the class can be.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageProfileStatus {
    /// Combinations of modes, the preferred first.
    pub claim_property_sets: Option<Vec<ClaimPropertySet>>,
}

/// Access modes that go with a volume mode.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimPropertySet {
    /// Access modes, the preferred first.
    pub access_modes: Option<Vec<String>>,
    /// `Block` or `Filesystem`.
    pub volume_mode: Option<String>,
}

/// How far the importer has come, as far as machines need to know.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeStatus {
    /// Name of the claim that is filled.
    pub claim_name: Option<String>,
    /// How far it is, in one word.
    pub phase: Option<DataVolumePhase>,
    /// How much has been copied, in percent.
    pub progress: Option<String>,
    /// How often the importer had to start again.
    pub restart_count: Option<i32>,
    /// Whether it is bound, running and ready.
    pub conditions: Option<Vec<Condition>>,
}

/// What a DataVolume should be filled with and the claim that will hold it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeSpec {
    /// Where the disk contents come from; leave out when `sourceRef` is used instead.
    pub source: Option<DataVolumeSource>,
    /// DataSource object to resolve the contents from; mutually exclusive with `source`.
    pub source_ref: Option<DataVolumeSourceRef>,
    /// Claim spec used exactly as written; give either this or `storage`, not both.
    pub pvc: Option<PersistentVolumeClaimSpec>,
    /// Claim request whose gaps CDI fills from the StorageProfile; use this or `pvc`, not both.
    pub storage: Option<StorageSpec>,
    /// PriorityClass for the worker pods that import, clone or upload the data.
    pub priority_class_name: Option<String>,
    /// How to treat the data: `kubevirt` for a disk image (default) or `archive` for a tar to unpack.
    #[schemars(extend("enum" = ["kubevirt", "archive"]))]
    pub content_type: Option<DataVolumeContentType>,
    /// Ordered snapshot pairs to copy when a disk is imported in several incremental passes.
    pub checkpoints: Option<Vec<DataVolumeCheckpoint>>,
    /// True when the last listed checkpoint completes the import; false keeps waiting for more.
    pub final_checkpoint: Option<bool>,
    /// Reserve the full disk space up front; falls back to the CDI-wide setting if unset.
    pub preallocation: Option<bool>,
}

/// Origin of a DataVolume's contents; exactly one member should be set.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeSource {
    /// Download an image from a web server over HTTP or HTTPS.
    pub http: Option<DataVolumeSourceHttp>,
    /// Download an image from an S3-compatible object store.
    pub s3: Option<DataVolumeSourceS3>,
    /// Download an image from a Google Cloud Storage bucket.
    pub gcs: Option<DataVolumeSourceGcs>,
    /// Extract the disk from a container image.
    pub registry: Option<DataVolumeSourceRegistry>,
    /// Clone an existing PersistentVolumeClaim.
    pub pvc: Option<DataVolumeSourcePvc>,
    /// Wait for a client, such as `virtctl image-upload`, to push the image.
    pub upload: Option<DataVolumeSourceUpload>,
    /// Start from an empty disk.
    pub blank: Option<DataVolumeBlankImage>,
    /// Pull a disk from an oVirt engine through its ImageIO service.
    pub imageio: Option<DataVolumeSourceImageIo>,
    /// Pull a VMware disk from vCenter or ESXi using the VDDK library.
    pub vddk: Option<DataVolumeSourceVddk>,
    /// Restore from an existing VolumeSnapshot.
    pub snapshot: Option<DataVolumeSourceSnapshot>,
}

/// Image download over HTTP or HTTPS.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeSourceHttp {
    /// Full address of the image, with scheme http or https.
    pub url: String,
    /// Secret with basic-auth credentials under the keys `accessKeyId` (user) and `secretKey` (password).
    pub secret_ref: Option<String>,
    /// ConfigMap of PEM CA certificates to trust in addition to the system ones.
    pub cert_config_map: Option<String>,
    /// Headers, each a `Name: value` string, added to every request; visible in the manifest.
    pub extra_headers: Option<Vec<String>>,
    /// Names of Secrets whose values are sent as request headers, for tokens and the like.
    pub secret_extra_headers: Option<Vec<String>>,
}

/// Image download from S3-compatible storage.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeSourceS3 {
    /// Address of the object, including endpoint, bucket and key.
    pub url: String,
    /// Secret holding the `accessKeyId` and `secretKey` pair; omit for public buckets.
    pub secret_ref: Option<String>,
    /// ConfigMap of PEM CA certificates for an endpoint with a private CA.
    pub cert_config_map: Option<String>,
}

/// Image download from Google Cloud Storage.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeSourceGcs {
    /// Address of the object, with bucket and object name.
    pub url: String,
    /// Secret with the service account key; omit for publicly readable objects.
    pub secret_ref: Option<String>,
}

/// Disk taken from a container image; give one of `url` and `imageStream`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeSourceRegistry {
    /// Image location with its scheme, either `docker://` or `oci-archive://`.
    pub url: Option<String>,
    /// OpenShift ImageStream to import from; only works with the `node` pull method.
    pub image_stream: Option<String>,
    /// Who pulls the image: `pod` for the importer itself (default) or `node` for the container runtime.
    pub pull_method: Option<RegistryPullMethod>,
    /// Secret with the registry login.
    pub secret_ref: Option<String>,
    /// ConfigMap of PEM CA certificates the registry is verified against.
    pub cert_config_map: Option<String>,
    /// Picks the variant to pull from a multi-platform image.
    pub platform: Option<PlatformOptions>,
}

/// Selection criteria for multi-platform container images.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlatformOptions {
    /// CPU architecture of the wanted variant, such as `amd64`, `arm64` or `s390x`.
    pub architecture: Option<String>,
}

/// An existing claim to clone; other namespaces need clone permission there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeSourcePvc {
    /// Namespace the claim to clone lives in.
    pub namespace: String,
    /// Name of the claim to clone.
    pub name: String,
}

/// Marks the volume as filled by a client upload; has no settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeSourceUpload {}

/// Marks the volume as an empty disk; has no settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeBlankImage {}

/// Disk held by an oVirt or RHV engine.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeSourceImageIo {
    /// Address of the oVirt engine API.
    pub url: String,
    /// Identifier the engine gives the disk to copy.
    pub disk_id: String,
    /// Secret with the engine login under `accessKeyId` and `secretKey`.
    pub secret_ref: Option<String>,
    /// ConfigMap with the engine's CA certificate.
    pub cert_config_map: Option<String>,
    /// Accept any TLS certificate from the engine; false if unset, avoid outside tests.
    pub insecure_skip_verify: Option<bool>,
}

/// Disk of a VMware virtual machine, read through VDDK.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeSourceVddk {
    /// Address of the vCenter server or ESXi host.
    pub url: Option<String>,
    /// UUID VMware gives the virtual machine that owns the disk.
    pub uuid: Option<String>,
    /// Datastore path of the VMDK to copy, as VMware shows it.
    pub backing_file: Option<String>,
    /// SHA-1 fingerprint of the server's TLS certificate, used to verify it.
    pub thumbprint: Option<String>,
    /// Secret with the VMware login under `accessKeyId` and `secretKey`.
    pub secret_ref: Option<String>,
    /// Container image carrying the VDDK library; replaces the one in the `v2v-vmware` ConfigMap.
    #[serde(rename = "initImageURL")]
    pub init_image_url: Option<String>,
    /// Name of a ConfigMap whose contents are handed to VDDK as extra configuration.
    pub extra_args: Option<String>,
}

/// An existing VolumeSnapshot to restore from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeSourceSnapshot {
    /// Namespace the snapshot lives in.
    pub namespace: String,
    /// Name of the VolumeSnapshot.
    pub name: String,
}

/// Points at an object that in turn names the real source, so images can be updated in one place.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeSourceRef {
    /// Kind of the object pointed at; only `DataSource` is accepted.
    pub kind: String,
    /// Namespace of the object; the DataVolume's own if unset.
    pub namespace: Option<String>,
    /// Name of the DataSource.
    pub name: String,
}

/// Claim request in which omitted settings are chosen by CDI for the storage class.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageSpec {
    /// Wanted access modes; taken from the StorageProfile if empty, live migration needs ReadWriteMany.
    #[schemars(extend("x-strict" = { "items": { "type": "string", "enum": ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"] } }))]
    pub access_modes: Option<Vec<String>>,
    /// Only bind to PersistentVolumes carrying matching labels.
    pub selector: Option<LabelSelector>,
    /// Size request for the usable disk; CDI adds filesystem overhead on top where needed.
    pub resources: Option<VolumeResourceRequirements>,
    /// Bind to this particular PersistentVolume instead of any suitable one.
    pub volume_name: Option<String>,
    /// Storage class to provision from; the cluster's default (virtualization) class if unset.
    pub storage_class_name: Option<String>,
    /// `Block` or `Filesystem`; taken from the StorageProfile if unset.
    #[schemars(extend("x-strict" = { "enum": ["Block", "Filesystem", "FromStorageProfile"] }))]
    pub volume_mode: Option<String>,
    /// Claim, snapshot or populator object in the same namespace to prefill the volume from.
    pub data_source: Option<TypedLocalObjectReference>,
    /// Like `dataSource`, but takes any populator kind and rejects unknown ones instead of ignoring them.
    pub data_source_ref: Option<TypedObjectReference>,
}

/// One incremental pass of a multi-stage import, from one source snapshot to the next.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeCheckpoint {
    /// Snapshot ID the pass starts from; an empty string copies the whole disk.
    pub previous: String,
    /// Snapshot ID the pass brings the volume up to.
    pub current: String,
}

open_enum! {
    /// Who fetches a registry image: `pod` (the importer) or `node` (the node's container runtime).
    pub enum RegistryPullMethod {
        Pod = "pod",
        Node = "node",
    }
}

open_enum! {
    /// Form of the imported data: `kubevirt` (disk image) or `archive` (tar that gets unpacked).
    pub enum DataVolumeContentType {
        Kubevirt = "kubevirt",
        Archive = "archive",
    }
}

open_enum! {
    /// How far a DataVolume is; machines tell those that are usable, failed or still at work.
    pub enum DataVolumePhase {
        Pending = "Pending",
        PvcBound = "PVCBound",
        PendingPopulation = "PendingPopulation",
        WaitForFirstConsumer = "WaitForFirstConsumer",
        Succeeded = "Succeeded",
        Failed = "Failed",
        Unknown = "Unknown",
        Paused = "Paused",
    }
}
