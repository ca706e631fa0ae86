//! What a machine's status says after a round.

pub mod conditions;
mod memory_dump;
pub mod printable;
mod requests;
mod snapshots;
pub mod tracking;
mod volume_update;

use jiff::Timestamp;
use kubevirt_api::names;
use kubevirt_api::vm::status::VirtualMachineStatus;
use kubevirt_api::vm::{RunStrategy, VirtualMachine};

use super::decide::{backoff, revisions};
use super::observe::Observed;
use super::plan::Plan;
use super::view;

/// The status to be written, once the steps of a plan are done or, with its failure set, have failed.
pub fn after(seen: &Observed, plan: &Plan, now: Timestamp) -> VirtualMachineStatus {
    let vm = &plan.machine;
    let vmi = plan.instance.as_ref();
    let mut status = vm.status.clone().unwrap_or_default();
    let asked = view::run_strategy(&seen.vm).ok();
    status.created = vmi.is_some().then_some(true);
    let ready = vmi.is_some_and(|vmi| view::condition_is(vmi, names::conditions::vmi::READY, "True"));
    status.ready = ready.then_some(true);
    if let Some(generation) = vmi.and_then(revisions::generation_of) {
        status.observed_generation = Some(generation);
        status.desired_generation = seen.vm.metadata.generation;
    }
    // That it is set tells that the machine was started at least once. A start that comes with the change of the
    // strategy is still to be made, whatever keeps it from that now.
    let owed = asked == Some(RunStrategy::RerunOnFailure) && vmi.is_none() && !plan.starts();
    if (status.run_strategy.is_some() || vmi.is_some()) && !owed {
        status.run_strategy.clone_from(&asked);
    }
    requests::drop_done_volumes(&mut status, vm);
    requests::drop_first_if_done(&mut status, asked.as_ref(), vmi);
    status.memory_dump_request = memory_dump::after(status.memory_dump_request.take(), vm, vmi);
    status.start_failure = backoff::after(status.start_failure.take(), asked.as_ref(), vmi, now);
    volume_update::follow(&mut status, vm, vmi, now);
    conditions::follow(&mut status, vmi, plan.failure.as_ref(), now);
    conditions::keep_times(&mut status, seen.vm.status.as_ref(), names::conditions::vm::RESTART_REQUIRED);
    status.volume_snapshot_statuses = snapshots::of(seen, vm);
    status.printable_status = Some(printable::of(seen, plan, &status, now));
    status.changed_block_tracking = tracking::after(seen, status.changed_block_tracking.take(), vmi);
    without_empty_lists(&mut status);
    status
}

/// The machine with the status to be written.
pub fn machine(seen: &Observed, plan: &Plan, now: Timestamp) -> VirtualMachine {
    VirtualMachine { status: Some(after(seen, plan, now)), ..plan.machine.clone() }
}

/// A list that ran empty is as good as none, and is written as none.
fn without_empty_lists(status: &mut VirtualMachineStatus) {
    fn drop_empty<T>(list: &mut Option<Vec<T>>) {
        if list.as_ref().is_some_and(Vec::is_empty) {
            *list = None;
        }
    }
    drop_empty(&mut status.conditions);
    drop_empty(&mut status.state_change_requests);
    drop_empty(&mut status.volume_requests);
    drop_empty(&mut status.volume_snapshot_statuses);
}
