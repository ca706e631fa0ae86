//! Whether a migration may begin, given the latest one.

use kubevirt_launcher_rpc::report::MigrationReport;

use crate::error::CommandError;

/// What a wish to migrate means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// A new migration.
    Begin,
    /// The one that is under way.
    Underway,
}

/// Whether a migration may begin. One at a time, and each only once: who wants another try makes another migration.
pub(super) fn admit(latest: Option<&MigrationReport>, uid: &str) -> Result<Admission, CommandError> {
    let Some(latest) = latest else { return Ok(Admission::Begin) };
    match (latest.uid == uid, latest.end_timestamp.is_some()) {
        (true, false) => Ok(Admission::Underway),
        (false, true) => Ok(Admission::Begin),
        (false, false) => Err(CommandError::AlreadyMigrating { uid: latest.uid.clone() }),
        (true, true) => {
            let how = if latest.failed { latest.failure_reason.clone() } else { "it succeeded".to_owned() };
            Err(CommandError::MigrationOver { uid: uid.to_owned(), how })
        }
    }
}

/// Whether a wish to cancel means anything now, or why it cannot be met. One that has been met may be repeated.
pub(super) fn admit_cancel(latest: Option<&MigrationReport>) -> Result<bool, CommandError> {
    let latest = latest.ok_or(CommandError::NotMigrating)?;
    match (latest.end_timestamp.is_some(), latest.abort_status.as_str()) {
        (_, "Aborting" | "Succeeded") => Ok(false),
        (true, _) => Err(CommandError::NotMigrating),
        (false, _) if latest.mode == "PostCopy" => Err(CommandError::CannotCancel),
        (false, _) => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latest(ended: bool) -> MigrationReport {
        let end_timestamp = ended.then(|| "2026-01-01T00:00:00Z".to_owned());
        MigrationReport { uid: "one".into(), end_timestamp, ..MigrationReport::default() }
    }

    #[test]
    fn one_at_a_time_and_each_once() {
        assert_eq!(admit(None, "one").unwrap(), Admission::Begin);
        assert_eq!(admit(Some(&latest(false)), "one").unwrap(), Admission::Underway);
        assert_eq!(admit(Some(&latest(true)), "two").unwrap(), Admission::Begin);
        let busy = admit(Some(&latest(false)), "two");
        assert!(matches!(busy, Err(CommandError::AlreadyMigrating { uid }) if uid == "one"));
        let over = admit(Some(&latest(true)), "one");
        assert!(matches!(over, Err(CommandError::MigrationOver { how, .. }) if how == "it succeeded"));
    }

    #[test]
    fn only_what_is_under_way_is_cancelled() {
        let with = |ended: bool, abort: &str, mode: &str| MigrationReport {
            abort_status: abort.into(),
            mode: mode.into(),
            ..latest(ended)
        };
        assert!(matches!(admit_cancel(None), Err(CommandError::NotMigrating)));
        assert!(matches!(admit_cancel(Some(&with(true, "", "PreCopy"))), Err(CommandError::NotMigrating)));
        assert!(matches!(admit_cancel(Some(&with(false, "", "PostCopy"))), Err(CommandError::CannotCancel)));
        assert!(admit_cancel(Some(&with(false, "", "PreCopy"))).unwrap());
        assert!(admit_cancel(Some(&with(false, "Failed", "PreCopy"))).unwrap());
        assert!(!admit_cancel(Some(&with(false, "Aborting", "PreCopy"))).unwrap());
        assert!(!admit_cancel(Some(&with(true, "Succeeded", "PreCopy"))).unwrap());
    }
}
