//! Waiting for what others bring: when to look again, and when the user hears of it.

use std::time::Duration;

use jiff::Timestamp;

/// What takes longer than this is told, in words that are renewed no more often.
const LONG: Duration = Duration::from_secs(10);

/// How long, and how often in a row, something was not ready yet.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    tries: u32,
    since: Option<Timestamp>,
    told: Option<(Timestamp, String)>,
}

/// What the user is told of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// Nothing: it mostly is over soon.
    Nothing,
    /// Why it takes so long, for the first time.
    First(String),
    /// The same, or something else by now.
    Still(String),
}

impl Waiting {
    /// How long to wait before the next try: short at first, since it mostly is ready a moment later.
    pub fn pause(&mut self) -> Duration {
        let pause = Duration::from_millis(50 << self.tries.min(5)).min(Duration::from_secs(1));
        self.tries = self.tries.saturating_add(1);
        pause
    }

    /// What the user is told after one more try in vain.
    pub fn told(&mut self, why: &str, now: Timestamp) -> Told {
        let since = *self.since.get_or_insert(now);
        if !is_long(since, now) {
            return Told::Nothing;
        }
        let first = self.told.is_none();
        let words = match self.told.take() {
            Some(told) if told.1 == why || !is_long(told.0, now) => told,
            _ => (now, why.to_owned()),
        };
        let said = words.1.clone();
        self.told = Some(words);
        if first { Told::First(said) } else { Told::Still(said) }
    }

    /// What was waited for is there, whatever else is missing.
    pub fn over(&mut self) {
        (self.since, self.told) = (None, None);
    }

    /// Whether something was waited for.
    pub fn has_begun(&self) -> bool {
        self.tries > 0
    }
}

fn is_long(since: Timestamp, now: Timestamp) -> bool {
    Duration::try_from(now.duration_since(since)).is_ok_and(|passed| passed >= LONG)
}

#[cfg(test)]
mod tests {
    use super::super::testing::at;
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_limit() {
        let mut waiting = Waiting::default();
        assert!(!waiting.has_begun());
        let pauses: Vec<u128> = (0..8).map(|_| waiting.pause().as_millis()).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000, 1000]);
        assert!(waiting.has_begun());
    }

    #[test]
    fn only_what_takes_long_is_told_and_its_words_change_now_and_then() {
        let first = |why: &str| Told::First(why.to_owned());
        let still = |why: &str| Told::Still(why.to_owned());
        let mut waiting = Waiting::default();
        for (second, why, expected) in [
            (100, "no interface", Told::Nothing),
            (109, "no interface", Told::Nothing),
            (110, "no interface", first("no interface")),
            (111, "no interface", still("no interface")),
            (112, "no socket", still("no interface")),
            (120, "no socket", still("no socket")),
            (125, "no interface", still("no socket")),
            (140, "no socket", still("no socket")),
        ] {
            assert_eq!(waiting.told(why, at(second)), expected, "{second}");
        }
        waiting.over();
        assert_eq!(waiting.told("no socket", at(141)), Told::Nothing);
        assert_eq!(waiting.told("no socket", at(151)), first("no socket"));
    }
}
