//! How far a transfer is, on a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crate::output::{self, note};

/// How often the line is written anew.
const EVERY: Duration = Duration::from_millis(200);
/// The width of the bar.
const BAR: usize = 24;

/// A line that says how far it is; nothing where nobody looks.
pub struct Progress {
    label: &'static str,
    total: Option<u64>,
    done: u64,
    started: Instant,
    shown: Option<Instant>,
    visible: bool,
}

impl Progress {
    /// On standard error, if that is a terminal.
    pub fn new(label: &'static str, total: Option<u64>) -> Self {
        let visible = std::io::stderr().is_terminal();
        Self { label, total, done: 0, started: Instant::now(), shown: None, visible }
    }

    /// The size became known.
    pub fn expect(&mut self, total: Option<u64>) {
        self.total = total.or(self.total);
    }

    /// This much is done; less than before if it starts over.
    pub fn set(&mut self, done: u64) {
        self.done = done;
        if self.visible && self.shown.is_none_or(|shown| shown.elapsed() >= EVERY) {
            self.show();
        }
    }

    /// Says something on a line of its own.
    pub fn say(&mut self, words: &str) {
        if self.visible && self.shown.is_some() {
            output::beside("\r\x1b[K");
        }
        note!("{words}");
    }

    /// Shows the end and leaves the line.
    pub fn finish(&mut self) {
        if self.visible {
            self.show();
            note!("");
        }
    }

    fn show(&mut self) {
        let text = line(self.label, self.done, self.total, self.started.elapsed());
        let mut out = std::io::stderr().lock();
        // A terminal that is gone needs no progress.
        let _ = write!(out, "\r\x1b[K{text}").and_then(|()| out.flush());
        self.shown = Some(Instant::now());
    }
}

/// The line: how much of how much, a bar, the speed and how long it still takes.
fn line(label: &str, done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let speed = done as f64 / elapsed.as_secs_f64().max(0.001);
    let Some(total) = total.filter(|total| *total > 0) else {
        return format!("{label} {} {}/s", size(done), size(speed as u64));
    };
    let share = (done as f64 / total as f64).min(1.0);
    let full = (share * BAR as f64) as usize;
    let head = if full < BAR { ">" } else { "" };
    let bar = format!("{}{head}", "=".repeat(full));
    let left = (total.saturating_sub(done)) as f64 / speed.max(1.0);
    let left = if done == 0 || left > 360_000.0 { "-".to_owned() } else { time(left as u64) };
    let percent = (share * 100.0) as u32;
    format!(
        "{label} {} / {} [{bar:BAR$}] {percent}% {}/s {left}",
        size(done),
        size(total),
        size(speed as u64)
    )
}

/// Bytes in the unit that suits them.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") }
}

fn time(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_line_tells_how_far_it_is() {
        let mib = 1024 * 1024;
        for (done, total, seconds, expected) in [
            (0, Some(4 * mib), 1, "X 0 B / 4.0 MiB [>                       ] 0% 0 B/s -"),
            (mib, Some(4 * mib), 2, "X 1.0 MiB / 4.0 MiB [======>                 ] 25% 512.0 KiB/s 0:06"),
            (4 * mib, Some(4 * mib), 4, "X 4.0 MiB / 4.0 MiB [========================] 100% 1.0 MiB/s 0:00"),
            (2 * mib, None, 2, "X 2.0 MiB 1.0 MiB/s"),
        ] {
            assert_eq!(line("X", done, total, Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn sizes_and_times_are_short() {
        for (bytes, expected) in [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1 << 40, "1.0 TiB")] {
            assert_eq!(size(bytes), expected);
        }
        assert_eq!((time(59), time(3600)), ("0:59".to_owned(), "1:00:00".to_owned()));
    }

    proptest! {
        #[test]
        fn any_numbers_make_a_line(done: u64, total: Option<u64>, millis: u32) {
            let text = line("X", done, total, Duration::from_millis(millis.into()));
            prop_assert!(text.len() < 120, "{}", text);
        }
    }
}
