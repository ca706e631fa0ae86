//! The one word for a machine's state; where several hold, the first in the order here is shown.

use jiff::Timestamp;
use kubevirt_api::condition::{self, Condition};
use kubevirt_api::data_volume::{DataVolume, DataVolumePhase};
use kubevirt_api::names::{conditions, reasons};
use kubevirt_api::vm::RunStrategy;
use kubevirt_api::vm::status::{PrintableStatus, VirtualMachineStatus};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;

use crate::vm::decide::run_strategy::reruns;
use crate::vm::observe::Observed;
use crate::vm::plan::Plan;
use crate::vm::view;

/// The word for the machine after a round.
pub fn of(seen: &Observed, plan: &Plan, status: &VirtualMachineStatus, now: Timestamp) -> PrintableStatus {
    let strategy = view::run_strategy(&seen.vm).ok();
    let strategy = strategy.as_ref();
    let vmi = plan.instance.as_ref();
    if view::is_deleting(&seen.vm.metadata) {
        return PrintableStatus::Terminating;
    }
    if let Some(word) = vmi.and_then(|vmi| of_living(vmi, plan, now)) {
        return word;
    }
    if vmi.is_some_and(|vmi| unsynchronized(vmi, reasons::vmi::FAILED_PVC_NOT_FOUND)) {
        return PrintableStatus::ErrorPvcNotFound;
    }
    if data_volumes(seen, plan).any(is_broken) {
        return PrintableStatus::DataVolumeError;
    }
    if vmi.is_some_and(is_unschedulable) {
        return PrintableStatus::ErrorUnschedulable;
    }
    if data_volumes(seen, plan).any(is_provisioning) {
        return PrintableStatus::Provisioning;
    }
    if is_to_run(strategy, status, vmi) && has_unbound_claim(seen, plan) {
        return PrintableStatus::WaitingForVolumeBinding;
    }
    if vmi.is_some_and(|vmi| unsynchronized(vmi, reasons::vmi::ERR_IMAGE_PULL)) {
        return PrintableStatus::ErrImagePull;
    }
    if vmi.is_some_and(|vmi| unsynchronized(vmi, reasons::vmi::IMAGE_PULL_BACK_OFF)) {
        return PrintableStatus::ImagePullBackOff;
    }
    of_beginning_or_end(plan, status, strategy, vmi)
}

fn of_living(vmi: &VirtualMachineInstance, plan: &Plan, now: Timestamp) -> Option<PrintableStatus> {
    if !view::is_final(vmi) && (view::is_deleting(&vmi.metadata) || plan.stops) {
        return Some(PrintableStatus::Stopping);
    }
    if view::is_migrating(vmi, now) {
        return Some(PrintableStatus::Migrating);
    }
    if !view::is_in(vmi, VmiPhase::Running) {
        return None;
    }
    match view::condition_is(vmi, conditions::vmi::PAUSED, "True") {
        true => Some(PrintableStatus::Paused),
        false => Some(PrintableStatus::Running),
    }
}

fn of_beginning_or_end(
    plan: &Plan,
    status: &VirtualMachineStatus,
    strategy: Option<&RunStrategy>,
    vmi: Option<&VirtualMachineInstance>,
) -> PrintableStatus {
    let starting = match vmi {
        None => plan.starts(),
        Some(vmi) => matches!(
            view::phase(vmi),
            None | Some(VmiPhase::Pending | VmiPhase::Scheduling | VmiPhase::Scheduled)
        ),
    };
    if starting {
        return PrintableStatus::Starting;
    }
    if vmi.is_none_or(view::is_final) {
        let failures = status.start_failure.as_ref().and_then(|failure| failure.consecutive_fail_count);
        let restarts = match strategy {
            Some(RunStrategy::Always | RunStrategy::Once) => true,
            Some(RunStrategy::RerunOnFailure) => vmi.is_some() || reruns(status),
            _ => false,
        };
        return match restarts && failures.is_some_and(|failures| failures > 0) {
            true => PrintableStatus::CrashLoopBackOff,
            false => PrintableStatus::Stopped,
        };
    }
    let waits = vmi.is_some_and(|vmi| view::is_in(vmi, VmiPhase::WaitingForSync));
    match waits && strategy == Some(&RunStrategy::WaitAsReceiver) {
        true => PrintableStatus::WaitingForReceiver,
        false => PrintableStatus::Unknown,
    }
}

fn unsynchronized(vmi: &VirtualMachineInstance, reason: &str) -> bool {
    let condition = view::condition(vmi, conditions::vmi::SYNCHRONIZED);
    condition.is_some_and(|c| c.status == "False" && c.reason.as_deref() == Some(reason))
}

fn is_unschedulable(vmi: &VirtualMachineInstance) -> bool {
    // The instance repeats what its pod says.
    let condition = view::condition(vmi, "PodScheduled");
    condition.is_some_and(|c| c.status == "False" && c.reason.as_deref() == Some(reasons::vmi::UNSCHEDULABLE))
}

fn data_volumes<'a>(seen: &'a Observed, plan: &'a Plan) -> impl Iterator<Item = &'a DataVolume> {
    let named = view::volumes(&plan.machine).iter().filter_map(|volume| volume.data_volume.as_ref());
    named.filter_map(|source| seen.data_volumes.get(&source.name).map(|found| &**found))
}

fn said<'a>(data_volume: &'a DataVolume, type_: &str) -> Option<&'a Condition> {
    condition::find(data_volume.status.as_ref()?.conditions.as_deref(), type_)
}

fn phase(data_volume: &DataVolume) -> Option<&DataVolumePhase> {
    data_volume.status.as_ref()?.phase.as_ref()
}

fn is_broken(data_volume: &DataVolume) -> bool {
    let stopped = said(data_volume, conditions::data_volume::RUNNING).is_some_and(|running| {
        running.status == "False" && matches!(running.reason.as_deref(), Some("Error" | "ImagePullFailed"))
    });
    phase(data_volume) == Some(&DataVolumePhase::Failed) || stopped
}

fn is_provisioning(data_volume: &DataVolume) -> bool {
    let bound = said(data_volume, conditions::data_volume::BOUND).is_some_and(Condition::is_true);
    match phase(data_volume) {
        Some(DataVolumePhase::Succeeded | DataVolumePhase::PendingPopulation) => false,
        Some(DataVolumePhase::WaitForFirstConsumer) => bound,
        _ => true,
    }
}

fn has_unbound_claim(seen: &Observed, plan: &Plan) -> bool {
    let claims = view::volumes(&plan.machine).iter().filter_map(view::claim_name);
    claims
        .filter_map(|name| seen.claims.get(name))
        .any(|claim| claim.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Bound"))
}

/// Whether the machine is set to run, so that its claims are waited for.
fn is_to_run(
    strategy: Option<&RunStrategy>,
    status: &VirtualMachineStatus,
    vmi: Option<&VirtualMachineInstance>,
) -> bool {
    match (strategy, vmi) {
        (Some(RunStrategy::Always), _) => true,
        (Some(RunStrategy::Manual), Some(vmi)) => !view::stop_requested(status, vmi),
        (Some(RunStrategy::Manual), None) => view::start_requested(status),
        (Some(RunStrategy::RerunOnFailure), Some(vmi)) => !view::is_in(vmi, VmiPhase::Succeeded),
        (Some(RunStrategy::RerunOnFailure), None) => reruns(status),
        (Some(RunStrategy::Once), None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::decide;
    use crate::vm::testing::{at, machine, read, seen, shared};
    use serde_json::{Value, json};

    fn word(vm: Value, vmi: Option<Value>, others: &[(&str, Value)]) -> String {
        let mut seen = seen(machine(vm));
        for (kind, object) in others {
            match *kind {
                "dv" => drop(seen.data_volumes.insert("disk".to_owned(), shared(object.clone()))),
                _ => drop(seen.claims.insert("disk".to_owned(), shared(object.clone()))),
            }
        }
        seen.instance = vmi.map(|patch| {
            let mut vmi: VirtualMachineInstance = read(patch);
            vmi.metadata.owner_references = Some(vec![view::owner_reference(&seen.vm)]);
            std::sync::Arc::new(vmi)
        });
        let plan = decide::decide(&seen, at(10));
        crate::vm::status::after(&seen, &plan, at(10)).printable_status.unwrap().to_string()
    }

    fn strategy(strategy: &str) -> Value {
        json!({ "spec": { "runStrategy": strategy } })
    }

    fn in_phase(phase: &str) -> Option<Value> {
        Some(json!({ "metadata": { "uid": "u" }, "status": { "phase": phase } }))
    }

    #[test]
    fn every_word_has_its_state() {
        let gone = json!("2026-01-01T00:00:00Z");
        let condition = |type_: &str, status: &str, reason: &str| {
            json!({ "status": { "phase": "Scheduling",
                "conditions": [{ "type": type_, "status": status, "reason": reason }] } })
        };
        let synced = |reason: &str| Some(condition("Synchronized", "False", reason));
        let with_disk = |strategy: &str, source: Value| {
            let volume = json!({ "name": "root", "dataVolume": source });
            json!({ "spec": { "runStrategy": strategy, "template": { "spec": {
                "domain": { "devices": {} }, "volumes": [volume] } } } })
        };
        let disk = json!({ "name": "disk" });
        let rerunning = |status: Value| {
            let mut vm = with_disk("RerunOnFailure", json!({ "name": "disk" }));
            vm["status"] = status;
            vm
        };
        let failed = json!({ "consecutiveFailCount": 1, "retryAfterTimestamp": "1970-01-01T00:05:00Z" });
        let unbound = json!({ "status": { "phase": "Pending" } });
        let cases = [
            ("Stopped", strategy("Halted"), None, vec![]),
            ("Stopped", strategy("Manual"), in_phase("Succeeded"), vec![]),
            ("Starting", strategy("Always"), None, vec![]),
            ("Starting", strategy("Always"), in_phase(""), vec![]),
            ("Starting", strategy("Always"), in_phase("Pending"), vec![]),
            ("Starting", strategy("Once"), in_phase("Scheduled"), vec![]),
            ("Running", strategy("Always"), in_phase("Running"), vec![]),
            ("Stopping", strategy("Halted"), in_phase("Running"), vec![]),
            (
                "Stopping",
                strategy("Manual"),
                Some(json!({ "metadata": { "deletionTimestamp": gone }, "status": { "phase": "Running" } })),
                vec![],
            ),
            (
                "Terminating",
                json!({ "metadata": { "deletionTimestamp": gone } }),
                in_phase("Running"),
                vec![],
            ),
            (
                "Paused",
                strategy("Always"),
                Some(json!({ "status": { "phase": "Running",
                    "conditions": [{ "type": "Paused", "status": "True" }] } })),
                vec![],
            ),
            (
                "Migrating",
                strategy("Always"),
                Some(json!({ "status": { "phase": "Running",
                    "migrationState": { "startTimestamp": "1970-01-01T00:00:05Z" } } })),
                vec![],
            ),
            (
                "Running",
                strategy("Always"),
                Some(json!({ "status": { "phase": "Running", "migrationState": {
                    "startTimestamp": "1970-01-01T00:00:05Z", "endTimestamp": "1970-01-01T00:00:08Z" } } })),
                vec![],
            ),
            (
                "CrashLoopBackOff",
                json!({ "spec": { "runStrategy": "Always" }, "status": { "startFailure": {
                    "consecutiveFailCount": 2, "retryAfterTimestamp": "1970-01-01T00:05:00Z" } } }),
                None,
                vec![],
            ),
            ("CrashLoopBackOff", strategy("Once"), in_phase("Failed"), vec![]),
            ("CrashLoopBackOff", rerunning(json!({ "startFailure": failed })), None, vec![]),
            (
                "Stopped",
                rerunning(json!({ "startFailure": failed, "runStrategy": "RerunOnFailure" })),
                None,
                vec![],
            ),
            ("WaitingForVolumeBinding", rerunning(json!({})), None, vec![("pvc", unbound.clone())]),
            (
                "Stopped",
                rerunning(json!({ "runStrategy": "RerunOnFailure" })),
                None,
                vec![("pvc", unbound.clone())],
            ),
            ("Unknown", strategy("Always"), in_phase("Unknown"), vec![]),
            (
                "ErrorUnschedulable",
                strategy("Always"),
                Some(condition("PodScheduled", "False", "Unschedulable")),
                vec![],
            ),
            ("ErrImagePull", strategy("Always"), synced("ErrImagePull"), vec![]),
            ("ImagePullBackOff", strategy("Always"), synced("ImagePullBackOff"), vec![]),
            ("ErrorPvcNotFound", strategy("Always"), synced("FailedPvcNotFound"), vec![]),
            (
                "DataVolumeError",
                with_disk("Always", disk.clone()),
                in_phase("Pending"),
                vec![("dv", json!({ "status": { "phase": "Failed" } }))],
            ),
            (
                "DataVolumeError",
                with_disk("Halted", disk.clone()),
                None,
                vec![(
                    "dv",
                    json!({ "status": { "phase": "ImportInProgress",
                    "conditions": [{ "type": "Running", "status": "False", "reason": "Error" }] } }),
                )],
            ),
            (
                "Provisioning",
                with_disk("Always", disk.clone()),
                in_phase("Pending"),
                vec![("dv", json!({ "status": { "phase": "ImportInProgress" } }))],
            ),
            (
                "Stopped",
                with_disk("Halted", disk.clone()),
                None,
                vec![("dv", json!({ "status": { "phase": "WaitForFirstConsumer" } }))],
            ),
            (
                "WaitingForVolumeBinding",
                with_disk("Always", disk.clone()),
                in_phase("Pending"),
                vec![("pvc", unbound)],
            ),
            (
                "Starting",
                with_disk("Always", disk),
                in_phase("Pending"),
                vec![("pvc", json!({ "status": { "phase": "Bound" } }))],
            ),
            (
                "WaitingForReceiver",
                strategy("WaitAsReceiver"),
                Some(json!({
                "metadata": { "annotations": { "kubevirt.io/create-migration-target": "true" } },
                "status": { "phase": "WaitingForSync" } })),
                vec![],
            ),
        ];
        for (expected, vm, vmi, others) in cases {
            assert_eq!(word(vm.clone(), vmi.clone(), &others), expected, "{vm} {vmi:?}");
        }
    }
}
