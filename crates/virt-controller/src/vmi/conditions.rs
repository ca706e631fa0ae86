//! The conditions of an instance that are the controller's to report.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubevirt_api::condition::{self, Condition};
use kubevirt_api::names::conditions::vmi::{
    DATA_VOLUMES_READY, EVICTION_REQUESTED, PROVISIONING, READY, SYNCHRONIZED,
};
use kubevirt_api::names::conditions::{self as types};
use kubevirt_api::names::reasons::vmi as reasons;
use kubevirt_api::vmi::status::{VirtualMachineInstanceStatus, VmiPhase};

use super::observe::Observed;
use super::plan::Trouble;
use super::pods;

/// The condition of a pod that says whether a node was found for it.
pub const POD_SCHEDULED: &str = "PodScheduled";

type Conditions = Option<Vec<Condition>>;

/// A condition with a reason, and a message if there is one.
pub fn new(type_: &str, status: bool, reason: &str, message: &str) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: if status { "True" } else { "False" }.to_owned(),
        reason: (!reason.is_empty()).then(|| reason.to_owned()),
        message: (!message.is_empty()).then(|| message.to_owned()),
        ..Condition::default()
    }
}

/// Reports a condition, unless it is there with the same status and reason: another wording is no reason to write.
pub fn set(conditions: &mut Conditions, wanted: Condition, now: Timestamp) {
    let known = condition::find(conditions.as_deref(), &wanted.type_);
    if known.is_none_or(|known| known.status != wanted.status || known.reason != wanted.reason) {
        condition::set(conditions, wanted, &Time(now));
    }
}

/// Whether the condition is reported, and holds.
pub fn holds(status: &VirtualMachineInstanceStatus, type_: &str) -> bool {
    condition::find(status.conditions.as_deref(), type_).is_some_and(Condition::is_true)
}

/// Reports whether the guest serves requests: what its pod says, if both run.
pub fn ready(observed: &Observed, conditions: &mut Conditions, now: Timestamp) {
    let not = |reason, message| new(READY, false, reason, message);
    let condition = match observed.launcher() {
        None => not(reasons::POD_NOT_EXISTS, "virt-launcher pod has not yet been scheduled"),
        Some(pod) if pods::is_down_or_leaving(pod) => {
            not(reasons::POD_TERMINATING, "virt-launcher pod is terminating")
        }
        Some(_) if observed.phase() != VmiPhase::Running => {
            not(reasons::GUEST_NOT_RUNNING, "Guest VM is not reported as running")
        }
        // A word that is about to change is not worth a write.
        Some(pod) if pods::is_ready_soon(pod) => return,
        Some(pod) => match pods::condition(pod, READY) {
            Some(said) => copied(said),
            None => not(reasons::POD_CONDITION_MISSING, "virt-launcher pod is missing the Ready condition"),
        },
    };
    set(conditions, condition, now);
}

fn copied(said: &PodCondition) -> Condition {
    Condition {
        type_: said.type_.clone(),
        status: said.status.clone(),
        last_probe_time: said.last_probe_time.clone(),
        last_transition_time: said.last_transition_time.clone(),
        reason: said.reason.clone(),
        message: said.message.clone(),
    }
}

/// Reports that no node was found for the pod, until one is.
pub fn scheduled(observed: &Observed, conditions: &mut Conditions) {
    let Some(pod) = observed.pod() else { return };
    match pods::condition(pod, POD_SCHEDULED).filter(|said| said.status == "False") {
        // Its message counts nodes, and changes often.
        Some(_) if condition::find(conditions.as_deref(), POD_SCHEDULED).is_some() => {}
        Some(said) => conditions.get_or_insert_default().push(copied(said)),
        None => condition::remove(conditions, POD_SCHEDULED),
    }
}

/// Reports that no node can be found before a claim appears.
pub fn unschedulable(trouble: &Trouble, conditions: &mut Conditions, now: Timestamp) {
    if trouble.reason == reasons::FAILED_PVC_NOT_FOUND {
        set(conditions, new(POD_SCHEDULED, false, reasons::UNSCHEDULABLE, &trouble.message), now);
    }
}

/// Reports that volumes are being provisioned, or no longer.
pub fn provisioning(is: bool, conditions: &mut Conditions, now: Timestamp) {
    if is {
        set(conditions, new(PROVISIONING, true, "", ""), now);
    } else {
        condition::remove(conditions, PROVISIONING);
    }
}

/// Reports what keeps the instance from getting on, or nothing.
pub fn synchronized(trouble: Option<&Trouble>, conditions: &mut Conditions, now: Timestamp) {
    match trouble {
        Some(trouble) => set(conditions, new(SYNCHRONIZED, false, &trouble.reason, &trouble.message), now),
        None => condition::remove(conditions, SYNCHRONIZED),
    }
}

/// Reports whether all data volumes are ready, if there are any.
pub fn data_volumes(observed: &Observed, conditions: &mut Conditions, now: Timestamp) {
    if observed.data_volumes.is_empty() {
        return;
    }
    let ready = observed.data_volumes.values().map(|volume| {
        let said = volume.status.as_ref().and_then(|status| status.conditions.as_deref());
        condition::find(said, types::data_volume::READY).map_or("Unknown", |said| said.status.as_str())
    });
    let all: Vec<&str> = ready.collect();
    let worst = ["False", "Unknown"].into_iter().find(|status| all.contains(status));
    let mut condition = match worst {
        None => {
            new(DATA_VOLUMES_READY, true, reasons::ALL_DVS_READY, "All of the VMI's DVs are bound and ready")
        }
        Some(_) => {
            new(DATA_VOLUMES_READY, false, reasons::NOT_ALL_DVS_READY, "Not all of the VMI's DVs are ready")
        }
    };
    if let Some(worst) = worst {
        condition.status = worst.to_owned();
    }
    set(conditions, condition, now);
}

/// Reports that the guest shall leave its node, or no longer.
pub fn eviction(status: &mut VirtualMachineInstanceStatus, now: Timestamp) {
    let leaves = status.evacuation_node_name.as_ref().is_some_and(|node| !node.is_empty());
    if leaves {
        let condition =
            new(EVICTION_REQUESTED, true, reasons::EVICTION_REQUESTED, "VMI is marked for eviction");
        set(&mut status.conditions, condition, now);
    } else {
        condition::remove(&mut status.conditions, EVICTION_REQUESTED);
    }
}
