//! What can be said of a guest that runs, or is about to.

use kubevirt_api::condition::Condition;
use kubevirt_api::names::{conditions, reasons};
use kubevirt_api::vmi::status::VmiPhase;

use super::super::evidence::Evidence;
use super::super::explain::Explanation;

fn runs(e: &Evidence) -> bool {
    let going = e.vmi.as_ref().is_some_and(|vmi| vmi.metadata.deletion_timestamp.is_some());
    e.phase() == Some(&VmiPhase::Running) && !going
}

/// The guest is on its way to another node.
pub fn migrating(e: &Evidence) -> Option<Explanation> {
    let state = e.vmi.as_ref()?.status.as_ref()?.migration_state.as_ref().filter(|_| runs(e))?;
    if state.start_timestamp.is_none() || state.end_timestamp.is_some() || state.completed == Some(true) {
        return None;
    }
    let from = state.source_node.as_deref().unwrap_or("its node");
    let to = state.target_node.as_deref().unwrap_or("another");
    let running = state.start_timestamp.as_ref().map(|start| e.now.duration_since(start.0).as_secs());
    Some(
        Explanation::new("migrating", format!("runs, and is migrating from {from} to {to}"))
            .because(running.map(|seconds| format!("It has been for {seconds} s.")).unwrap_or_default())
            .because(state.mode.as_ref().map(|mode| format!("The mode is {mode}.")).unwrap_or_default())
            .next(format!("Let it stay: {} migrate-cancel {}", e.program, e.name)),
    )
}

/// The guest is frozen.
pub fn paused(e: &Evidence) -> Option<Explanation> {
    let paused = e.vmi_condition(conditions::vmi::PAUSED).filter(|paused| paused.is_true() && runs(e))?;
    let message = paused.message.clone().unwrap_or_default();
    let go_on = format!("Let it go on: {} unpause vmi {}", e.program, e.name);
    Some(match paused.reason.as_deref() {
        Some(reasons::vmi::PAUSED_IO_ERROR) => {
            Explanation::new("paused-io", "is paused, because a disk failed")
                .because(message)
                .next("See whether the storage is full or unreachable, and put that right first.")
                .next(go_on)
        }
        Some(reasons::vmi::PAUSED_BY_MIGRATION_MONITOR) => {
            Explanation::new("paused-migration", "is paused for a moment, so that its migration can end")
                .because(message)
        }
        Some(reasons::vmi::PAUSED_BY_USER) => {
            Explanation::new("paused", "is paused: somebody paused it, or it was started so").next(go_on)
        }
        _ => Explanation::new("paused", "is paused").because(message).next(go_on),
    })
}

/// The node could not carry out a change.
pub fn out_of_step(e: &Evidence) -> Option<Explanation> {
    let synchronized = e.vmi_condition(conditions::vmi::SYNCHRONIZED).filter(|c| !c.is_true() && runs(e))?;
    Some(
        Explanation::new("unsynchronized", "runs, but not as it should: a change could not be carried out")
            .because(synchronized.message.clone().unwrap_or_default())
            .next(format!("Take the change back, or restart it: {} restart {}", e.program, e.name)),
    )
}

/// The guest runs, but its checks do not pass.
pub fn not_ready(e: &Evidence) -> Option<Explanation> {
    let ready = e.vmi_condition(conditions::vmi::READY).filter(|ready| !ready.is_true() && runs(e))?;
    let probed = e.vmi.as_ref().is_some_and(|vmi| vmi.spec.readiness_probe.is_some());
    let told = Explanation::new("not-ready", "runs, but is not ready")
        .because(ready.reason.clone().unwrap_or_default())
        .because(ready.message.clone().unwrap_or_default());
    Some(if probed {
        told.next(format!("See what the guest does: {} console {}", e.program, e.name))
            .next("Its readiness probe decides: see whether it asks for the right thing.")
    } else {
        told.next(format!("See what the guest does: {} console {}", e.program, e.name))
    })
}

/// Nothing is wrong.
pub fn fine(e: &Evidence) -> Option<Explanation> {
    let vmi = e.vmi.as_ref().filter(|_| runs(e))?;
    let mut told = Explanation::new("running", "is running")
        .because(e.node_name().map(|node| format!("It is on the node {node}.")).unwrap_or_default());
    let addresses = vmi.status.as_ref().and_then(|status| status.interfaces.as_ref());
    let address = addresses
        .into_iter()
        .flatten()
        .find_map(|interface| interface.ip_address.clone())
        .unwrap_or_default();
    if !address.is_empty() {
        told = told.because(format!("Its address is {address}."));
    }
    if e.vm_condition(conditions::vm::RESTART_REQUIRED).is_some_and(Condition::is_true) {
        told = told
            .because("Some changes take effect only after a restart.")
            .next(format!("Restart it: {} restart {}", e.program, e.name));
    }
    Some(told)
}

/// The pod is there, and the guest is about to be.
pub fn starting(e: &Evidence) -> Option<Explanation> {
    e.pod.as_ref()?;
    let node = e.node_name().unwrap_or("its node");
    let synchronized = e.vmi_condition(conditions::vmi::SYNCHRONIZED).filter(|c| !c.is_true());
    if let Some(refused) = synchronized {
        return Some(
            Explanation::new("unsynchronized", "cannot be started on its node")
                .because(refused.message.clone().unwrap_or_default())
                .next(format!("Correct what the message names, then: {} restart {}", e.program, e.name)),
        );
    }
    let ready = e.vmi_condition(conditions::vmi::READY).and_then(|ready| ready.message.clone());
    let told = match e.phase() {
        Some(VmiPhase::Scheduled) => Explanation::new(
            "starting",
            format!("is about to start: its launcher runs on {node}, the guest comes next"),
        ),
        _ => Explanation::new("waiting-for-launcher", format!("waits for its launcher to start on {node}")),
    };
    let told = told.because(ready.unwrap_or_default());
    let warning = e.events.iter().rev().find(|event| event.warning);
    Some(
        told.because(warning.map(|event| format!("{}: {}", event.reason, event.message)).unwrap_or_default())
            .next("Wait a few seconds and ask again.")
            .next(format!("If it lasts: kubectl describe pod {} -n {}", e.pod_name(), e.namespace)),
    )
}
