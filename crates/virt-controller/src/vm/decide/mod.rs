//! Decides what is to be done for a machine. Nothing here asks or tells anyone; a question of the run of time is a
//! question to `now`.

pub mod adoption;
pub mod backoff;
pub mod data_volumes;
pub mod instancetypes;
pub mod live;
pub mod restart_required;
pub mod revisions;
pub mod run_strategy;
pub mod start;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use kubevirt_admission::mutate::vmi::metadata;
use kubevirt_api::names::{annotations, finalizers, reasons};
use kubevirt_api::vm::RunStrategy;
use kubevirt_api::vm::status::{StateChangeRequest, StateChangeRequestAction};
use kubevirt_api::vmi::status::VmiPhase;

use self::adoption::Claim;
use self::run_strategy::{Lifecycle, Situation};
use super::observe::Observed;
use super::plan::{Failure, Plan};
use super::view;

/// The finalizer of a machine whose dependents are to outlive it.
const ORPHAN: &str = "orphan";

/// Decides what is to be done.
pub fn decide(seen: &Observed, now: Timestamp) -> Plan {
    let mut plan = Plan::keeping(seen);
    let vmi = seen.instance.as_deref();
    let claim = adoption::claim(&seen.vm, vmi);
    plan.instance = vmi.filter(|_| claim == Claim::Ours).cloned();
    if let (Claim::Orphan, Some(vmi)) = (claim, vmi) {
        plan.adopts = true;
        plan.instance = Some(adoption::adopted(&seen.vm, vmi));
    }
    if let Err(failure) = course(seen, &mut plan, claim, now) {
        plan.failure = Some(failure);
    }
    release(&mut plan);
    plan
}

fn course(seen: &Observed, plan: &mut Plan, claim: Claim, now: Timestamp) -> Result<(), Failure> {
    if view::is_deleting(&seen.vm.metadata) {
        end(plan);
        return Ok(());
    }
    metadata::add_finalizer(&mut plan.machine.metadata, finalizers::VM_CONTROLLER);
    metadata::mark_versions(&mut plan.machine.metadata);
    if let Some(vmi) = &mut plan.instance {
        revisions::follow(seen, vmi);
    }
    let strategy = view::run_strategy(&seen.vm)?;
    if instancetypes::decide(seen, plan)?.is_break() {
        return Ok(());
    }
    if start::is_immediate(&seen.vm) && !data_volumes::decide(seen, plan)? && strategy != RunStrategy::Halted
    {
        return Ok(());
    }
    let status = seen.vm.status.clone().unwrap_or_default();
    let situation = Situation {
        strategy: &strategy,
        instance: plan.instance.as_ref(),
        status: &status,
        restore: view::annotation(&seen.vm.metadata, annotations::RESTORE_RUN_STRATEGY),
    };
    match run_strategy::decide(situation, now) {
        Lifecycle::Start => return start::decide(seen, plan, claim, &strategy),
        Lifecycle::Stop => {
            plan.stop();
            return Ok(());
        }
        Lifecycle::StopToStart => {
            queue_start(plan);
            plan.stop();
            return Ok(());
        }
        Lifecycle::Switch(to) => {
            view::switch_to(&mut plan.machine, to);
            return Ok(());
        }
        Lifecycle::Refuse(why) => return Err(Failure::new(reasons::vm::FAILED_CREATE, why)),
        Lifecycle::StartAt(at) => plan.look_again = Some(at),
        Lifecycle::Keep => {}
    }
    let restart = restart_required::decide(seen, plan, now);
    live::decide(seen, plan, restart, now)
}

/// A machine that is being deleted takes its instance along, unless that is to outlive it.
fn end(plan: &mut Plan) {
    if plan.instance.is_none() || view::has_finalizer(&plan.machine.metadata, ORPHAN) {
        view::remove_finalizer(&mut plan.machine.metadata, finalizers::VM_CONTROLLER);
        plan.instance = None;
        plan.adopts = false;
    } else {
        plan.stop();
    }
}

/// Notes that the machine starts again, at most once.
fn queue_start(plan: &mut Plan) {
    let requests = plan.status().state_change_requests.get_or_insert_default();
    if !requests.iter().any(|request| request.action == StateChangeRequestAction::Start) {
        requests.push(StateChangeRequest { action: StateChangeRequestAction::Start, ..Default::default() });
    }
}

/// Lets go of an instance that ended. It is written after the status, so that nothing of its end is lost.
fn release(plan: &mut Plan) {
    let Some(vmi) = &mut plan.instance else { return };
    let never_came = view::is_in(vmi, VmiPhase::WaitingForSync) && view::is_deleting(&vmi.metadata);
    if view::is_final(vmi) || never_came {
        view::remove_finalizer(&mut vmi.metadata, finalizers::VM_CONTROLLER);
    }
}
