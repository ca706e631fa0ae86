//! Every kind: its names, versions, columns and subresources.

use schemars::SchemaGenerator;
use serde_json::Value;

use super::{Documented, RootSchema};
use crate::names::groups;

/// Whether objects of a kind live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// Outside of namespaces.
    Cluster,
}

impl Scope {
    /// As a CustomResourceDefinition writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespaced => "Namespaced",
            Self::Cluster => "Cluster",
        }
    }
}

/// A version of a kind that is served; all versions of a kind share one schema.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// Its name.
    pub name: &'static str,
    /// Whether objects are stored in this version.
    pub storage: bool,
    /// Whether clients that use it are warned.
    pub deprecated: bool,
    /// The warning, where it is not the API server's own.
    pub warning: Option<&'static str>,
}

/// A column of `kubectl get`.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// Where its value stands.
    pub path: &'static str,
    /// The type of its value.
    pub type_: &'static str,
}

/// Where the scale subresource finds its numbers.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The wanted number of replicas.
    pub spec: &'static str,
    /// The number that exists.
    pub status: &'static str,
    /// The selector of the replicas, as text.
    pub selector: &'static str,
}

/// A kind of the API.
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// One sentence on what it is.
    pub description: &'static str,
    /// Its API group.
    pub group: &'static str,
    /// Its name in paths.
    pub plural: &'static str,
    /// Short names for `kubectl`.
    pub short_names: &'static [&'static str],
    /// Groups of kinds, such as `all`.
    pub categories: &'static [&'static str],
    /// Whether its objects live in a namespace.
    pub scope: Scope,
    /// The versions that are served.
    pub versions: &'static [Version],
    /// The columns of `kubectl get`.
    pub columns: &'static [Column],
    /// Whether status is a subresource.
    pub status: bool,
    /// The scale subresource, for kinds that have replicas.
    pub scale: Option<Scale>,
    /// Whether an object without a spec is refused.
    pub spec_required: bool,
    pub(super) schema: fn(&mut SchemaGenerator) -> RootSchema,
    /// Reads an object of this kind as its type and writes it again, in the version of the type.
    pub through_types: fn(&Value) -> serde_json::Result<Value>,
}

const fn stored(name: &'static str) -> Version {
    Version { name, storage: true, deprecated: false, warning: None }
}

const fn served(name: &'static str) -> Version {
    Version { name, storage: false, deprecated: false, warning: None }
}

const fn deprecated(version: Version) -> Version {
    Version { deprecated: true, ..version }
}

const fn column(name: &'static str, path: &'static str, type_: &'static str) -> Column {
    Column { name, path, type_ }
}

const REPLICAS: Scale =
    Scale { spec: ".spec.replicas", status: ".status.replicas", selector: ".status.labelSelector" };

/// Every kind, in the order of their names.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "KubeVirt",
        description: "The KubeVirt installation of a cluster, deployed and configured by the operator.",
        group: groups::KUBEVIRT,
        plural: "kubevirts",
        short_names: &["kv", "kvs"],
        categories: &["all"],
        scope: Scope::Namespaced,
        versions: &[stored("v1"), deprecated(served("v1alpha3"))],
        columns: &[
            column("Age", ".metadata.creationTimestamp", "date"),
            column("Phase", ".status.phase", "string"),
        ],
        status: true,
        scale: None,
        spec_required: true,
        schema: <crate::kubevirt::KubeVirt as Documented>::schema,
        through_types: <crate::kubevirt::KubeVirt as Documented>::through_types,
    },
    Kind {
        name: "MigrationPolicy",
        description: "Live migration settings for a selected group of VMs; the most specific match wins.",
        group: groups::MIGRATIONS,
        plural: "migrationpolicies",
        short_names: &[],
        categories: &[],
        scope: Scope::Cluster,
        versions: &[stored("v1alpha1")],
        columns: &[],
        status: true,
        scale: None,
        spec_required: true,
        schema: <crate::migration_policy::MigrationPolicy as Documented>::schema,
        through_types: <crate::migration_policy::MigrationPolicy as Documented>::through_types,
    },
    Kind {
        name: "Plugin",
        description: "Cluster-wide extension that adjusts VM domains or runs on nodes at lifecycle events; needs the Plugins gate.",
        group: groups::PLUGIN,
        plural: "plugins",
        short_names: &[],
        categories: &[],
        scope: Scope::Cluster,
        versions: &[stored("v1alpha1")],
        columns: &[],
        status: false,
        scale: None,
        spec_required: true,
        schema: <crate::plugin::Plugin as Documented>::schema,
        through_types: <crate::plugin::Plugin as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachine",
        description: "A machine that keeps its definition and disks while stopped, and runs as a VirtualMachineInstance.",
        group: groups::KUBEVIRT,
        plural: "virtualmachines",
        short_names: &["vm", "vms"],
        categories: &["all"],
        scope: Scope::Namespaced,
        versions: &[stored("v1"), deprecated(served("v1alpha3"))],
        columns: &[
            column("Age", ".metadata.creationTimestamp", "date"),
            column("Status", ".status.printableStatus", "string"),
            column("Ready", ".status.conditions[?(@.type=='Ready')].status", "string"),
        ],
        status: true,
        scale: None,
        spec_required: true,
        schema: <crate::vm::VirtualMachine as Documented>::schema,
        through_types: <crate::vm::VirtualMachine as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachineBackup",
        description: "A single backup of a running virtual machine.",
        group: groups::BACKUP,
        plural: "virtualmachinebackups",
        short_names: &["vmbackup", "vmbackups"],
        categories: &["all"],
        scope: Scope::Namespaced,
        versions: &[stored("v1alpha1")],
        columns: &[
            column("SourceKind", ".spec.source.kind", "string"),
            column("SourceName", ".spec.source.name", "string"),
            column("Type", ".status.type", "string"),
            column("CheckpointName", ".status.checkpointName", "string"),
        ],
        status: true,
        scale: None,
        spec_required: true,
        schema: <crate::backup::VirtualMachineBackup as Documented>::schema,
        through_types: <crate::backup::VirtualMachineBackup as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachineBackupTracker",
        description: "Remembers the last checkpoint of a machine so that the next backup can be incremental.",
        group: groups::BACKUP,
        plural: "virtualmachinebackuptrackers",
        short_names: &["vmbackuptracker", "vmbackuptrackers"],
        categories: &["all"],
        scope: Scope::Namespaced,
        versions: &[stored("v1alpha1")],
        columns: &[
            column("SourceKind", ".spec.source.kind", "string"),
            column("SourceName", ".spec.source.name", "string"),
            column("LatestCheckpoint", ".status.latestCheckpoint.name", "string"),
            column("CheckpointTime", ".status.latestCheckpoint.creationTime", "date"),
        ],
        status: true,
        scale: None,
        spec_required: true,
        schema: <crate::backup::VirtualMachineBackupTracker as Documented>::schema,
        through_types: <crate::backup::VirtualMachineBackupTracker as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachineClone",
        description: "Request to copy a virtual machine, disks included, within its namespace.",
        group: groups::CLONE,
        plural: "virtualmachineclones",
        short_names: &["vmclone", "vmclones"],
        categories: &["all"],
        scope: Scope::Namespaced,
        versions: &[served("v1alpha1"), stored("v1beta1")],
        columns: &[
            column("Phase", ".status.phase", "string"),
            column("SourceVirtualMachine", ".spec.source.name", "string"),
            column("TargetVirtualMachine", ".spec.target.name", "string"),
        ],
        status: true,
        scale: None,
        spec_required: true,
        schema: <crate::clone::VirtualMachineClone as Documented>::schema,
        through_types: <crate::clone::VirtualMachineClone as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachineClusterInstancetype",
        description: "Reusable VM size for the whole cluster: CPU, memory and devices that a VM takes by name.",
        group: groups::INSTANCETYPE,
        plural: "virtualmachineclusterinstancetypes",
        short_names: &["vmclusterinstancetype", "vmclusterinstancetypes", "vmcf", "vmcfs"],
        categories: &[],
        scope: Scope::Cluster,
        versions: &[stored("v1beta1")],
        columns: &[],
        status: false,
        scale: None,
        spec_required: true,
        schema: <crate::instancetype::VirtualMachineClusterInstancetype as Documented>::schema,
        through_types: <crate::instancetype::VirtualMachineClusterInstancetype as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachineClusterPreference",
        description: "Cluster-wide preference, usable by VMs in every namespace.",
        group: groups::INSTANCETYPE,
        plural: "virtualmachineclusterpreferences",
        short_names: &["vmcp", "vmcps"],
        categories: &[],
        scope: Scope::Cluster,
        versions: &[stored("v1beta1")],
        columns: &[],
        status: false,
        scale: None,
        spec_required: true,
        schema: <crate::preference::VirtualMachineClusterPreference as Documented>::schema,
        through_types: <crate::preference::VirtualMachineClusterPreference as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachineExport",
        description: "Serves the disks and manifests of a VM, template, snapshot, backup or PVC for download.",
        group: groups::EXPORT,
        plural: "virtualmachineexports",
        short_names: &["vmexport", "vmexports"],
        categories: &["all"],
        scope: Scope::Namespaced,
        versions: &[deprecated(served("v1beta1")), stored("v1")],
        columns: &[
            column("SourceKind", ".spec.source.kind", "string"),
            column("SourceName", ".spec.source.name", "string"),
            column("Phase", ".status.phase", "string"),
        ],
        status: true,
        scale: None,
        spec_required: true,
        schema: <crate::export::VirtualMachineExport as Documented>::schema,
        through_types: <crate::export::VirtualMachineExport as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachineInstance",
        description: "A running virtual machine; it ends for good once the guest stops.",
        group: groups::KUBEVIRT,
        plural: "virtualmachineinstances",
        short_names: &["vmi", "vmis"],
        categories: &["all"],
        scope: Scope::Namespaced,
        versions: &[stored("v1"), deprecated(served("v1alpha3"))],
        columns: &[
            column("Age", ".metadata.creationTimestamp", "date"),
            column("Phase", ".status.phase", "string"),
            column("IP", ".status.interfaces[0].ipAddress", "string"),
            column("NodeName", ".status.nodeName", "string"),
            column("Ready", ".status.conditions[?(@.type=='Ready')].status", "string"),
            column("Live-Migratable", ".status.conditions[?(@.type=='LiveMigratable')].status", "string"),
            column("Paused", ".status.conditions[?(@.type=='Paused')].status", "string"),
        ],
        status: false,
        scale: None,
        spec_required: true,
        schema: <crate::vmi::VirtualMachineInstance as Documented>::schema,
        through_types: <crate::vmi::VirtualMachineInstance as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachineInstanceMigration",
        description: "Moves a running VM instance to another node; deleting it before completion cancels the move.",
        group: groups::KUBEVIRT,
        plural: "virtualmachineinstancemigrations",
        short_names: &["vmim", "vmims"],
        categories: &["all"],
        scope: Scope::Namespaced,
        versions: &[stored("v1"), deprecated(served("v1alpha3"))],
        columns: &[column("Phase", ".status.phase", "string"), column("VMI", ".spec.vmiName", "string")],
        status: true,
        scale: None,
        spec_required: true,
        schema: <crate::migration::VirtualMachineInstanceMigration as Documented>::schema,
        through_types: <crate::migration::VirtualMachineInstanceMigration as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachineInstancePreset",
        description: "Deprecated: settings merged into new VMIs that match a label selector; prefer instance types.",
        group: groups::KUBEVIRT,
        plural: "virtualmachineinstancepresets",
        short_names: &["vmipreset", "vmipresets"],
        categories: &["all"],
        scope: Scope::Namespaced,
        versions: &[deprecated(served("v1")), deprecated(stored("v1alpha3"))],
        columns: &[],
        status: false,
        scale: None,
        spec_required: false,
        schema: <crate::preset::VirtualMachineInstancePreset as Documented>::schema,
        through_types: <crate::preset::VirtualMachineInstancePreset as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachineInstanceReplicaSet",
        description: "Keeps a number of identical, disposable VM instances running.",
        group: groups::KUBEVIRT,
        plural: "virtualmachineinstancereplicasets",
        short_names: &["vmirs", "vmirss"],
        categories: &["all"],
        scope: Scope::Namespaced,
        versions: &[stored("v1"), deprecated(served("v1alpha3"))],
        columns: &[
            column("Desired", ".spec.replicas", "integer"),
            column("Current", ".status.replicas", "integer"),
            column("Ready", ".status.readyReplicas", "integer"),
            column("Age", ".metadata.creationTimestamp", "date"),
        ],
        status: true,
        scale: Some(REPLICAS),
        spec_required: true,
        schema: <crate::replica_set::VirtualMachineInstanceReplicaSet as Documented>::schema,
        through_types: <crate::replica_set::VirtualMachineInstanceReplicaSet as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachineInstancetype",
        description: "Reusable VM size for one namespace: CPU, memory and devices that a VM takes by name.",
        group: groups::INSTANCETYPE,
        plural: "virtualmachineinstancetypes",
        short_names: &["vminstancetype", "vminstancetypes", "vmf", "vmfs"],
        categories: &["all"],
        scope: Scope::Namespaced,
        versions: &[stored("v1beta1")],
        columns: &[],
        status: false,
        scale: None,
        spec_required: true,
        schema: <crate::instancetype::VirtualMachineInstancetype as Documented>::schema,
        through_types: <crate::instancetype::VirtualMachineInstancetype as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachinePool",
        description: "A set of near-identical virtual machines kept at a wanted size from one template.",
        group: groups::POOL,
        plural: "virtualmachinepools",
        short_names: &["vmpool", "vmpools"],
        categories: &["all"],
        scope: Scope::Namespaced,
        versions: &[served("v1alpha1"), stored("v1beta1")],
        columns: &[
            column("Desired", ".spec.replicas", "integer"),
            column("Current", ".status.replicas", "integer"),
            column("Ready", ".status.readyReplicas", "integer"),
            column("Age", ".metadata.creationTimestamp", "date"),
        ],
        status: true,
        scale: Some(REPLICAS),
        spec_required: true,
        schema: <crate::pool::VirtualMachinePool as Documented>::schema,
        through_types: <crate::pool::VirtualMachinePool as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachinePreference",
        description: "Reusable guest defaults for VMs in the same namespace; values set in the VM itself normally win.",
        group: groups::INSTANCETYPE,
        plural: "virtualmachinepreferences",
        short_names: &["vmpref", "vmprefs", "vmp", "vmps"],
        categories: &["all"],
        scope: Scope::Namespaced,
        versions: &[stored("v1beta1")],
        columns: &[],
        status: false,
        scale: None,
        spec_required: true,
        schema: <crate::preference::VirtualMachinePreference as Documented>::schema,
        through_types: <crate::preference::VirtualMachinePreference as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachineRestore",
        description: "Restores a VM from a VirtualMachineSnapshot.",
        group: groups::SNAPSHOT,
        plural: "virtualmachinerestores",
        short_names: &["vmrestore", "vmrestores"],
        categories: &["all"],
        scope: Scope::Namespaced,
        versions: &[served("v1alpha1"), stored("v1beta1")],
        columns: &[
            column("TargetKind", ".spec.target.kind", "string"),
            column("TargetName", ".spec.target.name", "string"),
            column("Complete", ".status.complete", "boolean"),
            column("RestoreTime", ".status.restoreTime", "date"),
        ],
        status: true,
        scale: None,
        spec_required: true,
        schema: <crate::restore::VirtualMachineRestore as Documented>::schema,
        through_types: <crate::restore::VirtualMachineRestore as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachineSnapshot",
        description: "Request to capture a virtual machine's definition and disks at a point in time.",
        group: groups::SNAPSHOT,
        plural: "virtualmachinesnapshots",
        short_names: &["vmsnapshot", "vmsnapshots"],
        categories: &["all"],
        scope: Scope::Namespaced,
        versions: &[served("v1alpha1"), stored("v1beta1")],
        columns: &[
            column("SourceKind", ".spec.source.kind", "string"),
            column("SourceName", ".spec.source.name", "string"),
            column("Phase", ".status.phase", "string"),
            column("ReadyToUse", ".status.readyToUse", "boolean"),
            column("CreationTime", ".status.creationTime", "date"),
            column("Error", ".status.error.message", "string"),
        ],
        status: true,
        scale: None,
        spec_required: true,
        schema: <crate::snapshot::VirtualMachineSnapshot as Documented>::schema,
        through_types: <crate::snapshot::VirtualMachineSnapshot as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachineSnapshotContent",
        description: "The data behind a VirtualMachineSnapshot; created by the controller, not by hand.",
        group: groups::SNAPSHOT,
        plural: "virtualmachinesnapshotcontents",
        short_names: &["vmsnapshotcontent", "vmsnapshotcontents"],
        categories: &["all"],
        scope: Scope::Namespaced,
        versions: &[served("v1alpha1"), stored("v1beta1")],
        columns: &[
            column("ReadyToUse", ".status.readyToUse", "boolean"),
            column("CreationTime", ".status.creationTime", "date"),
            column("Error", ".status.error.message", "string"),
        ],
        status: true,
        scale: None,
        spec_required: true,
        schema: <crate::snapshot::VirtualMachineSnapshotContent as Documented>::schema,
        through_types: <crate::snapshot::VirtualMachineSnapshotContent as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachineTemplate",
        description: "A parameterized virtual machine from which users create their own.",
        group: groups::TEMPLATE,
        plural: "virtualmachinetemplates",
        short_names: &["vmt", "vmts"],
        categories: &[],
        scope: Scope::Namespaced,
        versions: &[deprecated(stored("v1alpha1")), served("v1beta1")],
        columns: &[
            column("Age", ".metadata.creationTimestamp", "date"),
            column("Ready", ".status.conditions[?(@.type==\"Ready\")].status", "string"),
        ],
        status: true,
        scale: None,
        spec_required: true,
        schema: <crate::template::VirtualMachineTemplate as Documented>::schema,
        through_types: <crate::template::VirtualMachineTemplate as Documented>::through_types,
    },
    Kind {
        name: "VirtualMachineTemplateRequest",
        description: "Request to turn an existing virtual machine into a template.",
        group: groups::TEMPLATE,
        plural: "virtualmachinetemplaterequests",
        short_names: &["vmtr", "vmtrs"],
        categories: &[],
        scope: Scope::Namespaced,
        versions: &[deprecated(stored("v1alpha1")), served("v1beta1")],
        columns: &[
            column("Template", ".status.templateRef.name", "string"),
            column("Age", ".metadata.creationTimestamp", "date"),
            column("Ready", ".status.conditions[?(@.type==\"Ready\")].status", "string"),
            column("Progressing", ".status.conditions[?(@.type==\"Progressing\")].status", "string"),
        ],
        status: true,
        scale: None,
        spec_required: true,
        schema: <crate::template::VirtualMachineTemplateRequest as Documented>::schema,
        through_types: <crate::template::VirtualMachineTemplateRequest as Documented>::through_types,
    },
];
