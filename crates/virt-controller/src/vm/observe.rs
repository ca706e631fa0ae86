//! What is known of a machine and of all that its plan depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kubevirt_admission::instancetype::{Role, revision};
use kubevirt_admission::{ClusterConfig, KnownObjects};
use kubevirt_api::data_volume::DataVolume;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_component::NamespacedName;

use super::decide::data_volumes;
use super::view;
use crate::context::{Context, Stores, index};

/// What is known.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The machine.
    pub vm: Arc<VirtualMachine>,
    /// The instance of the machine's name, whoever it belongs to.
    pub instance: Option<Arc<VirtualMachineInstance>>,
    /// The revisions that belong to the machine.
    pub revisions: Vec<Arc<ControllerRevision>>,
    /// The DataVolumes that the machine names, by name.
    pub data_volumes: BTreeMap<String, Arc<DataVolume>>,
    /// Whether the cluster has DataVolumes.
    pub data_volumes_served: bool,
    /// The claims that the machine names, by name.
    pub claims: BTreeMap<String, Arc<PersistentVolumeClaim>>,
    /// Instance types, preferences and kept copies of them that the machine names.
    pub objects: KnownObjects,
    /// What the cluster is set to.
    pub config: Arc<ClusterConfig>,
    /// The labels of the machine's namespace.
    pub namespace_labels: BTreeMap<String, String>,
    /// What follows from a machine to its running instance.
    pub mirrored: Mirrored,
}

/// Labels and annotations that follow from a machine's template to its running instance; `prefix*` stands for many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mirrored {
    /// Labels.
    pub labels: Vec<String>,
    /// Annotations.
    pub annotations: Vec<String>,
}

/// Gathers what is known of a machine; nothing if there is no such machine.
pub fn observe(cx: &Context, key: &NamespacedName) -> Option<Observed> {
    let stores = &cx.stores;
    let vm = stores.vms.get(key)?;
    let uid = vm.metadata.uid.as_deref().unwrap_or_default();
    let revisions = stores.revisions.by(index::OWNER, uid);
    let names = volume_names(&vm);
    let in_namespace = |name: &String| NamespacedName::new(&key.namespace, name);
    let data_volumes =
        names.iter().filter_map(|name| Some((name.clone(), stores.data_volumes.get(&in_namespace(name))?)));
    let claims =
        names.iter().filter_map(|name| Some((name.clone(), stores.claims.get(&in_namespace(name))?)));
    let namespace = stores.namespaces.get(&NamespacedName::new("", &key.namespace));
    Some(Observed {
        instance: stores.vmis.get(key),
        data_volumes: data_volumes.collect(),
        data_volumes_served: stores.data_volumes.served(),
        claims: claims.collect(),
        objects: objects(stores, &vm, &revisions),
        revisions,
        config: cx.config(),
        namespace_labels: namespace.and_then(|found| found.metadata.labels.clone()).unwrap_or_default(),
        mirrored: Mirrored {
            labels: cx.settings.mirrored_labels.clone(),
            annotations: cx.settings.mirrored_annotations.clone(),
        },
        vm,
    })
}

/// The claims and DataVolumes that a machine names; a DataVolume and its claim have one name.
fn volume_names(vm: &VirtualMachine) -> BTreeSet<String> {
    let volumes = view::volumes(vm).iter().filter_map(view::claim_name).map(str::to_owned);
    let templates = vm.spec.data_volume_templates.iter().flatten();
    let templates = templates.map(|template| data_volumes::name(template).to_owned());
    let dump = vm.status.as_ref().and_then(|status| status.memory_dump_request.as_ref());
    volumes.chain(templates).chain(dump.map(|dump| dump.claim_name.clone())).collect()
}

/// What a machine refers to. Copies that were made for it are to be given, as far as they are not noted in it.
pub(crate) fn objects(
    stores: &Stores,
    vm: &VirtualMachine,
    owned: &[Arc<ControllerRevision>],
) -> KnownObjects {
    KnownObjects { controller_revisions: kept(stores, vm, owned), ..stores.types.named_by(vm) }
}

/// Copies of instance types and preferences: those made for the machine, and those that it names itself.
fn kept(
    stores: &Stores,
    vm: &VirtualMachine,
    owned: &[Arc<ControllerRevision>],
) -> Vec<Arc<ControllerRevision>> {
    let namespace = vm.metadata.namespace.as_deref().unwrap_or_default();
    let mut names: BTreeSet<String> = BTreeSet::new();
    for role in Role::ALL {
        names.extend(role.matcher(vm).map(|matcher| matcher.revision_name.to_owned()));
        names.extend(revision::noted(role.status(vm)).map(str::to_owned));
    }
    for data in owned.iter().filter_map(|revision| revision.data.as_ref()) {
        let named = ["/spec/instancetype/revisionName", "/spec/preference/revisionName"];
        names.extend(named.iter().filter_map(|path| Some(data.0.pointer(path)?.as_str()?.to_owned())));
    }
    let is_owned = |name: &String| owned.iter().any(|owned| owned.metadata.name.as_ref() == Some(name));
    let foreign = names.iter().filter(|name| !name.is_empty() && !is_owned(name));
    let foreign = foreign.filter_map(|name| stores.revisions.get(&NamespacedName::new(namespace, name)));
    owned.iter().cloned().chain(foreign).collect()
}
