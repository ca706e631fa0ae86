//! How much one launcher may say, so that all others are heard too.

use std::time::Duration;

use tokio::time::Instant;

/// So much may be said at once: far more than happens to a machine.
const AT_ONCE: u32 = 25;
/// After that, one thing in this time.
const EACH: Duration = Duration::from_secs(30);

/// What a launcher may still say.
#[derive(Clone, Debug)]
pub struct Allowance {
    /// When it may say everything at once again.
    full: Instant,
    exceeded: bool,
}

/// Whether a launcher may say something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Granted,
    /// It says too much, from now on.
    Exceeded,
    /// It still says too much.
    Ignored,
}

impl Allowance {
    /// All of it.
    pub fn new(now: Instant) -> Self {
        Self { full: now, exceeded: false }
    }

    /// Whether one more thing may be said now.
    pub fn take(&mut self, now: Instant) -> Verdict {
        let full = self.full.max(now) + EACH;
        let before = std::mem::replace(&mut self.exceeded, full > now + EACH * AT_ONCE);
        match (before, self.exceeded) {
            (_, false) => {
                self.full = full;
                Verdict::Granted
            }
            (false, true) => Verdict::Exceeded,
            (true, true) => Verdict::Ignored,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_at_once_and_little_for_long() {
        use Verdict::{Exceeded, Granted, Ignored};
        let begin = Instant::now();
        let mut allowance = Allowance::new(begin);
        let mut at = |second: u64| allowance.take(begin + Duration::from_secs(second));
        assert!((0..25).all(|_| at(0) == Granted));
        for (second, expected) in [
            (0, Exceeded),
            (0, Ignored),
            (29, Ignored),
            (30, Granted),
            (31, Exceeded),
            (60, Granted),
            (60, Exceeded),
            // Two are due by then.
            (120, Granted),
            (120, Granted),
            (120, Exceeded),
        ] {
            assert_eq!(at(second), expected, "{second}");
        }
        // Whoever is quiet for long has no more than at first.
        assert_eq!((0..100).filter(|_| at(1_000_000) == Granted).count(), 25);
    }
}
