//! Whether a migration that is under way may go on as it does.

use std::time::{Duration, Instant};

/// When to lose patience, and what may be done then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// Time for all of it.
    pub completion: Option<Duration>,
    /// Time without any progress.
    pub progress: Option<Duration>,
    /// The guest may suffer rather than stay.
    pub may_disrupt: bool,
    /// It may run on the target before all of its memory is there.
    pub may_postcopy: bool,
}

/// How a migration goes. Words are KubeVirt's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// The guest runs here.
    #[default]
    PreCopy,
    /// The guest runs there and its memory follows.
    PostCopy,
    /// The guest stands still until all of it is there.
    Paused,
}

impl Mode {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::PreCopy => "PreCopy",
            Self::PostCopy => "PostCopy",
            Self::Paused => "Paused",
        }
    }
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Continue,
    /// Let the guest run on the target at once.
    Postcopy,
    /// Let the guest stand still, so that its memory no longer changes.
    Pause,
    /// Let the guest move as soon as it would stand still for so long.
    Hasten(Duration),
    /// Give up, for this reason.
    Abort(String),
}

/// What to do with a migration of this age whose last progress is so long ago.
pub(super) fn next_step(limits: &Limits, mode: Mode, age: Duration, stuck: Duration) -> Step {
    // The guest's state is on both sides: giving up would lose it.
    if mode == Mode::PostCopy {
        return Step::Continue;
    }
    // A connection that moves nothing would not finish a paused guest either.
    if limits.progress.is_some_and(|most| stuck > most) {
        return Step::Abort(format!("there was no progress for {} seconds", stuck.as_secs()));
    }
    let Some(most) = limits.completion else { return Step::Continue };
    let most = if mode == Mode::Paused { most.saturating_mul(2) } else { most };
    if age <= most {
        return Step::Continue;
    }
    match (mode, limits.may_disrupt, limits.may_postcopy) {
        (Mode::PreCopy, true, true) => Step::Postcopy,
        (Mode::PreCopy, true, false) => Step::Pause,
        _ => Step::Abort(format!("it did not complete within {} seconds", most.as_secs())),
    }
}

/// The age of a migration and its last progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    began: Instant,
    moved: Instant,
    remaining: Option<u64>,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Self { began: now, moved: now, remaining: None }
    }

    /// Takes note of the bytes that are left; answers with the age and the time since the last progress.
    pub(super) fn observe(&mut self, now: Instant, remaining: u64) -> (Duration, Duration) {
        // While there is progress this falls, and rises again when the guest has written meanwhile.
        if self.remaining.is_none_or(|before| remaining < before) {
            self.moved = now;
        }
        self.remaining = Some(remaining);
        self.at(now)
    }

    /// The age and the time since the last progress.
    pub(super) fn at(&self, now: Instant) -> (Duration, Duration) {
        (now.saturating_duration_since(self.began), now.saturating_duration_since(self.moved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_in_the_right_way() {
        let seconds = Duration::from_secs;
        let plain = Limits {
            completion: Some(seconds(100)),
            progress: Some(seconds(10)),
            may_disrupt: false,
            may_postcopy: false,
        };
        let pausing = Limits { may_disrupt: true, ..plain.clone() };
        let postcopy = Limits { may_postcopy: true, ..pausing.clone() };
        let only_postcopy = Limits { may_postcopy: true, ..plain.clone() };
        let endless = Limits::default();
        let late = || Step::Abort("it did not complete within 100 seconds".into());
        let stuck = || Step::Abort("there was no progress for 11 seconds".into());
        let cases = [
            (&plain, Mode::PreCopy, 100, 10, Step::Continue),
            (&plain, Mode::PreCopy, 101, 0, late()),
            (&plain, Mode::PreCopy, 50, 11, stuck()),
            (&plain, Mode::PreCopy, 101, 11, stuck()),
            (&pausing, Mode::PreCopy, 101, 0, Step::Pause),
            (&pausing, Mode::PreCopy, 101, 11, stuck()),
            (&pausing, Mode::Paused, 101, 0, Step::Continue),
            (&pausing, Mode::Paused, 201, 0, Step::Abort("it did not complete within 200 seconds".into())),
            (&postcopy, Mode::PreCopy, 100, 0, Step::Continue),
            (&postcopy, Mode::PreCopy, 101, 0, Step::Postcopy),
            (&postcopy, Mode::PostCopy, 9999, 9999, Step::Continue),
            (&only_postcopy, Mode::PreCopy, 101, 0, late()),
            (&endless, Mode::PreCopy, 99_999, 99_999, Step::Continue),
        ];
        for (limits, mode, age, since, expected) in cases {
            let step = next_step(limits, mode, seconds(age), seconds(since));
            assert_eq!(step, expected, "{limits:?} {mode:?} {age} {since}");
        }
    }

    #[test]
    fn only_less_to_move_is_progress() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let at = |second: u64| start + Duration::from_secs(second);
        let steps = [(1, 100, 0), (2, 90, 0), (3, 90, 1), (4, 95, 2), (5, 94, 0), (6, 200, 1), (7, 199, 0)];
        for (second, remaining, since) in steps {
            let expected = (Duration::from_secs(second), Duration::from_secs(since));
            assert_eq!(pace.observe(at(second), remaining), expected, "{second}");
        }
    }
}
