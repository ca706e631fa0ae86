//! Whether the other side is still there, asked by pings.
//!
//! A ping is answered by whoever reads the stream, and only once everything before it was read. So silence means nothing
//! as long as there may be something to read: a client may be slow, or hold its output, for as long as it likes. But
//! one that has answered, has read everything since, and then does not answer is gone. That the machine at the other
//! end of the connection is there at all is for TCP to find out, which knows it of slow readers, too.

use std::time::Duration;

use tokio::time::Instant;

/// How often the other side is asked, and how long it may be silent then.
#[derive(Clone, Copy, Debug)]
pub struct Pulse {
    /// Pings are so far apart: less than what proxies on the way let pass without a byte.
    pub every: Duration,
    /// Who has nothing to read answers within this time.
    pub within: Duration,
}

impl Default for Pulse {
    fn default() -> Self {
        Self { every: Duration::from_secs(20), within: Duration::from_secs(60) }
    }
}

/// What is to be done now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing until then, unless something comes.
    Wait(Instant),
    /// To ask whether the other side is there.
    Ping,
    /// Nothing any more: the other side is gone.
    Gone,
}

/// What was sent and what was heard.
#[derive(Debug)]
pub(crate) struct Heart {
    pulse: Pulse,
    next: Instant,
    /// The number of the last ping.
    sent: u64,
    /// The last ping that was answered.
    answered: u64,
    /// The last ping before the last data. Who has never answered may not have begun to read.
    wrote_after: u64,
    /// Since when the other side has nothing to do but to answer.
    silent_since: Option<Instant>,
}

impl Heart {
    pub(crate) fn new(pulse: Pulse, now: Instant) -> Self {
        let next = now + pulse.every;
        Self { pulse, next, sent: 0, answered: 0, wrote_after: 0, silent_since: None }
    }

    /// Data went out.
    pub(crate) fn wrote(&mut self) {
        self.wrote_after = self.sent;
    }

    /// Something came, whatever it is.
    pub(crate) fn heard(&mut self) {
        self.silent_since = None;
    }

    /// The answer to a ping came.
    pub(crate) fn answer(&mut self, number: u64) {
        if number <= self.sent {
            self.answered = self.answered.max(number);
        }
    }

    pub(crate) fn due(&self, now: Instant) -> Due {
        let end = self.silent_since.map(|since| since + self.pulse.within);
        match end {
            Some(end) if end <= now => Due::Gone,
            _ if self.next <= now => Due::Ping,
            end => Due::Wait(end.map_or(self.next, |end| end.min(self.next))),
        }
    }

    /// A ping goes out, with this number.
    pub(crate) fn ping(&mut self, now: Instant) -> u64 {
        self.put_off(now);
        self.sent += 1;
        let may_be_unread = self.answered <= self.wrote_after;
        if !may_be_unread && self.silent_since.is_none() {
            self.silent_since = Some(now);
        }
        self.sent
    }

    /// No ping goes out: it would only wait behind what the other side does not take.
    pub(crate) fn put_off(&mut self, now: Instant) {
        self.next = now + self.pulse.every;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PULSE: Pulse = Pulse { every: Duration::from_secs(20), within: Duration::from_secs(60) };

    /// What happens at a time.
    #[derive(Clone, Copy)]
    enum Event {
        Wrote,
        /// Something came that is no answer.
        Heard,
        Answer(u64),
    }
    use Event::{Answer, Heard, Wrote};

    /// When the pings go out within some minutes, and when the other side is held for gone, in seconds.
    fn life(events: &[(u64, Event)]) -> (Vec<u64>, Option<u64>) {
        let begin = Instant::now();
        let (mut heart, mut pings) = (Heart::new(PULSE, begin), Vec::new());
        for second in 0..600 {
            let now = begin + Duration::from_secs(second);
            for (_, event) in events.iter().filter(|(when, _)| *when == second) {
                match event {
                    Wrote => heart.wrote(),
                    Heard => heart.heard(),
                    Answer(number) => {
                        heart.heard();
                        heart.answer(*number);
                    }
                }
            }
            match heart.due(now) {
                Due::Wait(until) => assert!(until > now),
                Due::Ping => {
                    heart.ping(now);
                    pings.push(second);
                }
                Due::Gone => return (pings, Some(second)),
            }
        }
        (pings, None)
    }

    #[test]
    fn who_has_read_everything_and_does_not_answer_is_gone() {
        for (what, events, gone) in [
            ("who answered once", vec![(21, Answer(1))], Some(100)),
            ("who answered some time", vec![(21, Answer(1)), (41, Answer(2)), (61, Answer(3))], Some(140)),
            ("who answers late", vec![(21, Answer(1)), (99, Answer(2))], Some(160)),
            ("who sends something before it leaves", vec![(21, Answer(1)), (70, Heard)], Some(140)),
            ("who has read what was sent", vec![(10, Wrote), (21, Answer(1))], Some(100)),
            ("what is sent behind a ping is not in its way", vec![(21, Answer(1)), (41, Wrote)], Some(100)),
        ] {
            assert_eq!(life(&events).1, gone, "{what}");
        }
    }

    #[test]
    fn who_may_have_something_to_read_is_waited_for() {
        let nothing: Vec<(u64, Event)> = Vec::new();
        let always: Vec<_> = (1..30).map(|number| (number * 20 + 1, Answer(number))).collect();
        let busy: Vec<_> = (1..600).map(|second| (second, Heard)).chain([(21, Answer(1))]).collect();
        for (what, events) in [
            ("who has not begun to read", nothing),
            ("who answers", always),
            ("who is slow", vec![(21, Answer(1)), (30, Wrote)]),
            ("who is slow from the beginning", vec![(0, Wrote)]),
            ("who answers an old question", vec![(21, Answer(1)), (41, Wrote), (50, Answer(2))]),
            ("who answers what was not asked", vec![(10, Answer(7))]),
            ("who speaks and does not listen", busy),
        ] {
            let (pings, gone) = life(&events);
            assert_eq!((pings.len(), gone), (29, None), "{what}");
        }
    }
}
