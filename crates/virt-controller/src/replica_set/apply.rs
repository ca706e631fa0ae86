//! Carries out what was decided for a replica set.

use futures_util::future::join_all;
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kubevirt_api::condition;
use kubevirt_api::names::conditions::replica_set::REPLICA_PAUSED;
use kubevirt_api::names::events::objects as events;
use kubevirt_api::replica_set::{VirtualMachineInstanceReplicaSet, VirtualMachineInstanceReplicaSetStatus};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_component::events::Kind;
use kubevirt_component::patch;

use super::decide::{Action, Claim};
use crate::context::{Context, controller};
use crate::owned::{controller_reference, is_there};

/// Why the claims of a set came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server did not take a write, or what was seen is outdated.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// The set is not what was seen.
    #[error("what was seen of the set is outdated")]
    Outdated,
}

/// Settles whose instances are whose: as much of it as possible, and then the first thing that went wrong.
pub async fn claim(
    context: &Context,
    set: &VirtualMachineInstanceReplicaSet,
    claims: &[Claim],
) -> Result<(), Error> {
    // What garbage collection orphaned as the set went would be taken back by a set that was not seen to go.
    let adopts = claims.iter().any(|claim| matches!(claim, Claim::Adopt(_)));
    if adopts && !is_there(context, set).await? {
        return Err(Error::Outdated);
    }
    let outcomes = join_all(claims.iter().map(|claim| write(context, set, claim))).await;
    Ok(outcomes.into_iter().collect::<kube::Result<_>>()?)
}

async fn write(context: &Context, set: &VirtualMachineInstanceReplicaSet, claim: &Claim) -> kube::Result<()> {
    let (Claim::Adopt(seen) | Claim::Release(seen)) = claim;
    let mut wanted = VirtualMachineInstance::clone(seen);
    let owner = controller(&**seen).map(|owner| owner.uid.clone());
    let owners = wanted.metadata.owner_references.get_or_insert_default();
    match claim {
        Claim::Adopt(_) => owners.push(controller_reference(set)),
        Claim::Release(_) => owners.retain(|reference| Some(&reference.uid) != owner.as_ref()),
    }
    let api = context.api::<VirtualMachineInstance>(&seen.namespace().unwrap_or_default());
    match patch::write(&api, &**seen, &wanted).await {
        Err(error) if patch::is_gone(&error) => Ok(()),
        outcome => outcome.map(|_| ()),
    }
}

/// Does all of it, as far as possible. The first thing that went wrong.
pub async fn scale(
    context: &Context,
    set: &VirtualMachineInstanceReplicaSet,
    actions: &[Action],
) -> kube::Result<()> {
    let outcomes = join_all(actions.iter().map(|action| carry_out(context, set, action))).await;
    outcomes.into_iter().collect()
}

async fn carry_out(
    context: &Context,
    set: &VirtualMachineInstanceReplicaSet,
    action: &Action,
) -> kube::Result<()> {
    match action {
        Action::Create(vmi) => create(context, set, vmi).await,
        Action::DeleteSurplus(vmi) => {
            let message = format!("Deleted instance {}, one of too many", vmi.name_any());
            delete(context, set, vmi, message).await
        }
        Action::DeleteFinished(vmi) => {
            let message = format!("Deleted instance {}, which had ended", vmi.name_any());
            delete(context, set, vmi, message).await
        }
    }
}

async fn create(
    context: &Context,
    set: &VirtualMachineInstanceReplicaSet,
    vmi: &VirtualMachineInstance,
) -> kube::Result<()> {
    let api = context.api::<VirtualMachineInstance>(&set.namespace().unwrap_or_default());
    match api.create(&PostParams::default(), vmi).await {
        Ok(_) => {
            let message = format!("Created instance {}", vmi.name_any());
            context.recorder.event(set, Kind::Normal, events::SUCCESSFUL_CREATE, message);
            Ok(())
        }
        // Made before; the store will tell.
        Err(error) if patch::is_taken(&error) => Ok(()),
        Err(error) => {
            let message = format!("Cannot create instance {}: {error}", vmi.name_any());
            context.recorder.event(set, Kind::Warning, events::FAILED_CREATE, message);
            Err(error)
        }
    }
}

async fn delete(
    context: &Context,
    set: &VirtualMachineInstanceReplicaSet,
    vmi: &VirtualMachineInstance,
    message: String,
) -> kube::Result<()> {
    let api = context.api::<VirtualMachineInstance>(&set.namespace().unwrap_or_default());
    // Not another one that has come to the same name since.
    let preconditions = Some(Preconditions { uid: vmi.uid(), ..Preconditions::default() });
    let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
    match api.delete(&vmi.name_any(), &parameters).await {
        Ok(_) => {
            context.recorder.event(set, Kind::Normal, events::SUCCESSFUL_DELETE, message);
            Ok(())
        }
        Err(error) if patch::is_gone(&error) || patch::is_conflict(&error) => Ok(()),
        Err(error) => {
            let message = format!("Cannot delete instance {}: {error}", vmi.name_any());
            context.recorder.event(set, Kind::Warning, events::FAILED_DELETE, message);
            Err(error)
        }
    }
}

/// Writes the status if it changed, and says when the set stops or goes on.
pub async fn write_status(
    context: &Context,
    set: &VirtualMachineInstanceReplicaSet,
    status: VirtualMachineInstanceReplicaSetStatus,
) -> kube::Result<()> {
    let api = context.api::<VirtualMachineInstanceReplicaSet>(&set.namespace().unwrap_or_default());
    let is_paused = |status: Option<&VirtualMachineInstanceReplicaSetStatus>| {
        condition::find(status.and_then(|status| status.conditions.as_deref()), REPLICA_PAUSED).is_some()
    };
    let (before, after) = (is_paused(set.status.as_ref()), is_paused(Some(&status)));
    let mut wanted = set.clone();
    wanted.status = Some(status);
    match patch::write_status(&api, set, &wanted).await {
        // Whoever wrote in between brings it up again.
        Err(error) if patch::is_gone(&error) || patch::is_conflict(&error) => return Ok(()),
        outcome => outcome?,
    };
    match (before, after) {
        (false, true) => context.recorder.event(set, Kind::Normal, events::SUCCESSFUL_PAUSED, "Paused"),
        (true, false) => context.recorder.event(set, Kind::Normal, events::SUCCESSFUL_RESUMED, "Resumed"),
        _ => {}
    }
    Ok(())
}
