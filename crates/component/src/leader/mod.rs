//! One of several works: leadership by a Lease, which its holder stops to work on before another can take it.
//!
//! No clocks are compared. Others wait for the length of the lease from when they saw it renewed; the holder counts
//! a shorter time from when it *sent* its last renewal, so it is over for the holder first. A holder that was frozen
//! finds its time over before it goes on with its work, and what the work has spawned finds it over when it wants to
//! change something: its client belongs to the [`Term`]. What was given to the connection just before the freeze is beyond
//! that; writes carry the version of what was seen, and so fail if another leader was there.

mod decide;
mod gate;
mod guard;
mod lease;

use std::pin::pin;
use std::time::Duration;

use kube::Client;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use decide::{BadTiming, Timing};
use decide::{Step, contend};
pub(crate) use gate::Gate;
use guard::{Deadline, Lapsed};
use lease::Lock;

use crate::flags::Election;

/// How long work may take to end once it is told to.
const GRACE: Duration = Duration::from_secs(5);

/// Which lease, and as whom.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease, which is that of the component.
    pub lease: String,
    /// Who holds the lease, see [`contender`]; two that run at a time must not have the same.
    pub identity: String,
    /// How long leadership lasts.
    pub timing: Timing,
}

/// One time of leading, from when the lease was taken to when it is lost or given back; clones are the same.
#[derive(Clone, Debug)]
pub struct Term {
    /// Is cancelled when the work should end.
    pub stop: CancellationToken,
    deadline: Deadline,
}

impl Term {
    fn new(until: Instant) -> Self {
        Self { stop: CancellationToken::new(), deadline: Deadline::new(until) }
    }

    /// What a client must pass to change something.
    pub(crate) fn gate(&self) -> Gate {
        Gate(self.deadline.clone())
    }

    fn end(&self) {
        self.stop.cancel();
        self.deadline.set(Instant::now());
    }
}

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended<T> {
    /// It was told to stop, whether it led or not. The lease is free for others.
    Stopped,
    /// The lease could not be renewed in time; the work was cut off.
    Lost,
    /// The work came to its own end. The lease is free for others.
    Done(T),
}

impl From<&Election> for Timing {
    fn from(flags: &Election) -> Self {
        Self { lease: flags.lease, renew: flags.renew, retry: flags.retry }
    }
}

/// The name of this pod, which is its host's name.
pub fn identity() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { format!("process-{}", std::process::id()) } else { name.to_owned() }
}

/// Who holds a lease: the name of this pod, for people, and a number that no other process has. Pods can share the name
/// of their host, even the number of their process, and each would take the lease of the other for its own.
pub fn contender() -> String {
    format!("{}_{:016x}", identity(), fastrand::u64(..))
}

/// Waits until the lease can be had, then does the work as long as it can be kept.
///
/// The work gets a term, whose token is cancelled when it should end: upon `stop` it has a few seconds to, while the lease
/// is still kept; when the lease is lost, it is dropped at once. What it spawned must end by the token, and must make its
/// changes through [`Common::leader_client`](crate::Common::leader_client), which the term ends for all of them. The client
/// for the lease should have no rate limit, so that renewals do not wait behind other requests.
pub async fn lead<T, W>(
    client: Client,
    candidate: Candidate,
    stop: &CancellationToken,
    work: impl FnOnce(Term) -> W,
) -> Result<Ended<T>, BadTiming>
where
    W: Future<Output = T>,
{
    candidate.timing.check()?;
    let mut lock = Lock::new(client, &candidate);
    let Some(taken) = stop.run_until_cancelled(acquire(&mut lock, &candidate)).await else {
        return Ok(Ended::Stopped);
    };
    tracing::info!(lease = candidate.lease, identity = candidate.identity, "leading");
    // Its token is not a child of `stop`: the lease is kept while the work comes to its end.
    let term = Term::new(taken + candidate.timing.renew);
    let _cancelled_on_drop = term.stop.clone().drop_guard();
    let work = guard::until(&term.deadline, finish(work(term.clone()), stop, &term.stop));
    let ended = tokio::select! {
        // First, so that a lapse is seen before anything is written.
        biased;
        ended = work => ended,
        never = renew(&mut lock, &candidate, &term.deadline) => match never {},
    };
    // Before the lease is given back: whatever the work left behind must not meet the next leader.
    term.end();
    match ended {
        Ok(ended) => {
            lock.release().await;
            tracing::info!(lease = candidate.lease, "not leading any more");
            Ok(ended)
        }
        Err(Lapsed) => {
            tracing::error!(lease = candidate.lease, "the lease could not be renewed in time");
            Ok(Ended::Lost)
        }
    }
}

/// The work, which is told when to stop, and dropped if it does not.
async fn finish<T>(
    work: impl Future<Output = T>,
    stop: &CancellationToken,
    token: &CancellationToken,
) -> Ended<T> {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        done = work.as_mut() => return Ended::Done(done),
    }
    token.cancel();
    if tokio::time::timeout(GRACE, work).await.is_err() {
        tracing::warn!("the work did not end when it was told to");
    }
    Ended::Stopped
}

/// Takes the lease as soon as it can be had; says when the request for it was sent.
async fn acquire(lock: &mut Lock, candidate: &Candidate) -> Instant {
    let Candidate { identity, timing, .. } = candidate;
    loop {
        let wait = match tokio::time::timeout(timing.renew, lock.look()).await {
            Ok(Ok(())) => {
                let sent = Instant::now();
                match contend(lock.seen(), identity, timing, sent, jiff::Timestamp::now()) {
                    Step::Wait(wait) => wait,
                    Step::Take(spec) => match tokio::time::timeout(timing.renew, lock.write(spec)).await {
                        Ok(Ok(())) => return sent,
                        Ok(Err(error)) => {
                            tracing::debug!(lease = candidate.lease, "cannot take the lease: {error}");
                            timing.retry
                        }
                        Err(_) => timing.retry,
                    },
                }
            }
            Ok(Err(error)) => {
                tracing::warn!(lease = candidate.lease, "cannot read the lease: {error}");
                timing.retry
            }
            Err(_) => timing.retry,
        };
        // Not all at once, where many wait for the same lease.
        tokio::time::sleep(wait.mul_f64(1.0 + 0.2 * fastrand::f64())).await;
    }
}

/// Keeps the lease, and moves the deadline with each success.
async fn renew(lock: &mut Lock, candidate: &Candidate, deadline: &Deadline) -> std::convert::Infallible {
    let Candidate { identity, timing, .. } = candidate;
    loop {
        tokio::time::sleep(timing.retry).await;
        let sent = Instant::now();
        // An answer after the deadline would be of no use.
        match tokio::time::timeout(timing.renew, lock.renew(identity, timing)).await {
            Ok(Ok(())) => deadline.set(sent + timing.renew),
            Ok(Err(lease::Failed::Taken(holder))) => {
                tracing::error!(lease = candidate.lease, holder, "somebody else holds the lease");
                deadline.set(Instant::now());
            }
            Ok(Err(error)) => tracing::warn!(lease = candidate.lease, "cannot renew the lease: {error}"),
            Err(_) => tracing::warn!(lease = candidate.lease, "cannot renew the lease: no answer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_processes_of_a_host_are_two_contenders() {
        let (one, other) = (contender(), contender());
        assert!(one.starts_with(&format!("{}_", identity())), "{one}");
        assert_ne!(one, other);
    }
}
