//! What is known of an instance and of all that it has to do with.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use kubevirt_admission::ClusterConfig;
use kubevirt_api::data_volume::DataVolume;
use kubevirt_api::names::labels;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{VirtualMachineInstanceStatus, VmiPhase};
use kubevirt_component::{NamespacedName, Store};

use super::plan::Trouble;
use super::{pods, state_claim, topology};
use crate::context::{self, Context, Settings, Stores, index};

/// What is known of an instance and of all that it has to do with.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The instance.
    pub vmi: Arc<VirtualMachineInstance>,
    /// Whether the machine that it belongs to is still there.
    pub has_owner: bool,
    /// All pods that the instance controls.
    pub pods: Vec<Arc<Pod>>,
    /// All pods that those control.
    pub attachments: Vec<Arc<Pod>>,
    /// Whether the API server itself was asked for the pods.
    pub pods_confirmed: bool,
    /// The claims that its volumes name, by name.
    pub claims: BTreeMap<String, Arc<PersistentVolumeClaim>>,
    /// The data volumes behind its volumes, by name.
    pub data_volumes: BTreeMap<String, Arc<DataVolume>>,
    /// How storage is set up.
    pub storage: state_claim::Storage,
    /// Whether a migration of the instance is under way.
    pub migrates: bool,
    /// The lowest frequency of time stamp counters in the cluster, if the guest depends on it.
    pub tsc_frequency: i64,
    /// A context ID for VSOCK that nobody else has.
    pub vsock_id: i64,
    /// The settings of the cluster.
    pub config: Arc<ClusterConfig>,
    /// What the program was started with.
    pub settings: Arc<Settings>,
    /// What went wrong with the steps of the last plan.
    pub trouble: Option<Trouble>,
}

impl Observed {
    /// Looks the instance up; nothing if it is gone.
    pub fn look_up(context: &Context, key: &NamespacedName) -> Option<Self> {
        let stores = &context.stores;
        let vmi = stores.vmis.get(key)?;
        let config = context.config();
        let pods = stores.pods.by(index::OWNER, &vmi.uid().unwrap_or_default());
        let (claims, data_volumes) = volumes(stores, &vmi);
        let migrations = stores.migrations.by(index::INSTANCE, &key.to_string());
        Some(Self {
            has_owner: has_owner(&stores.vms, &vmi),
            attachments: attachments(stores, &pods),
            pods,
            pods_confirmed: false,
            claims,
            data_volumes,
            storage: state_claim::Storage::look_up(stores, &vmi, &config),
            migrates: migrations.iter().any(|migration| context::is_active(migration)),
            tsc_frequency: topology::lowest_frequency(stores, &vmi, &config),
            vsock_id: free_vsock_id(stores, &vmi),
            settings: context.settings.clone(),
            config,
            trouble: None,
            vmi,
        })
    }

    /// The instance's status, which may be empty.
    pub fn status(&self) -> &VirtualMachineInstanceStatus {
        static EMPTY: std::sync::LazyLock<VirtualMachineInstanceStatus> =
            std::sync::LazyLock::new(VirtualMachineInstanceStatus::default);
        self.vmi.status.as_ref().unwrap_or(&EMPTY)
    }

    /// The instance's phase; one that nobody has looked at is pending.
    pub fn phase(&self) -> VmiPhase {
        self.status().phase.clone().filter(|phase| !phase.is_empty()).unwrap_or(VmiPhase::Pending)
    }

    /// Whether the guest has ended for good.
    pub fn is_final(&self) -> bool {
        matches!(self.phase(), VmiPhase::Succeeded | VmiPhase::Failed)
    }

    /// Whether the node's handler leads, and writes the status too.
    pub fn is_handed_over(&self) -> bool {
        matches!(self.phase(), VmiPhase::Scheduled | VmiPhase::Running)
    }

    /// Whether someone deleted the instance.
    pub fn is_deleted(&self) -> bool {
        self.vmi.metadata.deletion_timestamp.is_some()
    }

    /// Whether the instance receives a guest from elsewhere.
    pub fn is_receiver(&self) -> bool {
        let mark = kubevirt_api::names::annotations::CREATE_MIGRATION_TARGET;
        self.vmi.annotations().get(mark).is_some_and(|value| value == "true")
    }

    /// Whether the instance receives a guest, and the sender has not been heard of yet.
    pub fn waits_for_sender(&self) -> bool {
        self.is_receiver() && !self.vmi.labels().contains_key(labels::MIGRATION_TARGET_NODE_NAME)
    }

    /// The pod that stands for the instance now: the launcher's, or else a temporary one.
    pub fn pod(&self) -> Option<&Arc<Pod>> {
        self.launcher().or_else(|| pods::current(&self.vmi, &self.pods))
    }

    /// The launcher pod that stands for the instance now.
    pub fn launcher(&self) -> Option<&Arc<Pod>> {
        pods::current(&self.vmi, self.pods.iter().filter(|pod| !pods::is_temporary(pod)))
    }

    /// The pods that hold plugged volumes for a launcher pod.
    pub fn attachments_of(&self, launcher: &Pod) -> Vec<&Arc<Pod>> {
        let own = |pod: &&Arc<Pod>| {
            context::controller(pod.as_ref()).map(|owner| &owner.uid) == launcher.metadata.uid.as_ref()
        };
        self.attachments.iter().filter(own).collect()
    }
}

fn has_owner(vms: &Store<VirtualMachine>, vmi: &VirtualMachineInstance) -> bool {
    let kind = <VirtualMachine as kube::Resource>::kind(&());
    let Some(owner) = context::controller(vmi).filter(|owner| owner.kind == kind) else { return false };
    let name = NamespacedName::new(vmi.namespace().unwrap_or_default(), owner.name.clone());
    // One that cannot be read is there, and may be the owner.
    vms.is_unreadable(&name) || vms.get(&name).is_some_and(|vm| vm.uid().as_ref() == Some(&owner.uid))
}

fn attachments(stores: &Stores, launchers: &[Arc<Pod>]) -> Vec<Arc<Pod>> {
    let uids = launchers.iter().filter_map(|pod| pod.uid());
    uids.flat_map(|uid| stores.pods.by(index::OWNER, &uid)).collect()
}

type Claims = BTreeMap<String, Arc<PersistentVolumeClaim>>;
type DataVolumes = BTreeMap<String, Arc<DataVolume>>;

fn volumes(stores: &Stores, vmi: &VirtualMachineInstance) -> (Claims, DataVolumes) {
    let namespace = vmi.namespace().unwrap_or_default();
    let volumes = vmi.spec.volumes.as_deref().unwrap_or_default();
    let utility = vmi.spec.utility_volumes.as_deref().unwrap_or_default();
    let names = volumes.iter().filter_map(context::claim_name);
    let names = names.chain(utility.iter().map(|volume| volume.claim_name.as_str()));
    let (mut claims, mut data_volumes) = (Claims::new(), DataVolumes::new());
    for name in names {
        let mut data_volume = name.to_owned();
        if let Some(claim) = stores.claims.get(&NamespacedName::new(&namespace, name)) {
            if let Some(owner) = super::volumes::data_volume_of(&claim) {
                data_volume = owner.to_owned();
            }
            claims.insert(name.to_owned(), claim);
        }
        if let Some(found) = stores.data_volumes.get(&NamespacedName::new(&namespace, &data_volume)) {
            data_volumes.insert(data_volume, found);
        }
    }
    (claims, data_volumes)
}

/// Derived from the instance, so that nothing has to be remembered; the next one if somebody has it.
fn free_vsock_id(stores: &Stores, vmi: &VirtualMachineInstance) -> i64 {
    // Up to 2 are taken: hypervisor, loopback, host.
    const FIRST: u64 = 3;
    const COUNT: u64 = u32::MAX as u64 - FIRST;
    if vmi.spec.domain.devices.autoattach_vsock != Some(true) {
        return 0;
    }
    let uid = vmi.uid().unwrap_or_default();
    let start = super::names::hash(uid.as_bytes());
    let mut ids =
        (0..COUNT).map(|step| i64::try_from(FIRST + start.wrapping_add(step) % COUNT).unwrap_or_default());
    let free = |id: &i64| {
        stores.vmis.by(index::VSOCK, &id.to_string()).iter().all(|other| other.uid().as_ref() == Some(&uid))
    };
    ids.find(free).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_machine_that_cannot_be_read_is_still_there() {
        let owner = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": "u", "controller": true,
        });
        let meta = json!({"namespace": "a", "name": "web", "ownerReferences": [owner]});
        let vmi =
            VirtualMachineInstance { metadata: serde_json::from_value(meta).unwrap(), ..Default::default() };
        let vm = |uid: &str| {
            let meta = json!({"namespace": "a", "name": "web", "uid": uid});
            VirtualMachine { metadata: serde_json::from_value(meta).unwrap(), ..Default::default() }
        };
        let none = || Store::of([], []);
        let cases = [
            (none(), false),
            (Store::of([vm("u")], []), true),
            (Store::of([vm("another")], []), false),
            (none().with_unreadable(NamespacedName::new("a", "web")), true),
            (none().with_unreadable(NamespacedName::new("b", "web")), false),
        ];
        for (number, (vms, expected)) in cases.into_iter().enumerate() {
            assert_eq!(has_owner(&vms, &vmi), expected, "{number}");
        }
    }
}
