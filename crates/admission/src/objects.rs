//! The other objects that a rule reads, as far as the cluster has them.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod};
use kubevirt_api::backup::{VirtualMachineBackup, VirtualMachineBackupTracker};
use kubevirt_api::instancetype::{VirtualMachineClusterInstancetype, VirtualMachineInstancetype};
use kubevirt_api::kubevirt::KubeVirt;
use kubevirt_api::migration::VirtualMachineInstanceMigration;
use kubevirt_api::preference::{VirtualMachineClusterPreference, VirtualMachinePreference};
use kubevirt_api::preset::VirtualMachineInstancePreset;
use kubevirt_api::replica_set::VirtualMachineInstanceReplicaSet;
use kubevirt_api::restore::VirtualMachineRestore;
use kubevirt_api::snapshot::{VirtualMachineSnapshot, VirtualMachineSnapshotContent};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::Value;

macro_rules! objects {
    ($($(#[$doc:meta])* $kind:ty: $by_name:ident, $all:ident;)+) => {
        /// What is known of the cluster. Objects outside of namespaces are asked for with an empty namespace.
        pub trait Objects {
            $(
                $(#[$doc])*
                fn $by_name(&self, namespace: &str, name: &str) -> Option<Arc<$kind>>;

                /// All of them in a namespace, or in all namespaces where it is empty.
                fn $all(&self, namespace: &str) -> Vec<Arc<$kind>>;
            )+

            /// An object of a kind that has no type here, such as `DataVolume`.
            fn untyped(&self, kind: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
                let mut all = self.others(namespace).into_iter();
                all.find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
            }
        }

        /// Objects held in memory.
        #[derive(Clone, Debug, Default)]
        pub struct KnownObjects {
            $($(#[$doc])* pub $all: Vec<Arc<$kind>>,)+
        }

        impl Objects for KnownObjects {
            $(
                fn $by_name(&self, namespace: &str, name: &str) -> Option<Arc<$kind>> {
                    self.$all.iter().find(|object| object.is_at(namespace, name)).cloned()
                }

                fn $all(&self, namespace: &str) -> Vec<Arc<$kind>> {
                    self.$all.iter().filter(|object| object.is_in(namespace)).cloned().collect()
                }
            )+
        }
    };
}

objects! {
    /// Virtual machines.
    VirtualMachine: vm, vms;
    /// Running instances.
    VirtualMachineInstance: vmi, vmis;
    /// Replica sets.
    VirtualMachineInstanceReplicaSet: replica_set, replica_sets;
    /// Presets.
    VirtualMachineInstancePreset: preset, presets;
    /// Migrations.
    VirtualMachineInstanceMigration: migration, migrations;
    /// Instance types of a namespace.
    VirtualMachineInstancetype: instancetype, instancetypes;
    /// Instance types of the cluster.
    VirtualMachineClusterInstancetype: cluster_instancetype, cluster_instancetypes;
    /// Preferences of a namespace.
    VirtualMachinePreference: preference, preferences;
    /// Preferences of the cluster.
    VirtualMachineClusterPreference: cluster_preference, cluster_preferences;
    /// Snapshots.
    VirtualMachineSnapshot: snapshot, snapshots;
    /// Contents of snapshots.
    VirtualMachineSnapshotContent: snapshot_content, snapshot_contents;
    /// Restores.
    VirtualMachineRestore: restore, restores;
    /// Backups.
    VirtualMachineBackup: backup, backups;
    /// Backup trackers.
    VirtualMachineBackupTracker: backup_tracker, backup_trackers;
    /// Installations.
    KubeVirt: kubevirt, kubevirts;
    /// Controller revisions, which keep instance types and preferences as they were.
    ControllerRevision: controller_revision, controller_revisions;
    /// Claims.
    PersistentVolumeClaim: claim, claims;
    /// Pods.
    Pod: pod, pods;
    /// Namespaces.
    Namespace: namespace, namespaces;
    /// Objects of kinds that have no type here: DataVolumes, DataSources, VolumeSnapshots, definitions.
    Value: other, others;
}

/// An object that is not what its kind says.
#[derive(Debug, thiserror::Error)]
#[error("{kind} {name}: {source}")]
pub struct NotReadable {
    kind: String,
    name: String,
    source: serde_path_to_error::Error<serde_json::Error>,
}

macro_rules! add {
    ($self:ident, $object:ident; $($kind:ident => $all:ident),+ $(,)?) => {
        match $object["kind"].as_str().unwrap_or_default() {
            $(stringify!($kind) => $self.$all.push(Arc::new(decode::<$kind>(&$object)?)),)+
            _ => $self.others.push(Arc::new($object)),
        }
    };
}

impl KnownObjects {
    /// Adds an object of any kind.
    pub fn add(&mut self, object: Value) -> Result<(), NotReadable> {
        add!(self, object;
            VirtualMachine => vms,
            VirtualMachineInstance => vmis,
            VirtualMachineInstanceReplicaSet => replica_sets,
            VirtualMachineInstancePreset => presets,
            VirtualMachineInstanceMigration => migrations,
            VirtualMachineInstancetype => instancetypes,
            VirtualMachineClusterInstancetype => cluster_instancetypes,
            VirtualMachinePreference => preferences,
            VirtualMachineClusterPreference => cluster_preferences,
            VirtualMachineSnapshot => snapshots,
            VirtualMachineSnapshotContent => snapshot_contents,
            VirtualMachineRestore => restores,
            VirtualMachineBackup => backups,
            VirtualMachineBackupTracker => backup_trackers,
            KubeVirt => kubevirts,
            ControllerRevision => controller_revisions,
            PersistentVolumeClaim => claims,
            Pod => pods,
            Namespace => namespaces,
        );
        Ok(())
    }
}

fn decode<K: serde::de::DeserializeOwned>(object: &Value) -> Result<K, NotReadable> {
    serde_path_to_error::deserialize(object).map_err(|source| NotReadable {
        kind: object["kind"].as_str().unwrap_or_default().to_owned(),
        name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        source,
    })
}

/// Where an object is.
trait Placed {
    fn place(&self) -> (Option<&str>, Option<&str>);

    fn is_in(&self, namespace: &str) -> bool {
        namespace.is_empty() || self.place().0.unwrap_or_default() == namespace
    }

    fn is_at(&self, namespace: &str, name: &str) -> bool {
        self.place().0.unwrap_or_default() == namespace && self.place().1 == Some(name)
    }
}

impl Placed for Value {
    fn place(&self) -> (Option<&str>, Option<&str>) {
        (self["metadata"]["namespace"].as_str(), self["metadata"]["name"].as_str())
    }
}

macro_rules! placed {
    ($($kind:ty),+ $(,)?) => {
        $(impl Placed for $kind {
            fn place(&self) -> (Option<&str>, Option<&str>) {
                (self.metadata.namespace.as_deref(), self.metadata.name.as_deref())
            }
        })+
    };
}

placed!(
    VirtualMachine,
    VirtualMachineInstance,
    VirtualMachineInstanceReplicaSet,
    VirtualMachineInstancePreset,
    VirtualMachineInstanceMigration,
    VirtualMachineInstancetype,
    VirtualMachineClusterInstancetype,
    VirtualMachinePreference,
    VirtualMachineClusterPreference,
    VirtualMachineSnapshot,
    VirtualMachineSnapshotContent,
    VirtualMachineRestore,
    VirtualMachineBackup,
    VirtualMachineBackupTracker,
    KubeVirt,
    ControllerRevision,
    PersistentVolumeClaim,
    Pod,
    Namespace,
);
