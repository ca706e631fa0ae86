//! Why a console, a display or a device came to its end, and what a user is told of it.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use kubevirt_streams::phrases;
use tokio::time::Instant;

use crate::connect::Session;
use crate::failure::Failure;
use crate::output::note;

/// How long a cluster may take to see that a machine has ended whose streams have.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(500);

/// What the other side meant by its reason.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Meaning {
    /// Somebody else has the place now.
    TakenOver,
    /// Something between us and the machine ends, and the machine does not.
    Restarting,
    /// It may be the machine that has ended.
    Machine,
}

/// By its words alone: the code that comes with them differs between servers.
fn meaning(reason: &str) -> Meaning {
    if reason.contains(phrases::ANOTHER_VIEWER) {
        Meaning::TakenOver
    } else if reason.contains(phrases::CONNECT_AGAIN) {
        Meaning::Restarting
    } else {
        Meaning::Machine
    }
}

/// What has become of a machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    Stopped,
    Failed,
}

/// Nothing, while the machine runs as far as the cluster knows.
fn fate(vmi: Option<&VirtualMachineInstance>) -> Option<Fate> {
    let Some(vmi) = vmi else { return Some(Fate::Stopped) };
    match vmi.status.as_ref().and_then(|status| status.phase.as_ref()) {
        Some(VmiPhase::Failed) => Some(Fate::Failed),
        // One that does not run yet has come in the place of the one that ran.
        None | Some(VmiPhase::Succeeded | VmiPhase::Pending | VmiPhase::Scheduling | VmiPhase::Scheduled) => {
            Some(Fate::Stopped)
        }
        _ => vmi.metadata.deletion_timestamp.is_some().then_some(Fate::Stopped),
    }
}

/// Tells the end of a stream that the other side has ended, with the reason that it gave, if any. A machine that has
/// stopped is no failure.
pub async fn tell(session: &Session, name: &str, reason: Option<&str>) -> Result<ExitCode> {
    let what = |why: &str| format!("disconnected from {name}: {why}");
    let (what, next) = match (reason, reason.map_or(Meaning::Machine, meaning)) {
        (Some(reason), Meaning::TakenOver) => (
            what(reason),
            "Connect again to take the session back, or find out who else is at work there.".to_owned(),
        ),
        (Some(reason), Meaning::Restarting) => {
            let next =
                format!("A part of KubeVirt restarts while {name} goes on: connect again in a moment.");
            (what(reason), next)
        }
        (reason, _) => match outcome(session, name).await {
            Some(Fate::Stopped) => {
                note!("Virtual machine {name} has stopped.");
                return Ok(ExitCode::SUCCESS);
            }
            Some(Fate::Failed) => {
                (format!("virtual machine {name} has failed"), format!("`virtctl why {name}` tells why."))
            }
            None => (
                what(reason.unwrap_or("another viewer connected, or the network was interrupted")),
                format!("Connect again if `kubectl get vmi {name}` shows that it still runs."),
            ),
        },
    };
    Err(Failure::new(what, next).into())
}

/// Tells the end of a stream that was carried to a program of this machine, or that the user has left.
pub async fn tell_carried(
    session: &Session,
    name: &str,
    carried: Option<io::Result<()>>,
    reason: Option<&str>,
) -> Result<ExitCode> {
    match (reason, carried) {
        (Some(reason), _) => tell(session, name, Some(reason)).await,
        (None, Some(Err(error))) => tell(session, name, Some(&error.to_string())).await,
        // The program was closed, which is how a session ends.
        (None, _) => Ok(ExitCode::SUCCESS),
    }
}

/// Looks until the machine is seen to have ended; nothing, if that is not seen in time.
async fn outcome(session: &Session, name: &str) -> Option<Fate> {
    let end = Instant::now() + PATIENCE;
    loop {
        let vmi = session.api::<VirtualMachineInstance>(None).get_opt(name).await.ok()?;
        let fate = fate(vmi.as_ref());
        if fate.is_some() || Instant::now() >= end {
            return fate;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_streams::Farewell;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_reason_is_understood_by_its_words() {
        for (farewell, expected) in [
            (Farewell::TAKEN_OVER, Meaning::TakenOver),
            (Farewell::HANDLER_ENDS, Meaning::Restarting),
            (Farewell::API_ENDS, Meaning::Restarting),
            (Farewell::MACHINE_ENDED, Meaning::Machine),
            (Farewell::from("Connection reset by peer"), Meaning::Machine),
        ] {
            assert_eq!(meaning(&farewell.reason), expected, "{farewell:?}");
        }
    }

    #[test]
    fn a_machine_that_does_not_run_has_ended() {
        let vmi = |metadata: Value, status: Value| -> VirtualMachineInstance {
            let spec = json!({ "domain": { "devices": {} } });
            serde_json::from_value(json!({ "metadata": metadata, "spec": spec, "status": status })).unwrap()
        };
        let deleted = json!({ "name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z" });
        assert_eq!(fate(None), Some(Fate::Stopped));
        for (metadata, phase, expected) in [
            (json!({ "name": "a" }), "Running", None),
            (json!({ "name": "a" }), "WaitingForSync", None),
            (json!({ "name": "a" }), "Unknown", None),
            (deleted.clone(), "Running", Some(Fate::Stopped)),
            (json!({ "name": "a" }), "Succeeded", Some(Fate::Stopped)),
            (json!({ "name": "a" }), "Scheduling", Some(Fate::Stopped)),
            (json!({ "name": "a" }), "Failed", Some(Fate::Failed)),
            (deleted, "Failed", Some(Fate::Failed)),
        ] {
            let seen = vmi(metadata, json!({ "phase": phase }));
            assert_eq!(fate(Some(&seen)), expected, "{phase}");
        }
        assert_eq!(fate(Some(&vmi(json!({ "name": "a" }), json!({})))), Some(Fate::Stopped));
    }
}
