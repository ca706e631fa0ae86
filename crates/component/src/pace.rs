//! How often a busy daemon looks at its connections.
//!
//! Whoever looks each time that something arrives handles one thing at a time, and pays for each with a switch to its
//! process, whose code and data the others have driven out of the caches by then. Who waits a moment finds several, and
//! handles them for little more than one. Network cards do the same with interrupts.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time between two looks when there is much to do: it adds to each step of a machine's start, so it is small
/// against what a pod takes.
const BETWEEN: Duration = Duration::from_millis(50);
/// So many looks are free after a quiet time. To start a handful of machines takes fewer, and they wait for nothing.
const SAVED: u32 = 100;

/// Rests between looks, if there were many lately.
#[derive(Debug)]
pub struct Pace(Mutex<Looks>);

impl Pace {
    /// After a quiet time.
    pub fn new() -> Self {
        Self(Mutex::new(Looks { saved: SAVED, since: Instant::now() }))
    }

    /// Puts the thread to sleep until it may look again.
    pub fn rest(&self) {
        let rest = self.0.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now());
        if !rest.is_zero() {
            std::thread::sleep(rest);
        }
    }
}

/// The looks that may be taken at once: one more each time that `BETWEEN` has passed.
#[derive(Debug, PartialEq, Eq)]
struct Looks {
    saved: u32,
    /// When the last of them was added.
    since: Instant,
}

impl Looks {
    /// Takes one, and says how long to wait for it.
    fn take(&mut self, now: Instant) -> Duration {
        let passed = now.saturating_duration_since(self.since);
        let added = u32::try_from(passed.as_nanos() / BETWEEN.as_nanos()).unwrap_or(u32::MAX);
        self.saved = self.saved.saturating_add(added);
        if self.saved >= SAVED {
            *self = Self { saved: SAVED, since: now };
        } else {
            self.since += BETWEEN * added;
        }
        if self.saved > 0 {
            self.saved -= 1;
            return Duration::ZERO;
        }
        self.since += BETWEEN;
        self.since.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rests(mut looks: Looks, moments: impl IntoIterator<Item = Instant>) -> Vec<u128> {
        moments.into_iter().map(|now| looks.take(now).as_millis()).collect()
    }

    #[test]
    fn a_few_looks_are_free_and_further_ones_are_spread() {
        let now = Instant::now();
        let rests = rests(Looks { saved: 2, since: now }, [now; 5]);
        assert_eq!(rests, [0, 0, 50, 100, 150]);
    }

    #[test]
    fn who_looks_seldom_never_rests() {
        let now = Instant::now();
        let moments = (0..1000).map(|number| now + BETWEEN * number);
        assert!(rests(Looks { saved: 0, since: now - BETWEEN }, moments).iter().all(|rest| *rest == 0));
    }

    #[test]
    fn a_quiet_time_saves_no_more_than_some() {
        let now = Instant::now();
        let later = now + Duration::from_secs(3600 * 24 * 365 * 10);
        let rests = rests(Looks { saved: 0, since: now }, [later; SAVED as usize + 1]);
        assert_eq!(rests.iter().filter(|rest| **rest == 0).count(), SAVED as usize);
        assert_eq!(rests.last(), Some(&50));
    }

    /// As a busy daemon does: each look finds something, which takes a while.
    #[test]
    fn under_load_there_are_twenty_in_a_second() {
        let begin = Instant::now();
        let (mut now, mut looks, mut count) = (begin, Looks { saved: 0, since: begin }, 0);
        while now < begin + Duration::from_secs(10) {
            now += looks.take(now) + Duration::from_millis(2);
            count += 1;
        }
        assert!((198..=202).contains(&count), "{count}");
    }
}
