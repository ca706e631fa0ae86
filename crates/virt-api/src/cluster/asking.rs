//! The objects as rules see them: what is known, and a note of what is not.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod};
use kube::Resource;
use kubevirt_admission::Objects;
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
use kubevirt_component::{NamespacedName, Store};
use serde_json::Value;

use super::Cluster;
use super::question::{Answer, Fetch, Fetched, Question};

/// The index by which objects are found by their namespace.
pub(super) const NAMESPACE: &str = "namespace";

/// Where [`NAMESPACE`] finds an object.
pub(super) fn namespace_of<K: Resource>(object: &K) -> Vec<String> {
    object.meta().namespace.clone().into_iter().collect()
}

/// What was fetched for a review.
pub(super) type Found = HashMap<Question, Answer>;

/// The cluster as rules see it during one run.
pub(super) struct Asking<'a> {
    cluster: &'a Cluster,
    found: &'a Found,
    missing: RefCell<HashMap<Question, Fetch>>,
}

impl<'a> Asking<'a> {
    pub(super) fn new(cluster: &'a Cluster, found: &'a Found) -> Self {
        Self { cluster, found, missing: RefCell::default() }
    }

    /// What was asked for and is not known.
    pub(super) fn missing(self) -> HashMap<Question, Fetch> {
        self.missing.into_inner()
    }

    /// What is known of the answer; if nothing, it is noted that it is missing.
    fn known<T: Clone + Default + 'static>(&self, question: Option<(Question, Fetch)>) -> T {
        let Some((question, fetch)) = question else { return T::default() };
        match self.found.get(&question) {
            Some(answer) => answer.downcast_ref::<T>().cloned().unwrap_or_default(),
            None => {
                self.missing.borrow_mut().insert(question, fetch);
                T::default()
            }
        }
    }

    fn one<K: Fetched>(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.known(Question::one::<K>(namespace, name))
    }

    fn all<K: Fetched>(&self, namespace: &str) -> Vec<Arc<K>> {
        self.known(Question::all::<K>(namespace))
    }

    /// What is in a store, or else on the API server: the object may be newer than what the store has seen.
    fn stored<K: Fetched>(&self, store: &Store<K>, namespace: &str, name: &str) -> Option<Arc<K>> {
        store.get(&NamespacedName::new(namespace, name)).or_else(|| self.one(namespace, name))
    }
}

macro_rules! objects {
    (@one $self:ident, $kind:ty, $namespace:ident, $name:ident) => {
        $self.one::<$kind>($namespace, $name)
    };
    (@one $self:ident, $kind:ty, $namespace:ident, $name:ident, $store:ident) => {
        $self.stored(&$self.cluster.$store, $namespace, $name)
    };
    ($($kind:ty: $by_name:ident, $all:ident $(in $store:ident)?;)+) => {
        $(
            fn $by_name(&self, namespace: &str, name: &str) -> Option<Arc<$kind>> {
                objects!(@one self, $kind, namespace, name $(, $store)?)
            }

            fn $all(&self, namespace: &str) -> Vec<Arc<$kind>> {
                self.all::<$kind>(namespace)
            }
        )+
    };
}

impl Objects for Asking<'_> {
    objects! {
        VirtualMachine: vm, vms;
        VirtualMachineInstance: vmi, vmis;
        VirtualMachineInstanceReplicaSet: replica_set, replica_sets;
        VirtualMachineInstanceMigration: migration, migrations;
        VirtualMachineInstancetype: instancetype, instancetypes in instancetypes;
        VirtualMachineClusterInstancetype: cluster_instancetype, cluster_instancetypes in cluster_instancetypes;
        VirtualMachinePreference: preference, preferences in preferences;
        VirtualMachineClusterPreference: cluster_preference, cluster_preferences in cluster_preferences;
        VirtualMachineSnapshot: snapshot, snapshots;
        VirtualMachineSnapshotContent: snapshot_content, snapshot_contents;
        VirtualMachineRestore: restore, restores;
        VirtualMachineBackup: backup, backups;
        VirtualMachineBackupTracker: backup_tracker, backup_trackers;
        KubeVirt: kubevirt, kubevirts;
        ControllerRevision: controller_revision, controller_revisions;
        PersistentVolumeClaim: claim, claims;
        Pod: pod, pods;
        Namespace: namespace, namespaces;
    }

    fn preset(&self, namespace: &str, name: &str) -> Option<Arc<VirtualMachineInstancePreset>> {
        self.stored(&self.cluster.presets, namespace, name)
    }

    /// Every new instance asks for them.
    fn presets(&self, namespace: &str) -> Vec<Arc<VirtualMachineInstancePreset>> {
        self.cluster.presets.by(NAMESPACE, namespace)
    }

    fn other(&self, _: &str, _: &str) -> Option<Arc<Value>> {
        None
    }

    /// Nobody can list all objects of all kinds; rules ask for them by kind and name.
    fn others(&self, _: &str) -> Vec<Arc<Value>> {
        Vec::new()
    }

    fn untyped(&self, kind: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.known(Question::untyped(kind, namespace, name))
    }
}
