//! What was told already, so that it is counted instead of told again.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::Happening;

/// What is said over and over is counted in the cluster at most this often.
const COUNT_EVERY: Duration = Duration::from_secs(10);
/// The cluster forgets events after an hour; so do we.
const REMEMBER: Duration = Duration::from_secs(3600);
/// More than this is not worth its memory.
const AT_MOST: usize = 2000;

/// What was told, by its words.
#[derive(Default)]
pub struct Told(HashMap<Happening, Entry>);

struct Entry {
    name: String,
    count: i32,
    sent: Instant,
}

/// What to say of something that happened.
#[derive(Debug, PartialEq, Eq)]
pub enum Say {
    /// It was just said.
    Nothing,
    /// It is new.
    New,
    /// It was told under this name, and has happened so often by now.
    Again {
        /// The event's name.
        name: String,
        /// How often.
        count: i32,
    },
}

impl Told {
    /// Something happened.
    pub fn hear(&mut self, happening: &Happening, now: Instant) -> Say {
        let Some(entry) = self.0.get_mut(happening).filter(|entry| now - entry.sent < REMEMBER) else {
            return Say::New;
        };
        entry.count = entry.count.saturating_add(1);
        if now - entry.sent < COUNT_EVERY {
            return Say::Nothing;
        }
        entry.sent = now;
        Say::Again { name: entry.name.clone(), count: entry.count }
    }

    /// It was told under this name.
    pub fn announced(&mut self, happening: Happening, name: String, now: Instant) {
        if self.0.len() >= AT_MOST {
            self.0.retain(|_, entry| now - entry.sent < COUNT_EVERY);
        }
        self.0.insert(happening, Entry { name, count: 1, sent: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Kind, Named};

    #[test]
    fn repeats_are_counted_now_and_then() {
        let object = Named {
            api_version: "v1".into(),
            kind: "Pod".into(),
            namespace: None,
            name: "a".into(),
            uid: None,
        };
        let happening = Happening {
            reporter: "controller",
            object,
            kind: Kind::Normal,
            reason: "Created".into(),
            message: "made".into(),
        };
        let (mut told, now) = (Told::default(), Instant::now());
        assert_eq!(told.hear(&happening, now), Say::New);
        told.announced(happening.clone(), "a.1".into(), now);
        assert_eq!(told.hear(&happening, now + Duration::from_secs(1)), Say::Nothing);
        let again = Say::Again { name: "a.1".into(), count: 3 };
        assert_eq!(told.hear(&happening, now + COUNT_EVERY), again);
        assert_eq!(told.hear(&happening, now + REMEMBER + COUNT_EVERY), Say::New);
        let by_another = Happening { reporter: "another", ..happening };
        assert_eq!(told.hear(&by_another, now + COUNT_EVERY), Say::New);
    }
}
