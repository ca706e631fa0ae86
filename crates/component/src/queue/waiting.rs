//! Which keys wait, which are worked on, and which failed how often.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::key::NamespacedName;

/// The pause after a first failure, and the longest: so long may pass after somebody did what work failed for, if we do
/// not hear of it, as of a quota that was raised.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// The state of a queue. Nothing here waits or reads a clock.
#[derive(Default)]
pub struct Waiting {
    ready: VecDeque<NamespacedName>,
    /// What is in `ready`, or will be when its work is done, and since when.
    wanted: HashMap<NamespacedName, Instant>,
    busy: HashSet<NamespacedName>,
    later: BTreeSet<(Instant, NamespacedName)>,
    due: HashMap<NamespacedName, Instant>,
    failures: HashMap<NamespacedName, u32>,
}

impl Waiting {
    pub fn add(&mut self, key: NamespacedName, now: Instant) {
        // What comes up now need not come up again for the sake of an earlier promise, unless that was for later.
        if self.due.get(&key).is_some_and(|due| *due <= now) {
            self.forget_promise(&key);
        }
        if self.wanted.contains_key(&key) {
            return;
        }
        self.wanted.insert(key.clone(), now);
        if !self.busy.contains(&key) {
            self.ready.push_back(key);
        }
    }

    pub fn add_at(&mut self, key: NamespacedName, moment: Instant) {
        if self.due.get(&key).is_some_and(|due| *due <= moment) {
            return;
        }
        self.forget_promise(&key);
        self.due.insert(key.clone(), moment);
        self.later.insert((moment, key));
    }

    /// The next key to work on and since when it waits, or else when there will be one.
    pub fn take(&mut self, now: Instant) -> (Option<(NamespacedName, Instant)>, Option<Instant>) {
        while let Some((moment, _)) = self.later.first() {
            if *moment > now {
                break;
            }
            if let Some((_, key)) = self.later.pop_first() {
                self.due.remove(&key);
                self.add(key, now);
            }
        }
        let next_due = self.later.first().map(|(moment, _)| *moment);
        let Some(key) = self.ready.pop_front() else { return (None, next_due) };
        let since = self.wanted.remove(&key).unwrap_or(now);
        self.busy.insert(key.clone());
        (Some((key, since)), next_due)
    }

    /// The work on the key succeeded.
    pub fn done(&mut self, key: &NamespacedName) {
        self.failures.remove(key);
        self.release(key);
    }

    /// The work on the key failed: how long to wait. `luck` is between 0 and 1, so that what failed together does
    /// not come back together.
    pub fn failed(&mut self, key: &NamespacedName, luck: f64) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        let pause = FIRST_PAUSE.saturating_mul(1 << (*failures).min(20)).min(LONGEST_PAUSE);
        *failures = failures.saturating_add(1);
        self.release(key);
        pause.mul_f64(0.75 + luck / 2.0)
    }

    /// Brings up the key if its work failed the last time. Whether it did.
    pub fn retry(&mut self, key: NamespacedName, now: Instant) -> bool {
        let failed = self.failures.contains_key(&key);
        if failed {
            self.add(key, now);
        }
        failed
    }

    /// The keys whose work failed the last time.
    pub fn failed_keys(&self) -> Vec<NamespacedName> {
        self.failures.keys().cloned().collect()
    }

    pub fn depth(&self) -> usize {
        self.ready.len()
    }

    fn release(&mut self, key: &NamespacedName) {
        self.busy.remove(key);
        if self.wanted.contains_key(key) {
            self.ready.push_back(key.clone());
        }
    }

    fn forget_promise(&mut self, key: &NamespacedName) {
        if let Some(due) = self.due.remove(key) {
            self.later.remove(&(due, key.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(number: u8) -> NamespacedName {
        NamespacedName::new("", number.to_string())
    }

    #[test]
    fn the_earliest_promise_holds() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let mut waiting = Waiting::default();
        waiting.add_at(key(1), now + 3 * second);
        waiting.add_at(key(1), now + second);
        waiting.add_at(key(1), now + 2 * second);
        assert_eq!(waiting.take(now), (None, Some(now + second)));
        assert_eq!(waiting.take(now + second), (Some((key(1), now + second)), None));
        waiting.done(&key(1));
        assert_eq!(waiting.take(now + 5 * second), (None, None));
    }

    #[test]
    fn pauses_grow_until_success() {
        let mut waiting = Waiting::default();
        let pauses: Vec<u128> = (0..3).map(|_| waiting.failed(&key(1), 0.5).as_millis()).collect();
        assert_eq!(pauses, [50, 100, 200]);
        for _ in 0..100 {
            waiting.failed(&key(1), 1.0);
        }
        assert!(waiting.failed(&key(1), 1.0) <= LONGEST_PAUSE.mul_f64(1.25));
        waiting.done(&key(1));
        assert_eq!(waiting.failed(&key(1), 0.5).as_millis(), 50);
    }

    #[test]
    fn only_what_failed_is_tried_again_ahead_of_its_pause() {
        let now = Instant::now();
        let mut waiting = Waiting::default();
        for number in 1..=3 {
            waiting.add(key(number), now);
            waiting.take(now);
        }
        waiting.done(&key(1));
        let pause = waiting.failed(&key(2), 0.5);
        waiting.add_at(key(2), now + pause);
        // Another attempt is under way, and may have begun before what it lacks has come.
        waiting.failed(&key(3), 0.5);
        waiting.add(key(3), now);
        waiting.take(now);
        assert_eq!([1, 2, 3, 4].map(|number| waiting.retry(key(number), now)), [false, true, true, false]);
        assert_eq!(waiting.take(now).0, Some((key(2), now)));
        assert_eq!(waiting.take(now).0, None);
        waiting.done(&key(3));
        assert_eq!(waiting.take(now).0, Some((key(3), now)));
        waiting.done(&key(2));
        waiting.done(&key(3));
        assert!(waiting.failed_keys().is_empty());
    }

    proptest! {
        /// Whatever happens in whatever order: no key is worked on twice at a time, and every key that was added
        /// after its work began is worked on again.
        #[test]
        fn nothing_is_lost_or_doubled(steps in prop::collection::vec((0u8..4, 0u8..5), 1..200)) {
            let mut now = Instant::now();
            let mut waiting = Waiting::default();
            let mut busy: HashSet<NamespacedName> = HashSet::new();
            let mut owed: HashSet<NamespacedName> = HashSet::new();
            for (number, what) in steps {
                let key = key(number);
                match what {
                    0 => { waiting.add(key.clone(), now); owed.insert(key); }
                    1 => { waiting.add_at(key.clone(), now + Duration::from_secs(1)); owed.insert(key); }
                    2 => if let (Some((taken, _)), _) = waiting.take(now) {
                        prop_assert!(busy.insert(taken.clone()));
                        if waiting.due.contains_key(&taken) { owed.insert(taken); } else { owed.remove(&taken); }
                    },
                    3 => if busy.remove(&key) { waiting.done(&key); },
                    _ => now += Duration::from_millis(300),
                }
            }
            for key in busy.drain() { waiting.done(&key); }
            now += Duration::from_secs(10);
            while let (Some((key, _)), _) = waiting.take(now) { owed.remove(&key); waiting.done(&key); }
            prop_assert!(owed.is_empty(), "{owed:?}");
        }
    }
}
