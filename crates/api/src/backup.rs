//! Full and incremental backups of virtual machines.

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::crd::checked_conditions;
use crate::duration::Duration;
use crate::kind::kind;
use crate::open_enum::open_enum;

kind! {
    /// Remembers the last checkpoint of a machine so that the next backup can be incremental.
    VirtualMachineBackupTracker: BACKUP, "v1alpha1", "virtualmachinebackuptrackers", NamespaceResourceScope;
    spec: VirtualMachineBackupTrackerSpec,
    status: VirtualMachineBackupTrackerStatus
}

kind! {
    /// A single backup of a running virtual machine.
    VirtualMachineBackup: BACKUP, "v1alpha1", "virtualmachinebackups", NamespaceResourceScope;
    spec: VirtualMachineBackupSpec,
    status: VirtualMachineBackupStatus
}

/// One volume covered by a backup.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupVolumeInfo {
    /// Name of the volume in the instance's spec.
    pub volume_name: String,
    /// Device name the disk had during the backup, such as vda.
    pub disk_target: String,
    /// URL to read the volume's data from; pull mode only.
    pub data_endpoint: Option<String>,
    /// URL listing which blocks hold data or have changed; pull mode only.
    pub map_endpoint: Option<String>,
}

/// Parameters of a backup, fixed at creation.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "self == oldSelf", "message": "the specification cannot be changed" },
    { "rule": "has(self.pvcName) && self.pvcName != \"\"", "message": "pvcName is required" },
    {
        "rule": "!has(self.mode) || self.mode != 'Pull' || (has(self.tokenSecretRef) && self.tokenSecretRef != \"\")",
        "message": "tokenSecretRef is required in Pull mode",
    },
]))]
pub struct VirtualMachineBackupSpec {
    /// A VirtualMachine, or a VirtualMachineBackupTracker for incremental backups, in the same namespace.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": r#"has(self.apiGroup)"#, "message": "apiGroup is required"}, {"rule": r#"!has(self.apiGroup) || self.apiGroup == 'kubevirt.io' || self.apiGroup == 'backup.kubevirt.io'"#, "message": "apiGroup must be kubevirt.io or backup.kubevirt.io"}, {"rule": r#"!has(self.apiGroup) || (self.apiGroup == 'kubevirt.io' && self.kind == 'VirtualMachine') || (self.apiGroup == 'backup.kubevirt.io' && self.kind == 'VirtualMachineBackupTracker')"#, "message": "kind must be VirtualMachine of kubevirt.io or VirtualMachineBackupTracker of backup.kubevirt.io"}, {"rule": r#"self.name != ''"#, "message": "name is required"}]))]
    pub source: TypedLocalObjectReference,
    /// `Push` writes the backup to a claim, `Pull` serves it over HTTPS; Push if unset.
    #[schemars(extend("enum" = ["Push", "Pull"]))]
    pub mode: Option<BackupMode>,
    /// Claim for the backup output, or for scratch data in pull mode; required, filesystem mode only.
    pub pvc_name: Option<String>,
    /// True to skip freezing guest filesystems, giving a crash-consistent backup; false if unset.
    pub skip_quiesce: Option<bool>,
    /// True to copy everything even if the tracker would permit an incremental backup; false if unset.
    pub force_full_backup: Option<bool>,
    /// Name of the Secret with the token that clients present to download; required in pull mode.
    pub token_secret_ref: Option<String>,
    /// How long a pull backup stays available, counted from its creation, such as 90m; 2h if unset.
    pub ttl_duration: Option<Duration>,
}

/// Observed progress and result of a backup.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineBackupStatus {
    /// What was taken: `Full` or `Incremental`.
    pub type_: Option<BackupType>,
    /// Progressing, Complete, Failed and Quiesced conditions, one per type.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[serde(default)]
    #[schemars(schema_with = "checked_conditions")]
    pub conditions: Option<Vec<v1::Condition>>,
    /// Checkpoint made by this backup, which a later incremental one can start from.
    pub checkpoint_name: Option<String>,
    /// CA certificate to trust when downloading from the endpoints; pull mode only.
    pub endpoint_cert: Option<String>,
    /// Volumes that the backup contains.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub included_volumes: Option<Vec<BackupVolumeInfo>>,
    /// UID of the VirtualMachineExport serving a pull backup, to notice when it is recreated.
    #[serde(rename = "exportUID")]
    pub export_uid: Option<String>,
}

/// Parameters of a tracker, fixed at creation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "self == oldSelf", "message": "the specification cannot be changed" },
]))]
pub struct VirtualMachineBackupTrackerSpec {
    /// The VirtualMachine (API group kubevirt.io) to follow, in the same namespace.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": r#"has(self.apiGroup) && self.apiGroup == 'kubevirt.io'"#, "message": "apiGroup must be kubevirt.io"}, {"rule": r#"self.kind == 'VirtualMachine'"#, "message": "kind must be VirtualMachine"}, {"rule": r#"self.name != ''"#, "message": "name is required"}]))]
    pub source: TypedLocalObjectReference,
}

/// Observed state of a tracker.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineBackupTrackerStatus {
    /// Checkpoint of the last successful backup; the next backup is full if absent.
    pub latest_checkpoint: Option<BackupCheckpoint>,
    /// True after a guest restart until libvirt knows the checkpoint again; backups wait meanwhile.
    pub checkpoint_redefinition_required: Option<bool>,
}

/// A point in time that later incremental backups are measured from.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupCheckpoint {
    /// Name of the checkpoint in libvirt.
    pub name: Option<String>,
    /// Time the checkpoint was made.
    pub creation_time: Option<Time>,
    /// Volumes the checkpoint covers, with their device names at that time.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub volumes: Option<Vec<BackupVolumeInfo>>,
}

/// What a launcher is told about a backup.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupOptions {
    /// Name of the backup object.
    pub backup_name: String,
    /// What to do.
    pub cmd: Option<BackupCommand>,
    /// How the data leaves.
    pub mode: Option<BackupMode>,
    /// When the backup began; together with its name this tells one backup from another.
    pub backup_start_time: Option<Time>,
    /// Checkpoint that an incremental backup starts from; everything is copied if there is none.
    pub incremental: Option<String>,
    /// Folder for the backup or, in pull mode, for scratch data.
    pub target_path: Option<String>,
    /// True to leave the guest's file systems as they are.
    pub skip_quiesce: bool,
    /// Where the export server listens; pull mode only.
    pub export_server_addr: Option<String>,
    /// The export server's name in its certificate; pull mode only.
    pub export_server_name: Option<String>,
    /// The launcher's key towards the export server; pull mode only.
    pub backup_key: Option<String>,
    /// The launcher's certificate towards the export server; pull mode only.
    pub backup_cert: Option<String>,
    /// Who signed the export server's certificate; pull mode only.
    #[serde(rename = "caCert")]
    pub ca_cert: Option<String>,
}

open_enum! {
    /// What a launcher does about a backup.
    pub enum BackupCommand {
        Start = "Start",
        Abort = "Abort",
        Export = "Export",
    }
}

open_enum! {
    /// How backup data leaves the cluster: `Push` to a claim or `Pull` by a client.
    pub enum BackupMode {
        Push = "Push",
        Pull = "Pull",
    }
}

open_enum! {
    /// Extent of a backup: `Full`, or `Incremental` since a checkpoint.
    pub enum BackupType {
        Full = "Full",
        Incremental = "Incremental",
    }
}
