//! Copying a file as it grows.

use std::io::{self, PipeReader};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;

use super::Bounds;
use super::source::Source;
use super::watch::{Happened, Watch, has_room, rest};

/// Time in which small pieces gather. A guest's console comes byte by byte; nobody reads faster than this.
const GATHER: Duration = Duration::from_millis(50);

/// The largest piece: a pipe with any room at all takes it without making us wait.
const PIECE: usize = 4096;

/// Copies until told to stop, and then what is left.
pub(super) fn run(
    mut source: Source,
    mut watch: Watch,
    output: &OwnedFd,
    stop: &PipeReader,
    bounds: Option<Bounds>,
) -> io::Result<()> {
    let mut piece = Piece::default();
    let mut stopping = false;
    loop {
        if piece.left.is_empty() {
            piece.left = 0..source.read(&mut piece.bytes)?;
        }
        if !piece.left.is_empty() && has_room(output.as_fd())? {
            piece.write(output)?;
            continue;
        }
        if piece.left.is_empty() && stopping {
            return Ok(());
        }
        // Before each wait: the file may have grown past its bounds, and then never again.
        let lost = bounds.map_or(Ok(0), |bounds| source.keep_within(bounds))?;
        if lost > 0 {
            tracing::warn!(bytes = lost, "a part of the file is not copied: nobody takes what is written");
        }
        if piece.left.is_empty() {
            stopping = watch.changed(stop)? == Happened::Stop || rest(stop, GATHER)? == Happened::Stop;
            watch.renew()?;
        } else if watch.room(output.as_fd())? != Happened::Room {
            // Nobody takes what we write, and the file still grows.
            std::thread::sleep(GATHER);
            watch.renew()?;
        }
    }
}

/// What was read and is not written yet.
struct Piece {
    bytes: [u8; PIECE],
    left: Range<usize>,
}

impl Default for Piece {
    fn default() -> Self {
        Self { bytes: [0; PIECE], left: 0..0 }
    }
}

impl Piece {
    fn write(&mut self, output: &OwnedFd) -> io::Result<()> {
        match rustix::io::write(output, &self.bytes[self.left.clone()]) {
            Ok(count) => self.left.start += count,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
