//! What the cluster has, as last heard, and how it is looked up.

use std::sync::{Arc, OnceLock};

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, PersistentVolumeClaim, Pod, ResourceQuota};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Client;
use kubevirt_api::data_volume::{CDIConfig, DataVolume, StorageProfile};
use kubevirt_api::migration::VirtualMachineInstanceMigration;
use kubevirt_api::names::labels;
use kubevirt_api::names::values::app;
use kubevirt_api::pool::VirtualMachinePool;
use kubevirt_api::replica_set::VirtualMachineInstanceReplicaSet;
use kubevirt_api::snapshot::VirtualMachineSnapshot;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_component::{Store, Watch};
use tokio_util::sync::CancellationToken;

use super::{Queues, Types, trim, wakes};
use crate::metrics::{Counts, LABELS_CONFIG_MAP};

/// Names of indexes, and what their values are.
pub mod index {
    /// Any kind, by the UID of what controls it.
    pub const OWNER: &str = "owner";
    /// Instances that nothing controls, by their namespace.
    pub const ORPHAN: &str = "orphan";
    /// Machines that bear the finalizer of pools though nothing controls them, by their namespace.
    pub const ABANDONED: &str = "abandoned";
    /// Replica sets and quotas, by their namespace.
    pub const NAMESPACE: &str = "namespace";
    /// Instances and pods, by the node they are on.
    pub const NODE: &str = "node";
    /// Machines and instances, by each claim or data volume that they use, as `namespace/name`.
    pub const VOLUME: &str = "volume";
    /// Machines, by the name of each instance type, preference or kept copy that they refer to.
    pub const TYPE: &str = "type";
    /// Instances, by their context ID for VSOCK.
    pub const VSOCK: &str = "vsock";
    /// Claims of firmware and TPM state, by the machine they belong to, as `namespace/name`.
    pub const STATE_OF: &str = "state-of";
    /// Migrations, by their instance, as `namespace/name`.
    pub const INSTANCE: &str = "instance";
}

/// A store of each kind that controllers read. Clones share what is stored.
#[derive(Clone)]
pub struct Stores {
    /// Virtual machines, by owner, volume and instance type, and those that pools left behind.
    pub vms: Store<VirtualMachine>,
    /// Instances, by owner, node, volume and VSOCK context ID.
    pub vmis: Store<VirtualMachineInstance>,
    /// Migrations, by instance.
    pub migrations: Store<VirtualMachineInstanceMigration>,
    /// Replica sets.
    pub replica_sets: Store<VirtualMachineInstanceReplicaSet>,
    /// Pools.
    pub pools: Store<VirtualMachinePool>,
    /// Pods of launchers, plugged volumes and handlers, by owner and node; without what nobody here reads.
    pub pods: Store<Pod>,
    /// Claims, by owner and whose state they hold.
    pub claims: Store<PersistentVolumeClaim>,
    /// Data volumes, by owner, where the cluster has the importer.
    pub data_volumes: Store<DataVolume>,
    /// What is known of storage classes, where the cluster has the importer.
    pub storage_profiles: Store<StorageProfile>,
    /// How the importer is set up, where the cluster has it.
    pub importer: Store<CDIConfig>,
    /// Storage classes.
    pub storage_classes: Store<StorageClass>,
    /// Nodes.
    pub nodes: Store<Node>,
    /// Namespaces.
    pub namespaces: Store<Namespace>,
    /// Quotas, by namespace.
    pub quotas: Store<ResourceQuota>,
    /// Revisions, by owner.
    pub revisions: Store<ControllerRevision>,
    /// Instance types and preferences.
    pub types: Types,
    /// Snapshots of machines; without what nobody here reads.
    pub snapshots: Store<VirtualMachineSnapshot>,
    /// Which labels of machines Prometheus is told.
    pub label_settings: Store<ConfigMap>,
}

impl Stores {
    /// Starts a watch for each kind, and has changes fill the queues.
    pub fn start(
        client: &Client,
        queues: &Queues,
        counts: &Counts,
        namespace: &str,
        stop: &CancellationToken,
    ) -> Self {
        let (of_instances, of_migrations) = (counts.transitions.clone(), counts.transitions.clone());
        let vms = Watch::<VirtualMachine>::all(client.clone())
            .trim(trim::applied)
            .index(index::OWNER, wakes::owner_uid)
            .index(index::ABANDONED, wakes::namespace_of_abandoned)
            .index(index::VOLUME, wakes::volumes_of_vm)
            .index(index::TYPE, wakes::types_of_vm)
            .feeds(&queues.vms, wakes::itself)
            .feeds(&queues.pools, wakes::pool)
            .start(stop);
        let replica_sets = Watch::all(client.clone())
            .index(index::NAMESPACE, wakes::namespace)
            .feeds(&queues.replica_sets, wakes::itself)
            .start(stop);
        let (sets, machines) = (replica_sets.clone(), vms.clone());
        let vmis = Watch::<VirtualMachineInstance>::all(client.clone())
            .trim(trim::applied)
            .index(index::OWNER, wakes::owner_uid)
            .index(index::ORPHAN, wakes::namespace_of_orphan)
            .index(index::NODE, wakes::node_of_vmi)
            .index(index::VOLUME, wakes::volumes_of_vmi)
            .index(index::VSOCK, wakes::vsock_of_vmi)
            .feeds(&queues.vmis, wakes::itself)
            .feeds(&queues.vms, move |change| wakes::vm_of_vmi(change, &machines))
            .feeds(&queues.replica_sets, move |change| wakes::replica_sets(change, &sets))
            .feeds(&queues.nodes, wakes::nodes_of_vmi)
            .tells(move |change| of_instances.instance(change))
            .start(stop);
        Self {
            pods: pods(client, queues, stop),
            claims: claims(client, queues, &vms, &vmis, stop),
            data_volumes: data_volumes(client, queues, &vms, &vmis, stop),
            migrations: Watch::all(client.clone())
                .index(index::INSTANCE, wakes::vmi_of_migration)
                .feeds(&queues.vmis, wakes::vmi_of_ended_migration)
                .tells(move |change| of_migrations.migration(change))
                .start(stop),
            replica_sets,
            pools: Watch::all(client.clone()).feeds(&queues.pools, wakes::itself).start(stop),
            storage_profiles: Watch::all(client.clone()).optional().start(stop),
            importer: Watch::all(client.clone()).optional().start(stop),
            storage_classes: storage_classes(client, queues, &vmis, stop),
            nodes: Watch::all(client.clone())
                .trim(trim::node)
                .feeds(&queues.nodes, wakes::itself)
                .start(stop),
            namespaces: Watch::all(client.clone()).start(stop),
            quotas: Watch::all(client.clone()).index(index::NAMESPACE, wakes::namespace).start(stop),
            revisions: revisions(client, queues, &vms, stop),
            types: Types::start(client, queues, &vms, stop),
            snapshots: Watch::all(client.clone()).optional().trim(trim::snapshot).start(stop),
            label_settings: Watch::within(client.clone(), namespace)
                .fields(&format!("metadata.name={LABELS_CONFIG_MAP}"))
                .start(stop),
            vms,
            vmis,
        }
    }

    /// Comes back when every store has been filled once.
    pub async fn ready(&self) {
        self.vms.ready().await;
        self.vmis.ready().await;
        self.migrations.ready().await;
        self.replica_sets.ready().await;
        self.pools.ready().await;
        self.pods.ready().await;
        self.claims.ready().await;
        self.data_volumes.ready().await;
        self.storage_profiles.ready().await;
        self.importer.ready().await;
        self.storage_classes.ready().await;
        self.nodes.ready().await;
        self.namespaces.ready().await;
        self.quotas.ready().await;
        self.revisions.ready().await;
        self.types.ready().await;
    }
}

fn pods(client: &Client, queues: &Queues, stop: &CancellationToken) -> Store<Pod> {
    // A pod of plugged volumes belongs to a launcher pod, which is in the very store that is being started.
    let own: Arc<OnceLock<Store<Pod>>> = Arc::default();
    let seen = own.clone();
    let selector = format!("{} in ({},{},virt-handler)", labels::APP, app::LAUNCHER, app::HOTPLUG_DISK);
    let pods = Watch::<Pod>::all_without::<trim::Bulk>(client.clone())
        .labels(&selector)
        .trim(trim::pod)
        .index(index::OWNER, wakes::owner_uid)
        .index(index::NODE, wakes::node_of_pod)
        .feeds(&queues.vmis, move |change| wakes::vmi_of_pod(change, seen.get()))
        .start(stop);
    let _ = own.set(pods.clone());
    pods
}

fn claims(
    client: &Client,
    queues: &Queues,
    vms: &Store<VirtualMachine>,
    vmis: &Store<VirtualMachineInstance>,
    stop: &CancellationToken,
) -> Store<PersistentVolumeClaim> {
    let (vms, vmis) = (vms.clone(), vmis.clone());
    Watch::<PersistentVolumeClaim>::all(client.clone())
        .index(index::OWNER, wakes::owner_uid)
        .index(index::STATE_OF, wakes::state_of_claim)
        .feeds(&queues.vmis, move |change| wakes::users_of_claim(change, &vmis))
        .feeds(&queues.vms, move |change| wakes::users(change, &vms))
        .start(stop)
}

fn data_volumes(
    client: &Client,
    queues: &Queues,
    vms: &Store<VirtualMachine>,
    vmis: &Store<VirtualMachineInstance>,
    stop: &CancellationToken,
) -> Store<DataVolume> {
    let (vms, vmis) = (vms.clone(), vmis.clone());
    Watch::<DataVolume>::all(client.clone())
        .optional()
        .index(index::OWNER, wakes::owner_uid)
        .feeds(&queues.vmis, move |change| wakes::users(change, &vmis))
        .feeds(&queues.vms, move |change| wakes::users(change, &vms))
        .start(stop)
}

fn storage_classes(
    client: &Client,
    queues: &Queues,
    vmis: &Store<VirtualMachineInstance>,
    stop: &CancellationToken,
) -> Store<StorageClass> {
    let vmis = vmis.clone();
    Watch::all(client.clone()).retries(&queues.vmis, move |_| wakes::with_state(&vmis)).start(stop)
}

fn revisions(
    client: &Client,
    queues: &Queues,
    vms: &Store<VirtualMachine>,
    stop: &CancellationToken,
) -> Store<ControllerRevision> {
    let vms = vms.clone();
    Watch::all(client.clone())
        .index(index::OWNER, wakes::owner_uid)
        .feeds(&queues.pools, wakes::pool)
        .retries(&queues.vms, move |change| wakes::users_of_type(change, &vms))
        .start(stop)
}
