//! Keeping a file small that somebody else copies.

use std::fs::File;
use std::io::{self, PipeReader};
use std::path::Path;
use std::time::Duration;

use super::Bounds;
use super::source::is_missing;
use super::watch::{Happened, Watch, rest};

/// Whoever copies the file has read all of it when nothing was added for this long.
const QUIET: Duration = Duration::from_secs(1);

/// Empties the file past its bounds until told to stop.
pub(super) fn run(path: &Path, mut watch: Watch, stop: &PipeReader, bounds: Bounds) -> io::Result<()> {
    let mut length = length_of(path)?;
    loop {
        // While it is not too large, only a change can make it so.
        let happened = if length > bounds.soft { Happened::Changed } else { watch.changed(stop)? };
        if happened == Happened::Stop || rest(stop, QUIET)? == Happened::Stop {
            return Ok(());
        }
        watch.renew()?;
        let before = std::mem::replace(&mut length, length_of(path)?);
        if length > bounds.hard || (length > bounds.soft && length == before) {
            File::options().write(true).open(path)?.set_len(0)?;
            length = 0;
        }
    }
}

fn length_of(path: &Path) -> io::Result<u64> {
    match std::fs::metadata(path) {
        Ok(told) => Ok(told.len()),
        Err(error) if is_missing(&error) => Ok(0),
        Err(error) => Err(error),
    }
}
