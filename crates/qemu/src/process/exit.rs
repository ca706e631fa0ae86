//! How a process ended.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::Signal;

/// The end of a QEMU, and what it said last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The last lines of its output.
    pub last_words: Vec<String>,
}

impl Exit {
    pub(crate) fn new(status: Option<ExitStatus>, last_words: Vec<String>) -> Self {
        Self {
            code: status.as_ref().and_then(ExitStatus::code),
            signal: status.as_ref().and_then(ExitStatusExt::signal),
            last_words,
        }
    }

    /// It ended of its own will and in order.
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    /// It was killed, by us, by somebody else, or for lack of memory.
    pub fn is_killed(&self) -> bool {
        self.signal == Some(Signal::KILL.as_raw())
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit code {code}")?,
            (None, Some(signal)) => write!(f, "signal {signal}")?,
            (None, None) => f.write_str("unknown end")?,
        }
        for line in &self.last_words {
            write!(f, "\n{line}")?;
        }
        Ok(())
    }
}
