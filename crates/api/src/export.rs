//! Serving the volumes of a virtual machine for download: `VirtualMachineExport`.

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::condition::Condition;
use crate::duration::Duration;
use crate::kind::kind;
use crate::open_enum::open_enum;

kind! {
    /// Serves the disks and manifests of a VM, template, snapshot, backup or PVC for download.
    VirtualMachineExport: EXPORT, "v1", "virtualmachineexports", NamespaceResourceScope;
    spec: VirtualMachineExportSpec,
    status: VirtualMachineExportStatus
}

/// What to export, how downloads are authorised and when the export expires.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineExportSpec {
    /// VM, template, snapshot, backup or PVC to export, from this namespace; a VM or PVC must not be in
    /// use.
    pub source: TypedLocalObjectReference,
    /// Secret whose `token` key authorises downloads; one is generated if unset.
    pub token_secret_ref: Option<String>,
    /// Lifetime counted from creation, e.g. `4h`; 2 hours if unset, then the export is deleted.
    pub ttl_duration: Option<Duration>,
}

/// Readiness, links and expiry of an export.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineExportStatus {
    /// Overall step; downloads work in `Ready`.
    pub phase: Option<ExportPhase>,
    /// Download addresses, inside and outside the cluster; unset until ready.
    pub links: Option<ExportLinks>,
    /// Secret holding the download token, whether yours or the generated one.
    pub token_secret_ref: Option<String>,
    /// When the export will be deleted.
    pub ttl_expiration_time: Option<Time>,
    /// Service in front of the export server, used in the internal links.
    pub service_name: Option<String>,
    /// VM the data comes from, when exporting a VM or a snapshot of one.
    pub virtual_machine_name: Option<String>,
    /// Detailed state: Ready, PVCReady, VolumesCreated and OCIReady.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub conditions: Option<Vec<Condition>>,
}

/// Where to download, by where the client is.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportLinks {
    /// Links that work from pods inside the cluster.
    pub internal: Option<ExportLink>,
    /// Links that work from outside; present only if an Ingress or Route exposes the export proxy.
    pub external: Option<ExportLink>,
}

/// Everything on offer at one location, and the certificate to trust there.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportLink {
    /// CA certificate for verifying the server behind these links.
    pub cert: String,
    /// Volumes available for download.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub volumes: Option<Vec<ExportVolume>>,
    /// Backups available for download.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub backups: Option<Vec<ExportBackup>>,
    /// Manifests available for download, for recreating the VM elsewhere.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub manifests: Option<Vec<ExportManifest>>,
}

/// A volume on offer, in one or more formats.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportVolume {
    /// Name of the volume.
    pub name: String,
    /// Formats the volume can be fetched in, each with its link.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["format"]))]
    pub formats: Option<Vec<ExportVolumeLink>>,
}

/// Link to a volume in a particular format.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportVolumeLink {
    /// Format served: `raw` or `gzip` for disk images, `dir` or `tar.gz` for other contents.
    pub format: ExportVolumeFormat,
    /// Address to download from; requests must carry the export token.
    pub url: String,
}

/// A backed-up volume on offer.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportBackup {
    /// Name of the volume that was backed up.
    pub name: String,
    /// Endpoints for reading the backup, each with its link.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["endpoint"]))]
    pub endpoints: Option<Vec<ExportBackupLink>>,
}

/// Link to one endpoint of a backup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportBackupLink {
    /// Kind of endpoint: `map` lists the blocks, `data` reads them.
    pub endpoint: ExportBackupEndpoint,
    /// Address of the endpoint; requests must carry the export token.
    pub url: String,
}

/// Link to manifests for the exported VM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportManifest {
    /// What the link returns: `all`, `auth-header-secret` or `oci`.
    pub type_: ExportManifestType,
    /// Address to download from; requests must carry the export token.
    pub url: String,
}

open_enum! {
    /// Step of an export; `Skipped` means the source cannot be served, so no server is started.
    pub enum ExportPhase {
        Pending = "Pending",
        Ready = "Ready",
        Terminated = "Terminated",
        Skipped = "Skipped",
    }
}

open_enum! {
    /// `raw` disk image, the same with `gzip`, browsable `dir` of files, or a `tar.gz` of them.
    pub enum ExportVolumeFormat {
        Raw = "raw",
        Gzip = "gzip",
        Dir = "dir",
        TarGz = "tar.gz",
    }
}

open_enum! {
    /// `map` tells which blocks the backup holds, `data` returns their contents.
    pub enum ExportBackupEndpoint {
        Map = "map",
        Data = "data",
    }
}

open_enum! {
    /// `all` manifests but the token, the token as an `auth-header-secret` for CDI, or an `oci` archive.
    pub enum ExportManifestType {
        All = "all",
        AuthHeaderSecret = "auth-header-secret",
        Oci = "oci",
    }
}
