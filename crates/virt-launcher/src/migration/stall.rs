//! Whether a migration has stalled, and what becomes of it then: the better of the two ways to lose patience.
//!
//! QEMU goes over the memory again and again, and a busy guest leaves as much to do as before. Each pass tells how
//! much is left. What has not become less for a while will not: then the guest is made to move at the next pass that
//! leaves as little as the best so far, and the longer none comes, the more is good enough.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use kubevirt_launcher_rpc::migration::StallDetectorOptions;

use super::pace::{Limits, Step};

/// The longest pause that QEMU can be told: the guest stands still until all of it has moved.
pub(super) const LONGEST_DOWNTIME: Duration = Duration::from_secs(2000);

/// What is seen of a migration.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Its age.
    pub age: Duration,
    /// Passes over the memory that have begun.
    pub passes: u64,
    /// Bytes that are left.
    pub remaining: u64,
    /// Bytes a second.
    pub speed: f64,
    /// The guest stands still.
    pub still: bool,
}

/// Follows the passes of one migration.
#[derive(Debug)]
pub(super) struct Stall {
    options: StallDetectorOptions,
    limits: Limits,
    downtime: Duration,
    passes: u64,
    /// Bytes a second, smoothed.
    speed: Option<f64>,
    /// Passes within the window that may come to be the best before it: each leaves less than the one before.
    recent: VecDeque<(Duration, u64)>,
    /// Least that a pass before the window left.
    before: Option<u64>,
    stalled: Option<Stalled>,
    /// The guest was told to move, and has until then.
    switching: Option<Duration>,
}

#[derive(Debug)]
struct Stalled {
    /// What a pass must leave to be good.
    good: u64,
    /// What passes have left since, to choose from when none is good.
    left: BinaryHeap<Reverse<u64>>,
    patience: Duration,
    until: Duration,
}

impl Stall {
    pub(super) fn new(options: StallDetectorOptions, limits: Limits, downtime: Duration) -> Self {
        Self {
            options,
            limits,
            downtime,
            passes: 0,
            speed: None,
            recent: VecDeque::new(),
            before: None,
            stalled: None,
            switching: None,
        }
    }

    /// What to do now.
    pub(super) fn step(&mut self, seen: &Seen) -> Step {
        let pass_began = seen.passes > self.passes;
        self.passes = self.passes.max(seen.passes);
        if !pass_began {
            self.note_speed(seen.speed);
        } else if self.switching.is_none() && self.speed.is_some() && self.has_stalled(seen) {
            let step = self.when_stalled(seen);
            if step != Step::Continue {
                return self.take(step, seen.age);
            }
        }
        let step = self.when_late(seen);
        self.take(step, seen.age)
    }

    fn take(&mut self, step: Step, age: Duration) -> Step {
        if matches!(step, Step::Hasten(_) | Step::Postcopy) {
            self.switching = Some(age + Duration::from_secs(self.options.switchover_timeout));
        }
        step
    }

    fn note_speed(&mut self, speed: f64) {
        if speed <= 0.0 {
            return;
        }
        let share = self.options.ewma_alpha.clamp(0.0, 1.0);
        self.speed = Some(self.speed.map_or(speed, |before| share * speed + (1.0 - share) * before));
    }

    fn has_stalled(&mut self, seen: &Seen) -> bool {
        self.note_pass(seen);
        if let Some(stalled) = &mut self.stalled {
            stalled.left.push(Reverse(seen.remaining));
            if seen.age >= stalled.until
                && let Some(Reverse(next)) = stalled.left.pop()
            {
                stalled.good = next;
                stalled.patience = scaled(stalled.patience, self.options.patience_window_decay_factor);
                stalled.until = seen.age + stalled.patience;
            }
            return true;
        }
        let Some(before) = self.before else { return false };
        if (seen.remaining as f64) < before as f64 * (1.0 - self.options.stall_margin) {
            return false;
        }
        let good = self.recent.iter().map(|(_, left)| *left).fold(before, u64::min);
        let patience = self.window();
        self.stalled = Some(Stalled { good, left: BinaryHeap::new(), patience, until: seen.age + patience });
        true
    }

    fn note_pass(&mut self, seen: &Seen) {
        while let Some((when, left)) = self.recent.front().copied()
            && seen.age.saturating_sub(when) >= self.window()
        {
            self.recent.pop_front();
            self.before = Some(self.before.map_or(left, |before| before.min(left)));
        }
        let is_less = |than: Option<u64>| than.is_none_or(|than| seen.remaining < than);
        if is_less(self.before.map(|before| before.saturating_add(1)))
            && is_less(self.recent.back().map(|(_, left)| *left))
        {
            self.recent.push_back((seen.age, seen.remaining));
        }
    }

    /// The last pass began, and no pass has become better for a while.
    fn when_stalled(&self, seen: &Seen) -> Step {
        let Some(stalled) = &self.stalled else { return Step::Continue };
        let good = stalled.good as f64 * (1.0 + self.options.stall_margin);
        if self.options.search_local_minima && seen.remaining as f64 > good {
            return Step::Continue;
        }
        let Some(pause) = self.pause(seen.remaining) else { return Step::Continue };
        // A connection that has become too slow will not become faster by what is done here.
        if !self.would_complete(seen.age, pause) {
            return Step::Continue;
        }
        let tolerable = scaled(self.downtime, self.options.precopy_possible_factor);
        match (self.limits.may_disrupt, self.limits.may_postcopy) {
            (true, true) => Step::Postcopy,
            (true, false) => Step::Hasten(LONGEST_DOWNTIME),
            (false, _) if pause <= tolerable.max(self.downtime) => Step::Hasten(self.downtime),
            (false, _) => Step::Abort(format!(
                "the guest writes faster than its memory moves: it would stand still for {} ms",
                pause.as_millis()
            )),
        }
    }

    /// Time is up, or not.
    fn when_late(&mut self, seen: &Seen) -> Step {
        let Some(completion) = self.limits.completion else { return Step::Continue };
        let until = if seen.still { completion } else { self.switching.unwrap_or(completion) };
        if seen.age <= until {
            return Step::Continue;
        }
        let in_time = self.pause(seen.remaining).is_some_and(|pause| self.would_complete(seen.age, pause));
        match (self.switching.is_none() && in_time, self.limits.may_postcopy, self.limits.may_disrupt) {
            (true, true, _) => Step::Postcopy,
            (true, false, true) => {
                self.limits.completion = Some(scaled(completion, self.options.completion_timeout_factor));
                Step::Hasten(LONGEST_DOWNTIME)
            }
            _ => Step::Abort(format!("it did not complete within {} seconds", until.as_secs())),
        }
    }

    /// How long the guest would stand still for what is left.
    fn pause(&self, remaining: u64) -> Option<Duration> {
        Duration::try_from_secs_f64(remaining as f64 / self.speed?).ok()
    }

    fn would_complete(&self, age: Duration, pause: Duration) -> bool {
        let Some(completion) = self.limits.completion else { return true };
        age.saturating_add(pause) <= scaled(completion, self.options.completion_timeout_factor)
    }

    fn window(&self) -> Duration {
        Duration::from_secs(self.options.stall_progress_timeout)
    }
}

fn scaled(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn limits(may_disrupt: bool, may_postcopy: bool) -> Limits {
        Limits { completion: Some(Duration::from_secs(600)), progress: None, may_disrupt, may_postcopy }
    }

    fn stall(limits: Limits) -> Stall {
        Stall::new(StallDetectorOptions::default(), limits, Duration::from_millis(900))
    }

    /// Passes of so many seconds, each with the MiB that it leaves, at 100 MiB a second; tells what comes of the last.
    fn passes(stall: &mut Stall, seconds: u64, left: impl IntoIterator<Item = u64>) -> Vec<Step> {
        let mut steps = Vec::new();
        for mib in left {
            let passes = stall.passes + 1;
            let age = Duration::from_secs(passes * seconds);
            let seen = Seen { age, passes, remaining: mib * MIB, speed: (100 * MIB) as f64, still: false };
            // Between two passes the speed is measured.
            stall.step(&Seen { passes: passes - 1, ..seen });
            steps.push(stall.step(&seen));
        }
        steps
    }

    #[test]
    fn a_migration_that_gets_on_is_left_alone() {
        let mut stall = stall(limits(true, true));
        let steps = passes(&mut stall, 10, (1..40).rev().map(|left| left * 100));
        assert!(steps.iter().all(|step| *step == Step::Continue), "{steps:?}");
    }

    #[test]
    fn a_stalled_one_moves_at_a_good_moment() {
        for (limits, expected) in [
            (limits(true, true), Step::Postcopy),
            (limits(true, false), Step::Hasten(LONGEST_DOWNTIME)),
            (limits(false, false), Step::Hasten(Duration::from_millis(900))),
            (limits(false, true), Step::Hasten(Duration::from_millis(900))),
        ] {
            let mut stall = stall(limits);
            // After 40 seconds without less than 60 MiB it has stalled; it goes when a pass comes near that again.
            let steps = passes(&mut stall, 10, [1000, 60, 500, 500, 500, 500, 500, 61]);
            let before = &steps[..steps.len() - 1];
            assert!(before.iter().all(|step| *step == Step::Continue), "{steps:?}");
            assert_eq!(steps.last(), Some(&expected));
            // Then it has a minute for it.
            let late = Seen { age: Duration::from_secs(141), passes: 9, ..Seen::default() };
            assert!(matches!(stall.step(&late), Step::Abort(_)));
        }
    }

    #[test]
    fn what_is_good_enough_grows_with_the_time() {
        let mut stall = stall(limits(true, false));
        let steps = passes(&mut stall, 10, [60, 500, 490, 500, 495, 500, 500, 500, 500, 500, 500]);
        let moved = steps.iter().position(|step| *step != Step::Continue).unwrap();
        assert!((8..=10).contains(&moved), "{steps:?}");
        assert_eq!(steps[moved], Step::Hasten(LONGEST_DOWNTIME));
    }

    #[test]
    fn a_guest_that_must_not_suffer_stays() {
        let mut stall = stall(limits(false, false));
        let steps = passes(&mut stall, 10, [2000; 8]);
        let last = steps.iter().find(|step| **step != Step::Continue).unwrap();
        assert!(matches!(last, Step::Abort(why) if why.contains("20000 ms")), "{steps:?}");
    }

    #[test]
    fn nothing_is_hastened_over_a_dead_connection() {
        let slow = |may_disrupt| {
            let mut stall = stall(limits(may_disrupt, false));
            stall.note_speed(1.0);
            stall
        };
        let late = Seen { age: Duration::from_secs(601), remaining: MIB, ..Seen::default() };
        assert!(matches!(slow(true).step(&late), Step::Abort(_)));
        let mut fast = stall(limits(true, false));
        fast.note_speed((100 * MIB) as f64);
        assert_eq!(fast.step(&late), Step::Hasten(LONGEST_DOWNTIME));
        // While it stands still it has the longer time.
        let still = Seen { age: Duration::from_secs(1100), still: true, ..late };
        assert_eq!(fast.step(&still), Step::Continue);
        let mut endless = stall(Limits::default());
        assert_eq!(endless.step(&Seen { age: Duration::from_secs(99_999), ..late }), Step::Continue);
    }
}
