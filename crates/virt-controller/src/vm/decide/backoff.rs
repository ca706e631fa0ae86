//! How long to wait before a machine whose guest never came up is started again.

use jiff::{SignedDuration, Timestamp};
use kubevirt_api::vm::RunStrategy;
use kubevirt_api::vm::status::{StartFailure, VirtualMachineStatus};
use kubevirt_api::vmi::VirtualMachineInstance;

use crate::vm::view;

/// The longest wait, in seconds.
const LONGEST: i64 = 300;
/// The unit of the waits, in seconds; it grows with the square of the failures.
const UNIT: i64 = 10;

/// The wait after so many failures in a row: 10, 40, 90, … seconds and up to half as much again, at most 300.
///
/// The part on top keeps machines that failed together from starting together. It comes from the UID of the failed
/// instance, so that deciding twice gives the same answer.
pub fn delay(failures: i64, uid: &str) -> SignedDuration {
    let failures = failures.clamp(1, LONGEST);
    let least = UNIT.saturating_mul(failures * failures);
    let spread = least / 2 + 1;
    let part = i64::try_from(hash(uid) % u64::try_from(spread).unwrap_or(1)).unwrap_or_default();
    SignedDuration::from_secs((least + part).min(LONGEST))
}

/// FNV-1a: short, and the same in every process.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// When the next start may be tried, if there is a wait.
pub fn retry_at(status: &VirtualMachineStatus) -> Option<Timestamp> {
    status.start_failure.as_ref()?.retry_after_timestamp.as_ref().map(|time| time.0)
}

/// What is known of failed starts, after a look at the instance.
pub fn after(
    known: Option<StartFailure>,
    strategy: Option<&RunStrategy>,
    vmi: Option<&VirtualMachineInstance>,
    now: Timestamp,
) -> Option<StartFailure> {
    let restarts = strategy.is_none_or(|strategy| {
        matches!(strategy, RunStrategy::Always | RunStrategy::RerunOnFailure | RunStrategy::Once)
    });
    if !restarts || vmi.is_some_and(view::has_run) {
        return None;
    }
    // One that was told to go before it came up did not fail.
    let failed = |vmi: &&VirtualMachineInstance| view::is_final(vmi) && !view::is_deleting(&vmi.metadata);
    let Some(vmi) = vmi.filter(failed) else { return known };
    let uid = vmi.metadata.uid.clone();
    if known.as_ref().is_some_and(|known| known.last_failed_vmiuid == uid) {
        return known;
    }
    let count = known.and_then(|known| known.consecutive_fail_count).unwrap_or_default().saturating_add(1);
    let wait = delay(count, uid.as_deref().unwrap_or_default());
    let retry = now.checked_add(wait).unwrap_or(now);
    Some(StartFailure {
        consecutive_fail_count: Some(count),
        last_failed_vmiuid: uid,
        retry_after_timestamp: Some(view::second(retry)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::testing::{at, read};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn waits_grow_with_the_square_of_failures_up_to_five_minutes() {
        for (failures, least, most) in [
            (-1, 10, 15),
            (0, 10, 15),
            (1, 10, 15),
            (2, 40, 60),
            (3, 90, 135),
            (4, 160, 240),
            (5, 250, 300),
            (6, 300, 300),
            (i64::MAX, 300, 300),
        ] {
            for uid in ["", "a", "7ce715c1-677d-4750-a83d-490e1e0e0c7c"] {
                let wait = delay(failures, uid).as_secs();
                assert!((least..=most).contains(&wait), "{failures}: {wait}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_wait_is_never_longer_than_five_minutes(failures: i64, uid: String) {
            prop_assert!((10..=300).contains(&delay(failures, &uid).as_secs()));
        }
    }

    #[test]
    fn a_failed_start_is_counted_once_and_forgotten_when_the_guest_runs() {
        let failed = |uid: &str| {
            json!({ "metadata": { "uid": uid }, "status": { "phase": "Failed",
                "phaseTransitionTimestamps": [{ "phase": "Scheduled" }] } })
        };
        let ran = json!({ "metadata": { "uid": "b" }, "status": { "phase": "Failed",
            "phaseTransitionTimestamps": [{ "phase": "Running" }] } });
        let once = json!({ "consecutiveFailCount": 1, "lastFailedVMIUID": "a" });
        let counts = |known: &Value, strategy: &str, vmi: Value| {
            let known: Option<StartFailure> = read(known.clone());
            let vmi: Option<VirtualMachineInstance> = read(vmi);
            let strategy = RunStrategy::from(strategy);
            let after = after(known, Some(&strategy), vmi.as_ref(), at(0));
            after
                .map(|failure| (failure.consecutive_fail_count.unwrap(), failure.last_failed_vmiuid.unwrap()))
        };
        let none = Value::Null;
        assert_eq!(counts(&none, "Always", none.clone()), None);
        assert_eq!(counts(&none, "Always", failed("a")), Some((1, "a".to_owned())));
        assert_eq!(counts(&once, "Always", failed("a")), Some((1, "a".to_owned())));
        assert_eq!(counts(&once, "Once", failed("b")), Some((2, "b".to_owned())));
        assert_eq!(counts(&once, "RerunOnFailure", none.clone()), Some((1, "a".to_owned())));
        assert_eq!(counts(&once, "Always", ran), None);
        let mut stopped = failed("b");
        stopped["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(counts(&none, "RerunOnFailure", stopped), None);
        assert_eq!(counts(&once, "Manual", none.clone()), None);
        assert_eq!(counts(&once, "Halted", failed("b")), None);
        assert_eq!(
            counts(&once, "Always", json!({ "status": { "phase": "Scheduling" } })),
            Some((1, "a".to_owned()))
        );
    }
}
