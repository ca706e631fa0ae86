//! What machines take their size and settings from.

use std::fmt::Debug;

use kube::{Client, Resource};
use kubevirt_admission::KnownObjects;
use kubevirt_admission::instancetype::{Role, Scope};
use kubevirt_api::instancetype::{VirtualMachineClusterInstancetype, VirtualMachineInstancetype};
use kubevirt_api::names::labels::INSTANCETYPE_VENDOR;
use kubevirt_api::preference::{VirtualMachineClusterPreference, VirtualMachinePreference};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_component::{NamespacedName, Store, Watch};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::{Queues, wakes};

/// Stores of instance types and preferences. Clones share what is stored.
#[derive(Clone)]
pub struct Types {
    instancetypes: Store<VirtualMachineInstancetype>,
    cluster_instancetypes: Store<VirtualMachineClusterInstancetype>,
    preferences: Store<VirtualMachinePreference>,
    cluster_preferences: Store<VirtualMachineClusterPreference>,
}

impl Types {
    /// Begins to watch them, and has machines tried again that failed for want of one.
    pub fn start(
        client: &Client,
        queues: &Queues,
        vms: &Store<VirtualMachine>,
        stop: &CancellationToken,
    ) -> Self {
        Self {
            instancetypes: watch(client, queues, vms, stop),
            cluster_instancetypes: watch(client, queues, vms, stop),
            preferences: watch(client, queues, vms, stop),
            cluster_preferences: watch(client, queues, vms, stop),
        }
    }

    /// Comes back when all have been listed once.
    pub async fn ready(&self) {
        self.instancetypes.ready().await;
        self.cluster_instancetypes.ready().await;
        self.preferences.ready().await;
        self.cluster_preferences.ready().await;
    }

    /// Those of the names that a machine refers to, whether they are kept as copies or not.
    pub fn named_by(&self, vm: &VirtualMachine) -> KnownObjects {
        let namespace = vm.metadata.namespace.as_deref().unwrap_or_default();
        let name = |role: Role| role.matcher(vm).map(|matcher| matcher.name.to_owned()).unwrap_or_default();
        let (instancetype, preference) = (name(Role::Instancetype), name(Role::Preference));
        let own = |name: &str| NamespacedName::new(namespace, name);
        let shared = |name: &str| NamespacedName::new("", name);
        KnownObjects {
            instancetypes: self.instancetypes.get(&own(&instancetype)).into_iter().collect(),
            cluster_instancetypes: self
                .cluster_instancetypes
                .get(&shared(&instancetype))
                .into_iter()
                .collect(),
            preferences: self.preferences.get(&own(&preference)).into_iter().collect(),
            cluster_preferences: self.cluster_preferences.get(&shared(&preference)).into_iter().collect(),
            ..KnownObjects::default()
        }
    }

    /// Who made an instance type or preference, if it is there and says so.
    pub fn vendor(&self, role: Role, scope: Scope, namespace: &str, name: &str) -> Option<String> {
        fn vendor<K: Resource>(store: &Store<K>, namespace: &str, name: &str) -> Option<String> {
            let object = store.get(&NamespacedName::new(namespace, name))?;
            object.meta().labels.as_ref()?.get(INSTANCETYPE_VENDOR).cloned()
        }
        match (role, scope) {
            (Role::Instancetype, Scope::Namespace) => vendor(&self.instancetypes, namespace, name),
            (Role::Instancetype, Scope::Cluster) => vendor(&self.cluster_instancetypes, "", name),
            (Role::Preference, Scope::Namespace) => vendor(&self.preferences, namespace, name),
            (Role::Preference, Scope::Cluster) => vendor(&self.cluster_preferences, "", name),
        }
    }
}

fn watch<K>(
    client: &Client,
    queues: &Queues,
    vms: &Store<VirtualMachine>,
    stop: &CancellationToken,
) -> Store<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
    let vms = vms.clone();
    Watch::all(client.clone())
        .optional()
        .retries(&queues.vms, move |change| wakes::users_of_type(change, &vms))
        .start(stop)
}
