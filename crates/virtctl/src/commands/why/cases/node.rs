//! What can be said from the node of an instance.

use kubevirt_api::names::{annotations, labels, reasons};
use kubevirt_api::vmi::status::VmiPhase;

use super::super::evidence::Evidence;
use super::super::explain::Explanation;

/// Without a heartbeat for so long, a handler does not live.
const SILENCE_SECONDS: i64 = 300;

/// The node or its handler does not answer, so nothing that is said of the guest is sure.
pub fn lost(e: &Evidence) -> Option<Explanation> {
    if !matches!(e.phase()?, VmiPhase::Scheduled | VmiPhase::Running | VmiPhase::Failed) {
        return None;
    }
    let name = e.node_name()?;
    let reason = e.vmi.as_ref().and_then(|vmi| vmi.status.as_ref()?.reason.as_deref());
    let unresponsive = reason == Some(reasons::vmi::NODE_UNRESPONSIVE);
    let (ready, beats) = (node_is_ready(e), handler_beats(e));
    // A guest that failed for another reason has ended, whatever became of its node since.
    if !unresponsive && (e.phase() == Some(&VmiPhase::Failed) || ready && beats) {
        return None;
    }
    let mut told = if ready {
        Explanation::new("handler-lost", format!("is on the node {name}, whose virt-handler does not answer"))
    } else {
        Explanation::new("node-lost", format!("is on the node {name}, which is not ready"))
    };
    if !beats {
        told = told.because(format!("Its last heartbeat is more than {SILENCE_SECONDS} s old."));
    }
    if unresponsive {
        told = told.because("The instance was given up for lost.");
    }
    Some(
        told.next(format!("Look at the node: kubectl describe node {name}"))
            .next(format!(
                "Look at its handler: kubectl get pods -A -o wide -l {}=virt-handler --field-selector spec.nodeName={name}",
                labels::APP
            )),
    )
}

/// What is not known is taken for well.
fn node_is_ready(e: &Evidence) -> bool {
    let conditions = e.node.as_ref().and_then(|node| node.status.as_ref()?.conditions.as_ref());
    conditions
        .and_then(|all| all.iter().find(|condition| condition.type_ == "Ready"))
        .is_none_or(|ready| ready.status == "True")
}

fn handler_beats(e: &Evidence) -> bool {
    let beat =
        e.node.as_ref().and_then(|node| node.metadata.annotations.as_ref()?.get(annotations::NODE_HEARTBEAT));
    let beat = beat.and_then(|beat| beat.trim_matches('"').parse::<jiff::Timestamp>().ok());
    beat.is_none_or(|beat| e.now.duration_since(beat).as_secs() < SILENCE_SECONDS)
}
