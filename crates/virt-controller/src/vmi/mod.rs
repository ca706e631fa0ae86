//! Instances: each gets a pod, and is handed over to the node that the pod is on.
//!
//! [`Observed`] is all that is known of an instance, [`decide`] makes a [`Plan`] of it, and `apply` carries the plan
//! out. Results of steps are added to what is known, and it is decided again, until only the instance itself is left
//! to be written.

mod apply;
mod conditions;
mod decide;
mod hotplug;
mod mirror;
mod names;
mod network;
mod observe;
mod plan;
pub mod pod;
mod pods;
mod rendering;
pub(crate) mod state_claim;
mod status;
mod steps;
#[cfg(test)]
mod tests;
pub(crate) mod topology;
mod volume_status;
mod volumes;

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_component::{NamespacedName, Next, patch};
use tokio::task::JoinHandle;

pub use decide::decide;
pub use observe::Observed;
pub use plan::{Event, NewPod, Plan, Role, Step, Trouble};

use crate::context::Context;

/// More rounds than any instance needs: look for pods, make a claim, a pod, pods for plugged volumes.
const ROUNDS: usize = 8;
/// When to look again after somebody else wrote the instance; the store usually hears of it before.
const AFTER_CONFLICT: Duration = Duration::from_secs(1);

/// Looks after all instances until told to stop.
pub fn start(context: &Context, workers: usize) -> JoinHandle<()> {
    let work = |context: Context, key: NamespacedName| async move { reconcile(&context, &key).await };
    context.work_on(&context.queues.vmis, workers, work)
}

/// Why an instance is to be looked at again.
#[derive(Debug, thiserror::Error)]
enum Retry {
    #[error(transparent)]
    Trouble(#[from] Trouble),
    #[error("the instance could not be written: {0}")]
    Write(#[source] kube::Error),
    #[error("each step leads to another")]
    Restless,
}

async fn reconcile(context: &Context, key: &NamespacedName) -> Result<Next, Retry> {
    let Some(mut observed) = Observed::look_up(context, key) else {
        context.counts.syncs.forget(key);
        return Ok(Next::Wait);
    };
    let mut plan = decide(&observed, Timestamp::now());
    for _ in 0..ROUNDS {
        let mut failed = false;
        for step in &plan.steps {
            if let Err(trouble) = apply::carry_out(context, &mut observed, step).await {
                observed.trouble = Some(trouble);
                failed = true;
                break;
            }
        }
        if !failed && !plan.has_results() {
            break;
        }
        plan = decide(&observed, Timestamp::now());
    }
    finish(context, &mut observed, plan).await
}

/// Writes the instance, tells what happened, and does what nobody waits for.
async fn finish(context: &Context, observed: &mut Observed, plan: Plan) -> Result<Next, Retry> {
    let Some(wanted) = &plan.vmi else { return Err(Retry::Restless) };
    let api = context.api::<VirtualMachineInstance>(&observed.vmi.namespace().unwrap_or_default());
    let writing = {
        let (seen, wanted) = changeable(&observed.vmi, wanted);
        patch::changed(&api, &seen, &wanted)
    };
    match writing.await {
        Ok(false) => {}
        Ok(true) => context.counts.syncs.written(&NamespacedName::of(observed.vmi.as_ref())),
        Err(error) if patch::is_conflict(&error) => return Ok(Next::After(AFTER_CONFLICT)),
        Err(error) if patch::is_gone(&error) => return Ok(Next::Wait),
        Err(error) => return Err(Retry::Write(error)),
    }
    for event in &plan.events {
        context.recorder.event(observed.vmi.as_ref(), event.kind, event.reason, event.message.clone());
    }
    for step in &plan.afterwards {
        apply::carry_out(context, observed, step).await?;
    }
    match plan.trouble.filter(|trouble| trouble.retry) {
        Some(trouble) => Err(trouble.into()),
        None => Ok(plan.recheck.map_or(Next::Wait, Next::After)),
    }
}

/// Both without what users wrote, unless that differs: it is the greater part, and need not be compared word by word.
fn changeable(
    seen: &VirtualMachineInstance,
    wanted: &VirtualMachineInstance,
) -> (VirtualMachineInstance, VirtualMachineInstance) {
    if seen.spec != wanted.spec {
        return (seen.clone(), wanted.clone());
    }
    let rest = |vmi: &VirtualMachineInstance| {
        let (metadata, status) = (vmi.metadata.clone(), vmi.status.clone());
        VirtualMachineInstance { metadata, status, ..VirtualMachineInstance::default() }
    };
    (rest(seen), rest(wanted))
}
