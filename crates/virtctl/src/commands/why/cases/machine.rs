//! What can be said from the machine itself.

use jiff::SpanRound;
use kubevirt_api::condition::Condition;
use kubevirt_api::names::{conditions, events, reasons};
use kubevirt_api::vm::RunStrategy;
use kubevirt_api::vm::status::{PrintableStatus, StateChangeRequestAction};
use kubevirt_api::vmi::status::VmiPhase;

use super::super::evidence::Evidence;
use super::super::explain::Explanation;

/// Neither a machine nor an instance has the name.
pub fn nothing_there(e: &Evidence) -> Option<Explanation> {
    if e.vm.is_some() || e.vmi.is_some() {
        return None;
    }
    Some(
        Explanation::new("absent", format!("does not exist in the namespace {}", e.namespace))
            .next("See what there is: kubectl get vm,vmi -A"),
    )
}

/// The machine, or an instance without one, is on its way out.
pub fn being_deleted(e: &Evidence) -> Option<Explanation> {
    let metadata = match (&e.vm, &e.vmi) {
        (Some(vm), _) => &vm.metadata,
        (None, Some(vmi)) => &vmi.metadata,
        (None, None) => return None,
    };
    metadata.deletion_timestamp.as_ref()?;
    let holding = metadata.finalizers.clone().unwrap_or_default().join(", ");
    let mut told = Explanation::new("deleted", "is being deleted");
    if !holding.is_empty() {
        told = told.because(format!("These still have to let go of it: {holding}."));
    }
    Some(told.next("Wait: a guest is given time to shut down first."))
}

/// The instance is on its way out while the machine stays.
pub fn stopping(e: &Evidence) -> Option<Explanation> {
    let vmi = e.vmi.as_ref()?;
    vmi.metadata.deletion_timestamp.as_ref()?;
    let seconds = vmi.spec.termination_grace_period_seconds;
    Some(
        Explanation::new("stopping", "is shutting down")
            .because(
                seconds
                    .map(|seconds| format!("The guest is given {seconds} s to do so."))
                    .unwrap_or_default(),
            )
            .next("Wait until the guest has shut down.")
            .next(format!("If it does not: {} stop {} --force --grace-period=0", e.program, e.name)),
    )
}

/// The controller could not make the instance: a webhook, a quota or a missing part refused it.
pub fn refused(e: &Evidence) -> Option<Explanation> {
    if e.vmi.is_some() {
        return None;
    }
    let failure = e.vm_condition(conditions::vm::FAILURE).filter(|failure| failure.is_true());
    let event = e.warning(&[events::objects::FAILED_CREATE]);
    let message =
        failure.and_then(|failure| failure.message.clone()).or_else(|| Some(event?.message.clone()))?;
    let reason = failure.and_then(|failure| failure.reason.as_deref()).unwrap_or_default();
    let what = match reason {
        reasons::vm::FAILED_FIND_INSTANCETYPE => "names an instance type that does not exist",
        reasons::vm::FAILED_FIND_PREFERENCE => "names a preference that does not exist",
        _ if message.contains("exceeded quota") => "does not fit into the namespace's quota",
        _ if message.contains("denied the request") => "is refused: its instance is not valid",
        _ => "cannot be started: its instance could not be made",
    };
    Some(
        Explanation::new("refused", what)
            .because(message)
            .next(format!("Correct what the message names: kubectl edit vm {} -n {}", e.name, e.namespace)),
    )
}

/// The guest ends again and again, and is given time between attempts.
pub fn crashing(e: &Evidence) -> Option<Explanation> {
    let status = e.vm.as_ref()?.status.as_ref()?;
    let failure = status.start_failure.as_ref();
    let backs_off = status.printable_status == Some(PrintableStatus::CrashLoopBackOff);
    if !backs_off && failure.is_none_or(|failure| failure.consecutive_fail_count.unwrap_or(0) == 0) {
        return None;
    }
    // One that is starting right now may come up this time; what it waits for is another case.
    if !backs_off && e.vmi.is_some() && e.phase() != Some(&VmiPhase::Failed) {
        return None;
    }
    let count = failure.and_then(|failure| failure.consecutive_fail_count).unwrap_or(1);
    let retry = failure
        .and_then(|failure| failure.retry_after_timestamp.as_ref())
        .and_then(|retry| e.now.until(retry.0).ok())
        .filter(|wait| wait.is_positive())
        .and_then(|wait| {
            wait.round(SpanRound::new().largest(jiff::Unit::Minute).smallest(jiff::Unit::Second)).ok()
        })
        .map(|wait| format!("The next attempt is in {wait:#}."));
    let mut told = Explanation::new("crashing", format!("keeps failing: {count} time(s) in a row"))
        .because(retry.unwrap_or_default())
        .because(e.warning(&ENDINGS).map(|event| event.message.clone()).unwrap_or_default());
    for line in e.log.iter().rev().take(3).rev() {
        told = told.because(format!("Launcher log: {line}"));
    }
    Some(
        told.next(format!("See how the guest boots: {} console {} (while it runs)", e.program, e.name))
            .next(format!("Stop trying: {} stop {}", e.program, e.name)),
    )
}

/// Events that tell how a guest ended.
const ENDINGS: [&str; 4] =
    [events::vmi::STOPPED, events::vmi::SYNC_FAILED, events::vmi::GUEST_PANICKED, events::vmi::IO_ERROR];

/// The instance has ended, and nothing starts it again by itself.
pub fn ended(e: &Evidence) -> Option<Explanation> {
    let again = format!("Start it again: {} start {}", e.program, e.name);
    let said = |condition: Option<&Condition>| condition.and_then(|c| c.message.clone()).unwrap_or_default();
    match e.phase()? {
        VmiPhase::Succeeded => Some(
            Explanation::new("ended", "has shut down: the guest ended by itself, without an error")
                .next(again),
        ),
        VmiPhase::Failed => {
            let reason = e.vmi.as_ref()?.status.as_ref()?.reason.clone().unwrap_or_default();
            let mut told =
                Explanation::new("failed", "has failed: the guest or its launcher ended with an error")
                    .because(if reason.is_empty() { reason } else { format!("Reason: {reason}") })
                    .because(said(e.vmi_condition(conditions::vmi::SYNCHRONIZED)))
                    .because(e.warning(&ENDINGS).map(|event| event.message.clone()).unwrap_or_default());
            for line in e.log.iter().rev().take(3).rev() {
                told = told.because(format!("Launcher log: {line}"));
            }
            Some(
                told.next(format!(
                    "Read all that was logged: kubectl logs {} -n {}",
                    e.pod_name(),
                    e.namespace
                ))
                .next(again),
            )
        }
        _ => None,
    }
}

/// Nobody has asked for it to run.
pub fn off(e: &Evidence) -> Option<Explanation> {
    let vm = e.vm.as_ref().filter(|_| e.vmi.is_none())?;
    let asked = vm
        .status
        .as_ref()
        .and_then(|status| status.state_change_requests.as_ref())
        .is_some_and(|all| all.iter().any(|request| request.action == StateChangeRequestAction::Start));
    if asked {
        return None;
    }
    let start = format!("Start it: {} start {}", e.program, e.name);
    let strategy = match (&vm.spec.run_strategy, vm.spec.running) {
        (Some(strategy), _) => strategy.clone(),
        (None, Some(true)) => RunStrategy::Always,
        (None, _) => RunStrategy::Halted,
    };
    let ran = e.events.iter().any(|event| event.reason == events::objects::SUCCESSFUL_DELETE)
        || vm.status.as_ref().and_then(|status| status.observed_generation).is_some();
    let told = match strategy {
        RunStrategy::Halted => {
            Explanation::new("halted", "is switched off").because("Its run strategy is Halted.")
        }
        RunStrategy::Manual if ran => Explanation::new("stopped", "was stopped")
            .because("With the run strategy Manual it runs when it is told to."),
        RunStrategy::Manual => Explanation::new("never-started", "was never started")
            .because("With the run strategy Manual it runs when it is told to."),
        RunStrategy::RerunOnFailure if ran => {
            Explanation::new("ended", "has shut down: the guest ended by itself")
                .because("With the run strategy RerunOnFailure only a failure starts it again.")
        }
        RunStrategy::Once if ran => Explanation::new("ended", "has run once, as it should")
            .because("With the run strategy Once it does not run again."),
        RunStrategy::WaitAsReceiver => {
            return Some(
                Explanation::new("receiver", "waits for a machine to migrate here from another cluster")
                    .because("Its run strategy is WaitAsReceiver."),
            );
        }
        _ => return None,
    };
    Some(told.next(start))
}

/// Everything is said, and nobody has acted on it yet.
pub fn waiting_for_controller(e: &Evidence) -> Option<Explanation> {
    let what = match (&e.vmi, &e.pod) {
        (None, _) => "waits for its instance to be made",
        (Some(_), None) => "waits for its pod to be made",
        _ => return None,
    };
    let since = e.vmi.as_ref().map(|vmi| &vmi.metadata).or(e.vm.as_ref().map(|vm| &vm.metadata));
    let age = since
        .and_then(|metadata| metadata.creation_timestamp.as_ref())
        .map(|made| e.now.duration_since(made.0).as_secs())
        .filter(|seconds| *seconds > 10);
    Some(
        Explanation::new("waiting-for-controller", what)
            .because(
                e.vmi_condition(conditions::vmi::SYNCHRONIZED)
                    .and_then(|c| c.message.clone())
                    .unwrap_or_default(),
            )
            .because(
                age.map(|seconds| format!("It has been waiting for {seconds} s; seconds are usual."))
                    .unwrap_or_default(),
            )
            .next("If it lasts, see whether KubeVirt is well: kubectl get kubevirt,pods -A -l kubevirt.io"),
    )
}
