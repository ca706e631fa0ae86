//! Carries out what was decided for a pool.

use std::fmt::Debug;

use futures_util::future::join_all;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Resource, ResourceExt};
use kubevirt_api::condition;
use kubevirt_api::data_volume::DataVolume;
use kubevirt_api::names::conditions::pool::REPLICA_PAUSED;
use kubevirt_api::names::events::objects as events;
use kubevirt_api::names::{finalizers, labels};
use kubevirt_api::pool::{VirtualMachinePool, VirtualMachinePoolStatus};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_component::events::Kind;
use kubevirt_component::{NamespacedName, patch};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::decide::{Action, Plan};
use crate::context::{Context, claim_name};

/// Does all of it, as far as possible: the revision first, for machines refer to it, the rest at once.
pub async fn apply(context: &Context, pool: &VirtualMachinePool, plan: &Plan) -> kube::Result<()> {
    let (first, rest): (Vec<_>, Vec<_>) =
        plan.actions.iter().partition(|action| matches!(action, Action::KeepRevision(_)));
    for action in first {
        carry_out(context, pool, action).await?;
    }
    let outcomes = join_all(rest.into_iter().map(|action| carry_out(context, pool, action))).await;
    // The first in their order: which one fails first is up to chance, and would be news each time.
    let outcome: kube::Result<()> = outcomes.into_iter().collect();
    if let Err(error) = outcome.as_ref()
        && !patch::is_conflict(error)
    {
        context.recorder.event(pool, Kind::Warning, plan.stage.reason(), error.to_string());
    }
    outcome
}

async fn carry_out(context: &Context, pool: &VirtualMachinePool, action: &Action) -> kube::Result<()> {
    let tell = |reason, message: String| context.recorder.event(pool, Kind::Normal, reason, message);
    match action {
        Action::HoldPool(hold) => {
            change(context, pool, |pool| hold_by(&mut pool.metadata.finalizers, *hold)).await
        }
        Action::KeepRevision(revision) => create(context, &**revision).await.map(|_| ()),
        Action::Create(vm) => {
            if create(context, &**vm).await? {
                tell(events::SUCCESSFUL_CREATE, format!("Created machine {}", vm.name_any()));
            }
            Ok(())
        }
        Action::Delete { machine, foreground } => {
            let parameters = if *foreground { DeleteParams::foreground() } else { DeleteParams::default() };
            delete(context, &**machine, parameters).await?;
            tell(events::SUCCESSFUL_DELETE, format!("Deleted machine {}", machine.name_any()));
            Ok(())
        }
        Action::LetGo { machine, keep_disks } => {
            if *keep_disks {
                leave_disks(context, machine).await?;
            }
            change(context, &**machine, |vm| hold_by(&mut vm.metadata.finalizers, false)).await
        }
        Action::Release(machine) => change(context, &**machine, |vm| release(vm, pool)).await,
        Action::Update { seen, wanted } => {
            let api = context.api::<VirtualMachine>(&seen.namespace().unwrap_or_default());
            patch::write(&api, &**seen, &**wanted).await?;
            tell(events::SUCCESSFUL_UPDATE, format!("Updated machine {}", seen.name_any()));
            Ok(())
        }
        Action::Restart(vmi) => {
            delete(context, &**vmi, DeleteParams::default()).await?;
            tell(events::SUCCESSFUL_DELETE, format!("Restarted machine {} for an update", vmi.name_any()));
            Ok(())
        }
        Action::Relabel { instance, revision } => {
            change(context, &**instance, |vmi: &mut VirtualMachineInstance| {
                vmi.labels_mut().insert(labels::POOL_REVISION_NAME.to_owned(), revision.clone());
            })
            .await
        }
        Action::ForgetRevision(name) => {
            let api = context.api::<ControllerRevision>(&pool.namespace().unwrap_or_default());
            ignore_gone(api.delete(name, &DeleteParams::default()).await.map(|_| ()))
        }
    }
}

/// Makes the object, and says whether it is new.
async fn create<K>(context: &Context, object: &K) -> kube::Result<bool>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Serialize
        + DeserializeOwned
        + Clone
        + Debug,
{
    let api = context.api::<K>(&object.namespace().unwrap_or_default());
    match api.create(&PostParams::default(), object).await {
        Ok(_) => Ok(true),
        // Made before; the store will tell.
        Err(error) if patch::is_taken(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

async fn delete<K>(context: &Context, object: &K, parameters: DeleteParams) -> kube::Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned + Clone + Debug,
{
    let api = context.api::<K>(&object.namespace().unwrap_or_default());
    let preconditions = Some(Preconditions { uid: object.uid(), ..Preconditions::default() });
    let parameters = DeleteParams { preconditions, ..parameters };
    ignore_gone(api.delete(&object.name_any(), &parameters).await.map(|_| ()))
}

async fn change<K>(context: &Context, seen: &K, change: impl FnOnce(&mut K)) -> kube::Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Serialize
        + DeserializeOwned
        + Clone
        + Debug
        + PartialEq,
{
    let api = context.api::<K>(&seen.namespace().unwrap_or_default());
    let mut wanted = seen.clone();
    change(&mut wanted);
    ignore_gone(patch::write(&api, seen, &wanted).await.map(|_| ()))
}

fn ignore_gone(outcome: kube::Result<()>) -> kube::Result<()> {
    match outcome {
        Err(error) if patch::is_gone(&error) => Ok(()),
        outcome => outcome,
    }
}

fn hold_by(all: &mut Option<Vec<String>>, hold: bool) {
    let all = all.get_or_insert_default();
    all.retain(|finalizer| finalizer != finalizers::POOL);
    if hold {
        all.push(finalizers::POOL.to_owned());
    }
}

/// A machine that is nobody's is held by nobody either, or it could never go.
fn release(vm: &mut VirtualMachine, pool: &VirtualMachinePool) {
    disown(&mut vm.metadata.owner_references, pool.metadata.uid.as_deref());
    hold_by(&mut vm.metadata.finalizers, false);
}

type Owners = Option<Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference>>;

fn disown(owners: &mut Owners, owner: Option<&str>) {
    if let Some(owners) = owners {
        owners.retain(|reference| Some(reference.uid.as_str()) != owner);
    }
}

/// The disks of a machine that goes belong to nobody, so that they stay.
async fn leave_disks(context: &Context, vm: &VirtualMachine) -> kube::Result<()> {
    let namespace = vm.namespace().unwrap_or_default();
    let uid = vm.uid();
    for name in disks(vm) {
        let key = NamespacedName::new(namespace.as_str(), name);
        if let Some(claim) = context.stores.claims.get(&key) {
            change(context, &*claim, |it: &mut PersistentVolumeClaim| {
                disown(&mut it.metadata.owner_references, uid.as_deref());
            })
            .await?;
        }
        if let Some(data) = context.stores.data_volumes.get(&key) {
            change(context, &*data, |it: &mut DataVolume| {
                disown(&mut it.metadata.owner_references, uid.as_deref());
            })
            .await?;
        }
    }
    Ok(())
}

fn disks(vm: &VirtualMachine) -> Vec<String> {
    let templates = vm.spec.data_volume_templates.iter().flatten();
    let made = templates.filter_map(|template| template.metadata.as_ref()?.name.clone());
    let spec = vm.spec.template.spec.as_ref();
    let used = spec.into_iter().flat_map(|spec| spec.volumes.iter().flatten()).filter_map(claim_name);
    made.chain(used.map(str::to_owned)).collect()
}

/// Writes the status if it changed, and says when the pool stops or goes on.
pub async fn write_status(
    context: &Context,
    pool: &VirtualMachinePool,
    status: VirtualMachinePoolStatus,
) -> kube::Result<()> {
    let api = context.api::<VirtualMachinePool>(&pool.namespace().unwrap_or_default());
    let is_paused = |status: Option<&VirtualMachinePoolStatus>| {
        condition::find(status.and_then(|status| status.conditions.as_deref()), REPLICA_PAUSED).is_some()
    };
    let (before, after) = (is_paused(pool.status.as_ref()), is_paused(Some(&status)));
    let mut wanted = pool.clone();
    wanted.status = Some(status);
    match patch::write_status(&api, pool, &wanted).await {
        // The pool went with its last finalizer, or our own write of it came in between and brings it up again.
        Err(error) if patch::is_gone(&error) || patch::is_conflict(&error) => return Ok(()),
        outcome => outcome?,
    };
    match (before, after) {
        (false, true) => context.recorder.event(pool, Kind::Normal, events::SUCCESSFUL_PAUSED, "Paused"),
        (true, false) => context.recorder.event(pool, Kind::Normal, events::SUCCESSFUL_RESUME, "Resumed"),
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_machine_that_leaves_its_pool_can_go() {
        let pool = json!({"metadata": {"name": "desk", "uid": "ours"}, "spec": {
            "selector": {}, "virtualMachineTemplate": {},
        }});
        let owners = json!([
            {"apiVersion": "a", "kind": "b", "name": "desk", "uid": "ours"},
            {"apiVersion": "a", "kind": "b", "name": "other", "uid": "theirs"},
        ]);
        let finalizers = [finalizers::POOL, finalizers::VM_CONTROLLER];
        let meta = json!({"ownerReferences": owners, "finalizers": finalizers});
        let mut vm = VirtualMachine { metadata: serde_json::from_value(meta).unwrap(), ..Default::default() };
        release(&mut vm, &serde_json::from_value(pool).unwrap());
        assert_eq!(vm.finalizers(), [finalizers::VM_CONTROLLER]);
        assert_eq!(vm.owner_references()[0].uid, "theirs");
        assert_eq!(vm.owner_references().len(), 1);
    }
}
