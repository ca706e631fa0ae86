//! The last lines of a process's output, bounded however much it says.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::io::AsyncRead;
use tokio::sync::broadcast;

use crate::lines::{Lines, NoLine};

const KEPT_LINES: usize = 50;
const LONGEST_LINE: usize = 4096;
const UNHEARD_LINES: usize = 256;

/// The last lines, and whoever follows as they come.
#[derive(Debug)]
pub(crate) struct Tail {
    kept: Mutex<VecDeque<String>>,
    followers: broadcast::Sender<String>,
}

impl Tail {
    pub(crate) fn new() -> Self {
        Self { kept: Mutex::default(), followers: broadcast::Sender::new(UNHEARD_LINES) }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.kept().iter().cloned().collect()
    }

    pub(crate) fn follow(&self) -> broadcast::Receiver<String> {
        self.followers.subscribe()
    }

    /// Keeps what is said until the end. A line past all measure is cut, not lost.
    pub(crate) async fn keep(&self, from: impl AsyncRead + Unpin) {
        let mut lines = Lines::new(from, LONGEST_LINE);
        loop {
            match lines.next().await {
                Ok(line) => self.push(&line),
                Err(NoLine::TooLong { .. }) => self.push(&lines.take_rest()),
                Err(NoLine::End | NoLine::Io(_)) => {
                    let rest = lines.take_rest();
                    if !rest.is_empty() {
                        self.push(&rest);
                    }
                    return;
                }
            }
        }
    }

    fn push(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line).into_owned();
        let mut kept = self.kept();
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(line.clone());
        // It fails only if nobody follows.
        let _ = self.followers.send(line);
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keeps_the_last_lines_and_cuts_long_ones() {
        let tail = Tail::new();
        let mut said: String = (0..200).map(|number| format!("line {number}\r\n")).collect();
        said += &"x".repeat(3 * LONGEST_LINE);
        tail.keep(said.as_bytes()).await;
        let lines = tail.lines();
        assert_eq!(lines.len(), KEPT_LINES);
        assert!(lines.contains(&"line 199".to_owned()));
        assert!(!lines.contains(&"line 100".to_owned()));
        assert!(lines.iter().all(|line| line.len() <= 3 * LONGEST_LINE));
    }
}
