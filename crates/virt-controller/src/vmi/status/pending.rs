//! An instance that has no pod yet.

use jiff::Timestamp;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;

use crate::vmi::observe::Observed;
use crate::vmi::plan::Plan;
use crate::vmi::{conditions, pods, topology, volumes};

/// With a pod, it is being scheduled; without, it waits, or fails if it has nothing to wait for.
pub fn update(observed: &Observed, vmi: &mut VirtualMachineInstance, plan: &mut Plan, now: Timestamp) {
    let status = vmi.status.get_or_insert_default();
    // What cannot be told stands in the plan already: no pod is made without it.
    status.topology_hints = topology::hints(observed).unwrap_or_default();
    if observed.launcher().is_some() {
        conditions::provisioning(false, &mut status.conditions, now);
        conditions::scheduled(observed, &mut status.conditions);
        status.phase = Some(VmiPhase::Scheduling);
        return;
    }
    if observed.is_deleted() || volumes::any_failed(observed) {
        status.phase = Some(VmiPhase::Failed);
        return;
    }
    if observed.waits_for_sender() {
        status.phase = Some(VmiPhase::WaitingForSync);
        return;
    }
    status.phase = Some(VmiPhase::Pending);
    if volumes::any_waits_for_consumer(observed) {
        conditions::provisioning(true, &mut status.conditions, now);
        conditions::scheduled(observed, &mut status.conditions);
        if observed.pod().is_some_and(|pod| pods::has_failed_or_leaves(pod)) {
            status.phase = Some(VmiPhase::Failed);
        }
    }
    if let Some(trouble) = &plan.trouble {
        conditions::unschedulable(trouble, &mut status.conditions, now);
    }
}
