//! Who may lead: pure decisions on what is seen of a lease, by our own clock only.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::time::Instant;

/// How long leadership lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long others wait after the last sign of life that they saw of the leader.
    pub lease: Duration,
    /// How long the leader works on without being able to renew; shorter than the lease.
    pub renew: Duration,
    /// How long to wait between two attempts.
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { lease: seconds(15), renew: seconds(10), retry: seconds(2) }
    }
}

/// The times do not go together: two could lead at once, or nobody for long.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadTiming {
    /// Somebody else could take the lease before its holder stops.
    #[error("the renew deadline must be shorter than the lease duration")]
    RenewNotBeforeLease,
    /// There would be no second attempt.
    #[error("the retry period must be longer than nothing and shorter than the renew deadline")]
    RetryNotBeforeRenew,
}

impl Timing {
    /// Whether the times go together.
    pub fn check(&self) -> Result<(), BadTiming> {
        // A lease is written in whole seconds.
        if self.renew >= Duration::from_secs(self.lease.as_secs()) {
            return Err(BadTiming::RenewNotBeforeLease);
        }
        if self.retry.is_zero() || self.retry >= self.renew {
            return Err(BadTiming::RetryNotBeforeRenew);
        }
        Ok(())
    }
}

/// A lease as it was seen.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    /// What it says.
    pub(super) spec: LeaseSpec,
    /// When it was first seen to say so, by our own clock.
    pub(super) since: Instant,
}

impl Seen {
    /// The lease after another look: the time stays if nothing changed.
    pub(super) fn again(earlier: Option<Self>, spec: LeaseSpec, now: Instant) -> Self {
        match earlier {
            Some(earlier) if earlier.spec == spec => earlier,
            _ => Self { spec, since: now },
        }
    }

    fn holder(&self) -> &str {
        self.spec.holder_identity.as_deref().unwrap_or_default()
    }
}

/// What one who does not lead should do.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Write this and lead.
    Take(LeaseSpec),
    /// Look again after a while.
    Wait(Duration),
}

/// Whether the lease can be had.
pub(super) fn contend(
    seen: Option<&Seen>,
    identity: &str,
    timing: &Timing,
    now: Instant,
    clock: Timestamp,
) -> Step {
    let Some(seen) = seen else { return Step::Take(taken(None, identity, timing, clock)) };
    let seconds = u64::try_from(seen.spec.lease_duration_seconds.unwrap_or_default()).unwrap_or_default();
    let expires = seen.since + Duration::from_secs(seconds);
    if seen.holder().is_empty() || seen.holder() == identity || now > expires {
        return Step::Take(taken(Some(&seen.spec), identity, timing, clock));
    }
    Step::Wait(timing.retry)
}

/// The lease in our hands.
fn taken(before: Option<&LeaseSpec>, identity: &str, timing: &Timing, clock: Timestamp) -> LeaseSpec {
    let before = before.cloned().unwrap_or_default();
    let same = before.holder_identity.as_deref() == Some(identity);
    let transitions = before.lease_transitions.unwrap_or_default();
    LeaseSpec {
        acquire_time: before.acquire_time.clone().filter(|_| same).or(Some(MicroTime(clock))),
        lease_transitions: Some(if same { transitions } else { transitions.saturating_add(1) }),
        ..renewed(&before, identity, timing, clock)
    }
}

/// The lease after a sign of life.
pub(super) fn renewed(before: &LeaseSpec, identity: &str, timing: &Timing, clock: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: Some(i32::try_from(timing.lease.as_secs()).unwrap_or(i32::MAX)),
        renew_time: Some(MicroTime(clock)),
        ..before.clone()
    }
}

/// The lease in nobody's hands, for others to take at once.
pub(super) fn released(before: &LeaseSpec, clock: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        renew_time: Some(MicroTime(clock)),
        ..before.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Timestamp = Timestamp::UNIX_EPOCH;

    fn spec(holder: &str) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(15),
            lease_transitions: Some(3),
            acquire_time: Some(MicroTime(Timestamp::MIN)),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn who_may_take_the_lease() {
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let cases = [
            ("nobody's", spec(""), after(0), Some(4)),
            ("another's", spec("b"), after(0), None),
            ("another's, long ago", spec("b"), after(16), Some(4)),
            ("another's, just before its end", spec("b"), after(15), None),
            ("our own, from an earlier life", spec("a"), after(0), Some(3)),
            ("of no length", LeaseSpec { lease_duration_seconds: None, ..spec("b") }, after(1), Some(4)),
            (
                "of a silly length",
                LeaseSpec { lease_duration_seconds: Some(-5), ..spec("b") },
                after(1),
                Some(4),
            ),
            ("never taken", LeaseSpec::default(), after(0), Some(1)),
        ];
        for (case, spec, now, transitions) in cases {
            let seen = Seen { spec, since: begin };
            let step = contend(Some(&seen), "a", &Timing::default(), now, CLOCK);
            match (step, transitions) {
                (Step::Take(lease), Some(transitions)) => {
                    assert_eq!(lease.lease_transitions, Some(transitions), "{case}");
                    assert_eq!(lease.holder_identity.as_deref(), Some("a"), "{case}");
                    assert_eq!(lease.lease_duration_seconds, Some(15), "{case}");
                    let own = seen.holder() == "a";
                    assert_eq!(
                        lease.acquire_time,
                        Some(MicroTime(if own { Timestamp::MIN } else { CLOCK })),
                        "{case}"
                    );
                }
                (Step::Wait(time), None) => assert_eq!(time, Duration::from_secs(2), "{case}"),
                (step, _) => panic!("{case}: {step:?}"),
            }
        }
        assert!(matches!(contend(None, "a", &Timing::default(), begin, CLOCK), Step::Take(_)));
    }

    #[test]
    fn time_runs_from_the_last_change_that_was_seen() {
        let begin = Instant::now();
        let later = begin + Duration::from_secs(5);
        let first = Seen::again(None, spec("b"), begin);
        assert_eq!(Seen::again(Some(first.clone()), spec("b"), later).since, begin);
        let renewed = renewed(&spec("b"), "b", &Timing::default(), CLOCK);
        assert_eq!(Seen::again(Some(first), renewed, later).since, later);
    }

    #[test]
    fn what_was_released_is_taken_at_once() {
        let now = Instant::now();
        let seen = Seen { spec: released(&spec("b"), CLOCK), since: now };
        assert!(matches!(contend(Some(&seen), "a", &Timing::default(), now, CLOCK), Step::Take(_)));
    }

    #[test]
    fn times_go_together() {
        let of = |lease, renew, retry| {
            let times = [lease, renew, retry].map(Duration::from_millis);
            Timing { lease: times[0], renew: times[1], retry: times[2] }.check()
        };
        assert_eq!(Timing::default().check(), Ok(()));
        assert_eq!(of(15_000, 15_000, 2_000), Err(BadTiming::RenewNotBeforeLease));
        assert_eq!(of(15_900, 15_500, 2_000), Err(BadTiming::RenewNotBeforeLease));
        assert_eq!(of(15_000, 10_000, 10_000), Err(BadTiming::RetryNotBeforeRenew));
        assert_eq!(of(15_000, 10_000, 0), Err(BadTiming::RetryNotBeforeRenew));
    }
}
