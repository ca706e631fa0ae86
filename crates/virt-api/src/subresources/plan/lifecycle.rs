//! Starting, stopping and restarting a machine.

use kubevirt_api::condition;
use kubevirt_api::names::conditions;
use kubevirt_api::vm::{RunStrategy, VirtualMachine};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::{Value, json};

use super::{VM_NOT_RUNNING, name_of, phase};
use crate::subresources::change::{Change, Target};
use crate::subresources::failure::{About, Failure};
use crate::subresources::options::{RestartOptions, StartOptions, StopOptions};
use crate::subresources::seen::Seen;

const MANUAL_RECOVERY: &str = "VM recovery required: Volume migration failed, leaving some volumes pointing to \
    non-consistent targets; manual intervention is needed to reassign them to their original volumes.";
const GRACE: &str = "/spec/terminationGracePeriodSeconds";
const REQUESTS: &str = "/status/stateChangeRequests";

/// What a request comes to: changes in their order, and what takes the first back if the last fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// In this order.
    pub changes: Vec<Change>,
    /// Taken if a later change fails.
    pub undo: Option<Change>,
}

impl From<Change> for Steps {
    fn from(change: Change) -> Self {
        Self { changes: vec![change], undo: None }
    }
}

/// Starts a machine.
pub fn start(
    vm: &Seen<VirtualMachine>,
    vmi: Option<&VirtualMachineInstance>,
    options: &StartOptions,
) -> Result<Steps, Failure> {
    let conflict = |why: String| Failure::conflict(About::Machine, name_of(&**vm), why);
    let there = vmi.filter(|vmi| !vmi.is_final()).and_then(phase);
    if there.is_some_and(|phase| *phase != VmiPhase::Unknown) {
        return Err(conflict("VM is already running".into()));
    }
    if holds(vm, conditions::vm::MANUAL_RECOVERY_REQUIRED) {
        return Err(conflict(MANUAL_RECOVERY.into()));
    }
    let mut begin = json!({ "action": "Start" });
    if options.paused {
        begin["data"] = json!({ "paused": "true" });
    }
    let strategy = run_strategy(vm)?;
    let ended = vmi.filter(|vmi| vmi.is_final());
    match strategy {
        // The controller changes the run strategy itself once it has read that it should start paused.
        RunStrategy::Halted if options.paused => Ok(request(vm, vec![begin])?.into()),
        RunStrategy::Halted => Ok(run(vm, true).into()),
        RunStrategy::Manual => {
            let stop = ended.map(stop_request);
            Ok(request(vm, stop.into_iter().chain([begin]).collect())?.into())
        }
        RunStrategy::RerunOnFailure => {
            if ended.is_some_and(|vmi| phase(vmi) == Some(&VmiPhase::Failed)) {
                return Err(conflict(format!("{strategy} does not support starting VM from failed state")));
            }
            let stop = ended.map(stop_request);
            Ok(request(vm, stop.into_iter().chain([begin]).collect())?.into())
        }
        other => Err(conflict(format!("{other} does not support manual start requests"))),
    }
}

/// Stops a machine.
pub fn stop(
    vm: &Seen<VirtualMachine>,
    vmi: Option<&Seen<VirtualMachineInstance>>,
    options: &StopOptions,
) -> Result<Steps, Failure> {
    let conflict = |why: String| Failure::conflict(About::Machine, name_of(&**vm), why);
    if options.grace_period.is_some_and(|seconds| seconds < 0) {
        return Err(Failure::bad_request("gracePeriod has to be greater or equal to 0"));
    }
    let running = vmi.filter(|vmi| !vmi.is_final());
    let strategy = run_strategy(vm)?;
    let main = match strategy {
        RunStrategy::Halted => {
            let vmi = running.ok_or_else(|| conflict(VM_NOT_RUNNING.into()))?;
            let sooner = options.grace_period.is_some_and(|seconds| {
                vmi.spec.termination_grace_period_seconds.is_none_or(|before| seconds < before)
            });
            if !sooner {
                let why = format!("{strategy} only supports manual stop requests with a shorter graceperiod");
                return Err(conflict(why));
            }
            request(vm, vec![stop_request(vmi)])?
        }
        RunStrategy::Manual | RunStrategy::RerunOnFailure => {
            let vmi = running.ok_or_else(|| conflict(VM_NOT_RUNNING.into()))?;
            request(vm, vec![stop_request(vmi)])?
        }
        RunStrategy::Always | RunStrategy::Once => run(vm, false),
        other => return Err(conflict(format!("{other} does not support manual stop requests"))),
    };
    let (Some(vmi), Some(seconds)) = (running, options.grace_period) else { return Ok(main.into()) };
    Ok(Steps { changes: vec![grace(vmi, seconds), main], undo: None })
}

/// Whether a restart can be asked for in this way.
pub fn check_restart(options: &RestartOptions) -> Result<(), Failure> {
    match options.grace_period_seconds {
        Some(seconds) if seconds > 0 => {
            Err(Failure::bad_request("For force restart, only gracePeriod=0 is supported for now"))
        }
        Some(seconds) if seconds < 0 => {
            Err(Failure::bad_request("gracePeriod has to be greater or equal to 0"))
        }
        _ => Ok(()),
    }
}

/// Stops a machine and starts it again.
pub fn restart(
    vm: &Seen<VirtualMachine>,
    vmi: Option<&Seen<VirtualMachineInstance>>,
    options: &RestartOptions,
) -> Result<Steps, Failure> {
    let conflict = |why: String| Failure::conflict(About::Machine, name_of(&**vm), why);
    check_restart(options)?;
    if holds(vm, conditions::vmi::VOLUMES_CHANGE) {
        return Err(conflict(MANUAL_RECOVERY.into()));
    }
    let strategy = run_strategy(vm)?;
    if !matches!(strategy, RunStrategy::Always | RunStrategy::Manual | RunStrategy::RerunOnFailure) {
        return Err(conflict(format!("RunStategy {strategy} does not support manual restart requests")));
    }
    let vmi = vmi.ok_or_else(|| conflict(format!("{VM_NOT_RUNNING}: {}", RunStrategy::Halted)))?;
    let main = request(vm, vec![stop_request(vmi), json!({ "action": "Start" })])?;
    if options.grace_period_seconds.is_none() {
        return Ok(main.into());
    }
    // One second is the least that lets a node end a guest by the rules.
    let before = vmi.at(GRACE);
    let undo = Change::of(Target::Instance).test(GRACE, &json!(1));
    let undo = if before.is_null() { undo.remove(GRACE) } else { undo.put(vmi, GRACE, before.clone()) };
    Ok(Steps { changes: vec![grace(vmi, 1), main], undo: Some(undo) })
}

/// When the machine runs, by either of the two ways to say it.
fn run_strategy(vm: &Seen<VirtualMachine>) -> Result<RunStrategy, Failure> {
    match (vm.spec.running, &vm.spec.run_strategy) {
        (Some(_), Some(_)) => Err(Failure::internal("running and runstrategy are mutually exclusive")),
        (Some(true), None) => Ok(RunStrategy::Always),
        (None, Some(strategy)) if !strategy.is_empty() => Ok(strategy.clone()),
        (Some(false), None) | (None, _) => Ok(RunStrategy::Halted),
    }
}

fn holds(vm: &Seen<VirtualMachine>, kind: &str) -> bool {
    let conditions = vm.status.as_ref().and_then(|status| status.conditions.as_deref());
    condition::find(conditions, kind).is_some_and(condition::Condition::is_true)
}

fn stop_request(vmi: &VirtualMachineInstance) -> Value {
    json!({ "action": "Stop", "uid": vmi.metadata.uid })
}

/// Asks the controller for changes of state. A stop takes the place of whatever was asked for before.
fn request(vm: &Seen<VirtualMachine>, requests: Vec<Value>) -> Result<Change, Failure> {
    let change = Change::of(Target::MachineStatus);
    let no_status = vm.at("/status").as_object().is_none_or(serde_json::Map::is_empty);
    let change = if no_status {
        change.put(vm, "/status", json!({ "stateChangeRequests": requests }))
    } else {
        let pending = vm.at(REQUESTS).as_array().is_some_and(|pending| !pending.is_empty());
        let only_stop = requests.len() == 1 && requests[0]["action"] == "Stop";
        if pending && !only_stop {
            return Err(Failure::internal("unable to complete request: stop/start already underway"));
        }
        change.unchanged(vm, REQUESTS).put(vm, REQUESTS, requests.into())
    };
    let failed = !vm.at("/status/startFailure").is_null();
    Ok(if failed { change.remove("/status/startFailure") } else { change })
}

/// Says in the specification whether the machine runs, in the way in which it says it now.
fn run(vm: &Seen<VirtualMachine>, running: bool) -> Change {
    let strategy = if running { RunStrategy::Always } else { RunStrategy::Halted };
    let (path, value) = match vm.at("/spec/runStrategy") {
        Value::Null => ("/spec/running", json!(running)),
        _ => ("/spec/runStrategy", json!(strategy)),
    };
    Change::of(Target::Machine).unchanged(vm, path).put(vm, path, value)
}

/// Gives the guest this long to shut down.
fn grace(vmi: &Seen<VirtualMachineInstance>, seconds: i64) -> Change {
    Change::of(Target::Instance).unchanged(vmi, GRACE).put(vmi, GRACE, seconds.into())
}

#[cfg(test)]
mod tests;
