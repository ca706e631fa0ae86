//! Whether the API server answers, told by what becomes of the requests that are sent anyway.
//!
//! Every daemon keeps asking: watches are begun anew every few minutes and, where that fails, again within half a minute.
//! So nobody has to ask only to know.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;

/// What became of the latest requests; clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers(Arc<Mutex<Option<Silence>>>);

/// Requests that were all in vain.
#[derive(Clone, Copy, Debug)]
struct Silence {
    first: Instant,
    last: Instant,
}

impl Answers {
    /// A request came to this; nothing if there was no answer.
    pub(crate) fn note(&self, status: Option<StatusCode>, now: Instant) {
        let mut silence = self.lock();
        let first = silence.map_or(now, |silence| silence.first);
        *silence = (!is_answer(status)).then_some(Silence { first, last: now });
    }

    /// From the first to the last of the latest requests, if all of them were in vain.
    pub(crate) fn silence(&self) -> Duration {
        self.lock().map_or(Duration::ZERO, |silence| silence.last - silence.first)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Silence>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an API server answered that knows us. Where there is none, what stands before it may answer in its place.
fn is_answer(status: Option<StatusCode>) -> bool {
    let Some(status) = status else { return false };
    !matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_from_the_first_failure_to_the_last_without_an_answer_between() {
        let (answers, begin) = (Answers::default(), Instant::now());
        let steps = [
            (0, Some(200), 0),
            (10, None, 0),
            (20, Some(503), 10),
            (50, Some(401), 40),
            // A refusal is an answer.
            (60, Some(403), 0),
            (70, Some(502), 0),
            (75, Some(504), 5),
            (80, Some(500), 0),
            (90, None, 0),
            // Nothing is known of the time in which nobody asked.
            (90, None, 0),
            (999, Some(404), 0),
        ];
        for (second, status, silence) in steps {
            let status = status.map(|code| StatusCode::from_u16(code).unwrap());
            answers.note(status, begin + Duration::from_secs(second));
            assert_eq!(answers.silence().as_secs(), silence, "at {second}: {status:?}");
        }
    }
}
