//! Which change gives which controller work, and what objects are indexed by.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use kubevirt_admission::instancetype::{Role, revision};
use kubevirt_api::condition;
use kubevirt_api::migration::VirtualMachineInstanceMigration;
use kubevirt_api::names::conditions::vmi::READY;
use kubevirt_api::names::{finalizers, labels};
use kubevirt_api::pool::VirtualMachinePool;
use kubevirt_api::replica_set::VirtualMachineInstanceReplicaSet;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec};
use kubevirt_component::{Change, NamespacedName, Store};

use super::index;
use crate::vmi::state_claim;

/// The reference to what controls an object.
pub fn controller(object: &impl Resource) -> Option<&OwnerReference> {
    let owners = object.meta().owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true))
}

fn owner_of_kind<O: Resource<DynamicType = ()>>(object: &impl Resource) -> Option<NamespacedName> {
    let owner = controller(object).filter(|owner| owner.kind == O::kind(&()))?;
    Some(NamespacedName::new(object.meta().namespace.as_deref().unwrap_or_default(), &owner.name))
}

/// The object itself.
pub fn itself<K: Resource<DynamicType = ()>>(change: &Change<K>) -> Vec<NamespacedName> {
    change.latest().map(|object| NamespacedName::of(object.as_ref())).into_iter().collect()
}

/// What controls the object, before and after the change.
fn owner<O: Resource<DynamicType = ()>, K: Resource>(change: &Change<K>) -> Vec<NamespacedName> {
    let versions = change.old.into_iter().chain(change.new);
    let mut owners: Vec<_> = versions.filter_map(|version| owner_of_kind::<O>(version.as_ref())).collect();
    owners.dedup();
    owners
}

/// The pool that an object belongs to.
pub fn pool<K: Resource>(change: &Change<K>) -> Vec<NamespacedName> {
    owner::<VirtualMachinePool, K>(change)
}

/// The replica sets that an instance belongs to or might, if it belongs to nobody, before and after the change: a set
/// that wanted it must hear of it, too, when it goes.
pub fn replica_sets(
    change: &Change<VirtualMachineInstance>,
    sets: &Store<VirtualMachineInstanceReplicaSet>,
) -> Vec<NamespacedName> {
    let mut owners = owner::<VirtualMachineInstanceReplicaSet, _>(change);
    let versions = change.old.into_iter().chain(change.new);
    let orphan = versions.flat_map(|vmi| namespace_of_orphan(vmi)).next();
    let candidates = orphan.into_iter().flat_map(|namespace| sets.by(index::NAMESPACE, &namespace));
    owners.extend(candidates.map(|set| NamespacedName::of(set.as_ref())));
    owners
}

/// Index: the namespace of an object.
pub fn namespace(object: &impl Resource) -> Vec<String> {
    object.meta().namespace.iter().cloned().collect()
}

/// Index: the namespace of an instance that nothing controls.
pub fn namespace_of_orphan(vmi: &VirtualMachineInstance) -> Vec<String> {
    if controller(vmi).is_some() { vec![] } else { namespace(vmi) }
}

/// Index: the namespace of a machine that a pool holds though nothing controls it any more.
pub fn namespace_of_abandoned(vm: &VirtualMachine) -> Vec<String> {
    let is_held = vm.finalizers().iter().any(|finalizer| finalizer == finalizers::POOL);
    if is_held && controller(vm).is_none() { namespace(vm) } else { vec![] }
}

/// The machine of the name of an instance, whose it is or which it stands in the way of. Instances of replica sets, and
/// most that users make, have none; and one that comes later looks for its instance by itself.
pub fn vm_of_vmi(
    change: &Change<VirtualMachineInstance>,
    vms: &Store<VirtualMachine>,
) -> Vec<NamespacedName> {
    let mut machine = itself(change);
    machine.retain(|key| vms.get(key).is_some());
    machine
}

/// The node that an instance came to, or on which it is no longer ready: its pod may have ended, and if the node does
/// not answer nobody else tells of that.
pub fn nodes_of_vmi(change: &Change<VirtualMachineInstance>) -> Vec<NamespacedName> {
    let on = |vmi: &VirtualMachineInstance| vmi.status.as_ref().and_then(|status| status.node_name.clone());
    let (before, after) = (change.old.and_then(|vmi| on(vmi)), change.new.and_then(|vmi| on(vmi)));
    let was_ready = change.old.is_some_and(|vmi| is_ready(vmi));
    let fell = was_ready && change.new.is_some_and(|vmi| !is_ready(vmi));
    // What else changes on an instance makes no difference to whether its node answers.
    if before == after && !fell {
        vec![]
    } else {
        after.map(|node| NamespacedName::new("", &node)).into_iter().collect()
    }
}

fn is_ready(vmi: &VirtualMachineInstance) -> bool {
    let all = vmi.status.as_ref().and_then(|status| status.conditions.as_deref());
    condition::find(all, READY).is_some_and(condition::Condition::is_true)
}

/// The instance of a launcher pod, or of the launcher pod that a pod of plugged volumes belongs to.
pub fn vmi_of_pod(change: &Change<Pod>, pods: Option<&Store<Pod>>) -> Vec<NamespacedName> {
    let direct = owner::<VirtualMachineInstance, Pod>(change);
    if !direct.is_empty() {
        return direct;
    }
    let launcher = change.latest().and_then(|pod| owner_of_kind::<Pod>(pod.as_ref()));
    let launcher = launcher.and_then(|name| pods?.get(&name));
    launcher.and_then(|pod| owner_of_kind::<VirtualMachineInstance>(pod.as_ref())).into_iter().collect()
}

/// The instance of a migration that is over, since no pod is started while one is under way.
pub fn vmi_of_ended_migration(change: &Change<VirtualMachineInstanceMigration>) -> Vec<NamespacedName> {
    let over = change.latest().filter(|migration| change.new.is_none() || !is_active(migration));
    over.map(|migration| vmi_key(migration)).into_iter().collect()
}

fn vmi_key(migration: &VirtualMachineInstanceMigration) -> NamespacedName {
    let name = migration.spec.vmi_name.clone().unwrap_or_default();
    NamespacedName::new(migration.namespace().unwrap_or_default(), name)
}

/// Whether a migration is yet to end.
pub fn is_active(migration: &VirtualMachineInstanceMigration) -> bool {
    use kubevirt_api::migration::MigrationPhase;
    let phase = migration.status.as_ref().and_then(|status| status.phase.as_ref());
    !matches!(phase, Some(MigrationPhase::Succeeded | MigrationPhase::Failed))
}

/// The machines or instances that use a volume.
pub fn users<V, K>(change: &Change<V>, of: &Store<K>) -> Vec<NamespacedName>
where
    V: Resource<DynamicType = ()>,
    K: Resource<DynamicType = ()> + 'static,
{
    let Some(volume) = change.latest() else { return vec![] };
    let key = NamespacedName::of(volume.as_ref()).to_string();
    of.by(index::VOLUME, &key).iter().map(|user| NamespacedName::of(user.as_ref())).collect()
}

/// The machines that refer to an instance type, a preference or a kept copy of one. What is in no namespace is for all.
pub fn users_of_type<K>(change: &Change<K>, vms: &Store<VirtualMachine>) -> Vec<NamespacedName>
where
    K: Resource<DynamicType = ()>,
{
    let Some(named) = change.latest() else { return vec![] };
    let NamespacedName { namespace, name } = NamespacedName::of(named.as_ref());
    let users = vms.by(index::TYPE, &name).into_iter().map(|vm| NamespacedName::of(vm.as_ref()));
    users.filter(|vm| namespace.is_empty() || vm.namespace == namespace).collect()
}

/// The instances with state beside their disks, for which a claim is made from a storage class.
pub fn with_state(vmis: &Store<VirtualMachineInstance>) -> Vec<NamespacedName> {
    let all = vmis.all().into_iter().filter(|vmi| state_claim::is_needed(vmi));
    all.map(|vmi| NamespacedName::of(vmi.as_ref())).collect()
}

/// The instances that use a claim as a volume or for their state.
pub fn users_of_claim(
    change: &Change<PersistentVolumeClaim>,
    vmis: &Store<VirtualMachineInstance>,
) -> Vec<NamespacedName> {
    let mut users = users(change, vmis);
    users.extend(change.latest().and_then(|claim| state_owner(claim)));
    users
}

fn state_owner(claim: &PersistentVolumeClaim) -> Option<NamespacedName> {
    let name = claim.labels().get(labels::PERSISTENT_STATE_FOR)?;
    Some(NamespacedName::new(claim.namespace().unwrap_or_default(), name))
}

/// Index: the UID of what controls an object.
pub fn owner_uid(object: &impl Resource) -> Vec<String> {
    controller(object).map(|owner| owner.uid.clone()).into_iter().collect()
}

/// Index: the node that an instance is on.
pub fn node_of_vmi(vmi: &VirtualMachineInstance) -> Vec<String> {
    vmi.status.as_ref().and_then(|status| status.node_name.clone()).into_iter().collect()
}

/// Index: the node that a pod is on.
pub fn node_of_pod(pod: &Pod) -> Vec<String> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).into_iter().collect()
}

/// Index: the context ID of an instance.
pub fn vsock_of_vmi(vmi: &VirtualMachineInstance) -> Vec<String> {
    vmi.status.as_ref().and_then(|status| status.vsockcid).map(|id| id.to_string()).into_iter().collect()
}

/// Index: the machine whose state a claim holds.
pub fn state_of_claim(claim: &PersistentVolumeClaim) -> Vec<String> {
    state_owner(claim).map(|owner| owner.to_string()).into_iter().collect()
}

/// Index: the instance that a migration moves.
pub fn vmi_of_migration(migration: &VirtualMachineInstanceMigration) -> Vec<String> {
    vec![vmi_key(migration).to_string()]
}

/// Index: the claims and data volumes of an instance.
pub fn volumes_of_vmi(vmi: &VirtualMachineInstance) -> Vec<String> {
    volumes(&vmi.namespace().unwrap_or_default(), &vmi.spec)
}

/// Index: the claims and data volumes of a machine, those of its templates among them.
pub fn volumes_of_vm(vm: &VirtualMachine) -> Vec<String> {
    let namespace = vm.namespace().unwrap_or_default();
    let spec = vm.spec.template.spec.as_ref();
    let mut all = spec.map(|spec| volumes(&namespace, spec)).unwrap_or_default();
    let templates = vm.spec.data_volume_templates.as_deref().unwrap_or_default();
    let names = templates.iter().filter_map(|template| template.metadata.as_ref()?.name.as_deref());
    all.extend(names.map(|name| format!("{namespace}/{name}")));
    all.sort();
    all.dedup();
    all
}

/// Index: the names of instance types, preferences and kept copies of them that a machine refers to.
pub fn types_of_vm(vm: &VirtualMachine) -> Vec<String> {
    let matchers = Role::ALL.into_iter().filter_map(|role| role.matcher(vm));
    let names = matchers.flat_map(|matcher| [matcher.name, matcher.revision_name]);
    let noted = Role::ALL.into_iter().filter_map(|role| revision::noted(role.status(vm)));
    let mut names: Vec<_> = names.chain(noted).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

fn volumes(namespace: &str, spec: &VirtualMachineInstanceSpec) -> Vec<String> {
    let volumes = spec.volumes.as_deref().unwrap_or_default().iter().filter_map(claim_name);
    let utility = spec.utility_volumes.as_deref().unwrap_or_default();
    let names = volumes.chain(utility.iter().map(|volume| volume.claim_name.as_str()));
    names.map(|name| format!("{namespace}/{name}")).collect()
}

/// The claim behind a volume; a data volume and its claim have one name.
pub fn claim_name(volume: &Volume) -> Option<&str> {
    let direct = volume.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.as_str());
    let data = || volume.data_volume.as_ref().map(|data| data.name.as_str());
    let dump = || volume.memory_dump.as_ref().map(|dump| dump.claim_name.as_str());
    let ephemeral = || Some(volume.ephemeral.as_ref()?.persistent_volume_claim.as_ref()?.claim_name.as_str());
    direct.or_else(data).or_else(dump).or_else(ephemeral)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::apps::v1::ControllerRevision;
    use kubevirt_component::IndexOf;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_instance_wakes_the_machine_of_its_name_if_there_is_one() {
        let vm = |namespace: &str| {
            let mut vm = VirtualMachine::default();
            vm.metadata.name = Some("web".to_owned());
            vm.metadata.namespace = Some(namespace.to_owned());
            vm
        };
        let mut vmi = VirtualMachineInstance::default();
        vmi.metadata.name = Some("web".to_owned());
        vmi.metadata.namespace = Some("here".to_owned());
        let vmi = Arc::new(vmi);
        let came = Change { old: None, new: Some(&vmi) };
        let went = Change { old: Some(&vmi), new: None };
        let key = NamespacedName::new("here", "web");
        for (machines, woken) in [(vec![vm("here"), vm("there")], vec![key]), (vec![vm("there")], vec![])] {
            let vms = Store::of(machines, []);
            assert_eq!(vm_of_vmi(&came, &vms), woken);
            assert_eq!(vm_of_vmi(&went, &vms), woken);
        }
    }

    #[test]
    fn an_instance_wakes_its_node_when_it_comes_and_when_it_is_no_longer_ready() {
        let vmi = |node: &str, ready: &str| -> Arc<VirtualMachineInstance> {
            let conditions = json!([{"type": "Ready", "status": ready}]);
            let status = json!({"nodeName": node, "conditions": conditions});
            Arc::new(
                serde_json::from_value(json!({"spec": {"domain": {"devices": {}}}, "status": status}))
                    .unwrap(),
            )
        };
        let cases = [
            (None, Some(vmi("a", "False")), Some("a")),
            (Some(vmi("a", "False")), Some(vmi("a", "True")), None),
            (Some(vmi("a", "True")), Some(vmi("a", "True")), None),
            (Some(vmi("a", "True")), Some(vmi("a", "False")), Some("a")),
            (Some(vmi("a", "True")), Some(vmi("b", "True")), Some("b")),
            (Some(vmi("a", "True")), None, None),
        ];
        for (old, new, woken) in cases {
            let change = Change { old: old.as_ref(), new: new.as_ref() };
            let woken: Vec<_> = woken.map(|node| NamespacedName::new("", node)).into_iter().collect();
            assert_eq!(nodes_of_vmi(&change), woken, "{old:?} {new:?}");
        }
    }

    #[test]
    fn an_orphan_wakes_the_sets_that_may_want_it_when_it_comes_and_when_it_goes() {
        let set = |namespace: &str| {
            let mut set = VirtualMachineInstanceReplicaSet::default();
            set.metadata.name = Some("web".to_owned());
            set.metadata.namespace = Some(namespace.to_owned());
            set
        };
        let sets = Store::of([set("here"), set("there")], [(index::NAMESPACE, namespace as IndexOf<_>)]);
        let mut orphan = VirtualMachineInstance::default();
        orphan.metadata.namespace = Some("here".to_owned());
        let mut owned = orphan.clone();
        let owner = OwnerReference { controller: Some(true), ..OwnerReference::default() };
        owned.metadata.owner_references = Some(vec![owner]);
        let (orphan, owned) = (Arc::new(orphan), Arc::new(owned));
        let key = NamespacedName::new("here", "web");
        let cases = [
            (None, Some(&orphan), vec![key.clone()]),
            (Some(&orphan), Some(&orphan), vec![key.clone()]),
            (Some(&orphan), Some(&owned), vec![key.clone()]),
            (Some(&orphan), None, vec![key]),
            (Some(&owned), None, vec![]),
        ];
        for (old, new, woken) in cases {
            assert_eq!(replica_sets(&Change { old, new }, &sets), woken, "{old:?} {new:?}");
        }
    }

    #[test]
    fn a_type_wakes_the_machines_that_refer_to_it() {
        let vm = |namespace: &str, spec: serde_json::Value, status: serde_json::Value| -> VirtualMachine {
            let mut spec = spec;
            spec["template"] = json!({});
            let meta = json!({"name": "web", "namespace": namespace});
            serde_json::from_value(json!({"metadata": meta, "spec": spec, "status": status})).unwrap()
        };
        let kept = json!({"instancetypeRef": {"controllerRevisionRef": {"name": "kept"}}});
        let machines = [
            vm("a", json!({"instancetype": {"name": "small"}}), kept),
            vm("b", json!({"preference": {"name": "small", "revisionName": "older"}}), json!({})),
            vm("c", json!({}), json!({})),
        ];
        let vms = Store::of(machines, [(index::TYPE, types_of_vm as IndexOf<_>)]);
        let woken = |namespace: Option<&str>, name: &str| -> Vec<String> {
            let mut object = ControllerRevision::default();
            object.metadata.namespace = namespace.map(str::to_owned);
            object.metadata.name = Some(name.to_owned());
            let object = Arc::new(object);
            let came = Change { old: None, new: Some(&object) };
            users_of_type(&came, &vms).into_iter().map(|key| key.namespace).collect()
        };
        assert_eq!(woken(None, "small"), ["a", "b"]);
        assert_eq!(woken(Some("b"), "small"), ["b"]);
        assert_eq!(woken(Some("a"), "kept"), ["a"]);
        assert_eq!(woken(Some("b"), "older"), ["b"]);
        assert!(woken(None, "large").is_empty() && woken(None, "").is_empty());
    }

    #[test]
    fn a_storage_class_wakes_the_instances_with_state() {
        let vmi = |name: &str, devices: serde_json::Value| -> VirtualMachineInstance {
            let object = json!({"metadata": {"name": name}, "spec": {"domain": {"devices": devices}}});
            serde_json::from_value(object).unwrap()
        };
        let plain = vmi("plain", json!({}));
        let vmis = Store::of([plain, vmi("kept", json!({"tpm": {"persistent": true}}))], []);
        assert_eq!(with_state(&vmis), [NamespacedName::new("", "kept")]);
    }
}
