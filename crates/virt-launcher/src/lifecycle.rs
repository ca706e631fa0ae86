//! What becomes of a domain when something happens to it, as pure functions.

use kubevirt_launcher_rpc::report::{GuestPanic, Reason, State};
use kubevirt_qemu::machine::RunState;
use kubevirt_qemu::migration::MigrationStatus;
use kubevirt_qemu::process::Exit;
use kubevirt_qemu::qmp::Event;
use serde_json::Value;

/// What the launcher itself has begun, which explains what happens next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Intent {
    /// The machine is being moved away.
    pub migrating: bool,
    /// The machine has arrived at its target.
    pub migrated: bool,
    /// The machine is on its way here and still belongs to its source.
    pub arriving: bool,
    /// Somebody ordered its end.
    pub killed: bool,
    /// A shutdown of the guest is half of a reboot.
    pub reboot: bool,
    /// What the next stop is for, if an event said so.
    pub stop: Option<Reason>,
    /// Why the machine shuts down, once an event said so.
    pub ending: Option<(State, Reason)>,
}

/// What an event means.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning {
    /// The domain is in another state.
    Becomes(State, Reason),
    /// The next stop has this reason.
    WillStop(Reason),
    /// The machine is off and QEMU has nothing more to do.
    Ended(State, Reason),
    /// The guest's kernel panicked; `fatal` if the machine cannot go on.
    Panicked {
        /// What the guest told.
        panic: GuestPanic,
        /// The machine cannot go on.
        fatal: bool,
    },
    /// Nothing for the state of the domain.
    Nothing,
}

/// What an event of QEMU means for the domain.
pub fn meaning(event: &Event, intent: &Intent) -> Meaning {
    match event {
        Event::Resume | Event::Wakeup => Meaning::Becomes(State::Running, Reason::Unknown),
        // Once the machine is off, it also stops; that tells nothing new.
        Event::Stop if intent.ending.is_some() => Meaning::Nothing,
        Event::Stop => {
            let usual = if intent.migrating { Reason::Migration } else { Reason::User };
            Meaning::Becomes(State::Paused, intent.stop.unwrap_or(usual))
        }
        Event::Migration { status: MigrationStatus::PostcopyPaused } => {
            Meaning::Becomes(State::Paused, Reason::PostcopyFailed)
        }
        Event::Suspend | Event::SuspendDisk => Meaning::Becomes(State::Suspended, Reason::Unknown),
        Event::BlockIoError { action, .. } if action == "stop" => Meaning::WillStop(Reason::IoError),
        Event::Watchdog { action } if action == "pause" => Meaning::WillStop(Reason::Watchdog),
        Event::GuestPanicked { info, .. } => {
            Meaning::Panicked { panic: panic_of(info.as_ref()), fatal: true }
        }
        // The guest goes on into its crash kernel.
        Event::GuestCrashloaded { info, .. } => {
            Meaning::Panicked { panic: panic_of(info.as_ref()), fatal: false }
        }
        Event::Shutdown { reason, .. } => {
            let (state, reason) = match reason.as_deref() {
                Some("guest-panic") => (State::Crashed, Reason::Panicked),
                Some("host-error") => (State::Crashed, Reason::Failed),
                Some(reason) if reason.starts_with("host-") => (State::Shutoff, Reason::Destroyed),
                _ => (State::Shutoff, Reason::Shutdown),
            };
            Meaning::Ended(state, reason)
        }
        _ => Meaning::Nothing,
    }
}

/// What it means that QEMU is found in a state, when the events that led there were missed.
pub fn found(found: &RunState, intent: &Intent) -> Meaning {
    match found {
        RunState::Running => Meaning::Becomes(State::Running, Reason::Unknown),
        RunState::Paused => meaning(&Event::Stop, intent),
        RunState::IoError => Meaning::Becomes(State::Paused, Reason::IoError),
        RunState::Watchdog => Meaning::Becomes(State::Paused, Reason::Watchdog),
        RunState::Suspended => Meaning::Becomes(State::Suspended, Reason::Unknown),
        RunState::GuestPanicked => Meaning::Panicked { panic: panic_of(None), fatal: true },
        RunState::Shutdown if intent.ending.is_none() => Meaning::Ended(State::Shutoff, Reason::Shutdown),
        // The rest belongs to a start or to a migration, which ask for themselves.
        _ => Meaning::Nothing,
    }
}

/// The state of a domain whose QEMU has ended, and the words for it if that was a failure.
pub fn end(exit: &Exit, intent: &Intent, out_of_memory: bool) -> (State, Reason, String) {
    if intent.migrated {
        return (State::Shutoff, Reason::Migrated, String::new());
    }
    if let Some((state, reason)) = intent.ending {
        let words = if state == State::Crashed { "the guest's kernel panicked" } else { "" };
        return (state, reason, words.to_owned());
    }
    if intent.killed {
        return (State::Shutoff, Reason::Destroyed, String::new());
    }
    if intent.arriving {
        return (State::Shutoff, Reason::Failed, format!("the machine has not arrived: {exit}"));
    }
    let hint = if out_of_memory && exit.is_killed() {
        "QEMU was killed because the pod reached its memory limit: give the VM more overhead or less guest memory; "
    } else {
        ""
    };
    (State::Crashed, Reason::Crashed, format!("{hint}QEMU ended unexpectedly: {exit}"))
}

/// Exit code of the launcher: 0 if the machine ended as somebody wished, 1 if it failed.
pub fn exit_code(state: State, reason: Reason) -> u8 {
    match (state, reason) {
        (State::Shutoff, Reason::Shutdown | Reason::Destroyed | Reason::Migrated) => 0,
        _ => 1,
    }
}

fn panic_of(info: Option<&Value>) -> GuestPanic {
    let Some(info) = info else {
        return GuestPanic { kind: "unknown".into(), arguments: Vec::new() };
    };
    let kind = info.get("type").and_then(Value::as_str).unwrap_or("unknown").to_owned();
    let number = |name: &str| info.get(name).and_then(Value::as_u64);
    let arguments = ["arg1", "arg2", "arg3", "arg4", "arg5"].into_iter().map_while(number).collect();
    GuestPanic { kind, arguments }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_missed_is_seen_later() {
        let calm = Intent::default();
        let moving = Intent { migrating: true, ..calm };
        let ending = Intent { ending: Some((State::Shutoff, Reason::Shutdown)), ..calm };
        let becomes = Meaning::Becomes;
        let cases = [
            (RunState::Running, calm, becomes(State::Running, Reason::Unknown)),
            (RunState::Paused, calm, becomes(State::Paused, Reason::User)),
            (RunState::Paused, moving, becomes(State::Paused, Reason::Migration)),
            (RunState::Paused, ending, Meaning::Nothing),
            (RunState::IoError, calm, becomes(State::Paused, Reason::IoError)),
            (RunState::Watchdog, calm, becomes(State::Paused, Reason::Watchdog)),
            (RunState::Suspended, calm, becomes(State::Suspended, Reason::Unknown)),
            (RunState::Shutdown, calm, Meaning::Ended(State::Shutoff, Reason::Shutdown)),
            (RunState::Shutdown, ending, Meaning::Nothing),
            (RunState::Prelaunch, calm, Meaning::Nothing),
            (RunState::InMigrate, calm, Meaning::Nothing),
        ];
        for (state, intent, expected) in cases {
            assert_eq!(found(&state, &intent), expected, "{state:?} {intent:?}");
        }
        assert!(matches!(found(&RunState::GuestPanicked, &calm), Meaning::Panicked { fatal: true, .. }));
    }

    fn shutdown(reason: &str) -> Event {
        Event::Shutdown { guest: reason.starts_with("guest"), reason: Some(reason.to_owned()) }
    }

    #[test]
    fn events_have_a_meaning() {
        let calm = Intent::default();
        let moving = Intent { migrating: true, ..calm };
        let failing = Intent { stop: Some(Reason::IoError), ..calm };
        let ending = Intent { ending: Some((State::Shutoff, Reason::Shutdown)), ..calm };
        let io_error = |action: &str| Event::BlockIoError {
            device: String::new(),
            node_name: None,
            qom_path: None,
            operation: "write".into(),
            action: action.into(),
            nospace: Some(true),
            reason: None,
        };
        use Meaning::{Becomes, Ended, Nothing, WillStop};
        let cases = [
            (Event::Resume, calm, Becomes(State::Running, Reason::Unknown)),
            (Event::Stop, calm, Becomes(State::Paused, Reason::User)),
            (Event::Stop, moving, Becomes(State::Paused, Reason::Migration)),
            (Event::Stop, failing, Becomes(State::Paused, Reason::IoError)),
            (Event::Stop, Intent { migrating: true, ..failing }, Becomes(State::Paused, Reason::IoError)),
            (
                Event::Migration { status: MigrationStatus::PostcopyPaused },
                calm,
                Becomes(State::Paused, Reason::PostcopyFailed),
            ),
            (Event::Stop, ending, Nothing),
            (Event::Suspend, calm, Becomes(State::Suspended, Reason::Unknown)),
            (Event::Wakeup, calm, Becomes(State::Running, Reason::Unknown)),
            (io_error("stop"), calm, WillStop(Reason::IoError)),
            (io_error("report"), calm, Nothing),
            (Event::Watchdog { action: "pause".into() }, calm, WillStop(Reason::Watchdog)),
            (Event::Watchdog { action: "reset".into() }, calm, Nothing),
            (shutdown("guest-shutdown"), calm, Ended(State::Shutoff, Reason::Shutdown)),
            (shutdown("guest-reset"), calm, Ended(State::Shutoff, Reason::Shutdown)),
            (shutdown("guest-panic"), calm, Ended(State::Crashed, Reason::Panicked)),
            (shutdown("host-qmp-quit"), calm, Ended(State::Shutoff, Reason::Destroyed)),
            (shutdown("host-signal"), calm, Ended(State::Shutoff, Reason::Destroyed)),
            (shutdown("host-error"), calm, Ended(State::Crashed, Reason::Failed)),
            (Event::Powerdown, calm, Nothing),
        ];
        for (event, intent, expected) in cases {
            assert_eq!(meaning(&event, &intent), expected, "{event:?}");
        }
    }

    #[test]
    fn a_panic_is_told_with_its_numbers() {
        let info = json!({"type": "hyper-v", "arg1": 30, "arg2": 1, "arg3": 0, "arg4": 7, "arg5": 9});
        let event = Event::GuestPanicked { action: "pause".into(), info: Some(info) };
        let panic = GuestPanic { kind: "hyper-v".into(), arguments: vec![30, 1, 0, 7, 9] };
        assert_eq!(meaning(&event, &Intent::default()), Meaning::Panicked { panic, fatal: true });
        let event = Event::GuestCrashloaded { action: "run".into(), info: None };
        let panic = GuestPanic { kind: "unknown".into(), arguments: Vec::new() };
        assert_eq!(meaning(&event, &Intent::default()), Meaning::Panicked { panic, fatal: false });
    }

    #[test]
    fn the_end_has_a_reason_and_an_exit_code() {
        let clean = Exit { code: Some(0), signal: None, last_words: vec![] };
        let killed = Exit { code: None, signal: Some(9), last_words: vec!["so long".into()] };
        let calm = Intent::default();
        let cases = [
            (&clean, Intent { migrated: true, ..calm }, (State::Shutoff, Reason::Migrated), 0),
            (&clean, Intent { killed: true, ..calm }, (State::Shutoff, Reason::Destroyed), 0),
            (&killed, Intent { killed: true, ..calm }, (State::Shutoff, Reason::Destroyed), 0),
            (
                &clean,
                Intent { ending: Some((State::Shutoff, Reason::Shutdown)), killed: true, ..calm },
                (State::Shutoff, Reason::Shutdown),
                0,
            ),
            (
                &clean,
                Intent { ending: Some((State::Crashed, Reason::Panicked)), ..calm },
                (State::Crashed, Reason::Panicked),
                1,
            ),
            (&clean, Intent { arriving: true, ..calm }, (State::Shutoff, Reason::Failed), 1),
            (
                &killed,
                Intent { arriving: true, killed: true, ..calm },
                (State::Shutoff, Reason::Destroyed),
                0,
            ),
            (&killed, calm, (State::Crashed, Reason::Crashed), 1),
            (&clean, calm, (State::Crashed, Reason::Crashed), 1),
        ];
        for (exit, intent, expected, code) in cases {
            let (state, reason, _) = end(exit, &intent, false);
            assert_eq!((state, reason), expected, "{exit:?} {intent:?}");
            assert_eq!(exit_code(state, reason), code, "{exit:?} {intent:?}");
        }
        let (_, _, words) = end(&killed, &calm, true);
        assert!(words.contains("memory limit") && words.contains("so long"), "{words}");
    }
}
