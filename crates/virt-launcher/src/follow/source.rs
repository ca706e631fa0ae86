//! The file itself: read on from where we were, whatever was done to it meanwhile.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::Bounds;

/// A file by its path, which may be emptied, replaced or not be there at all.
#[derive(Debug)]
pub(super) struct Source {
    path: PathBuf,
    ours: bool,
    open: Option<File>,
    position: u64,
}

impl Source {
    /// A source that is read from its beginning. What is ours may be emptied by us.
    pub(super) fn new(path: &Path, ours: bool) -> Self {
        Self { path: path.to_owned(), ours, open: None, position: 0 }
    }

    /// Reads on. Nothing: there is nothing more for now.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(file) = &self.open else {
                if !self.open()? {
                    return Ok(0);
                }
                continue;
            };
            let count = file.read_at(buffer, self.position)?;
            self.position += count as u64;
            if count > 0 {
                return Ok(count);
            }
            if file.metadata()?.len() < self.position {
                // Emptied, and maybe written to again since.
                self.position = 0;
            } else if self.was_replaced()? {
                self.open = None;
            } else {
                return Ok(0);
            }
        }
    }

    fn open(&mut self) -> io::Result<bool> {
        self.position = 0;
        match File::options().read(true).write(self.ours).open(&self.path) {
            Ok(file) => self.open = Some(file),
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(self.open.is_some())
    }

    /// Whether there is another file at the path; none at all is no reason to let go of the one we have.
    fn was_replaced(&self) -> io::Result<bool> {
        let Some(file) = &self.open else { return Ok(false) };
        let here = file.metadata()?;
        match fs::metadata(&self.path) {
            Ok(there) => Ok((here.dev(), here.ino()) != (there.dev(), there.ino())),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Empties the file if it is too large. Returns how much of it nobody has read.
    pub(super) fn keep_within(&mut self, bounds: Bounds) -> io::Result<u64> {
        let Some(file) = self.open.as_ref().filter(|_| self.ours) else { return Ok(0) };
        let length = file.metadata()?.len();
        let unread = length.saturating_sub(self.position);
        if !(length > bounds.hard || (length > bounds.soft && unread == 0)) {
            return Ok(0);
        }
        file.set_len(0)?;
        self.position = 0;
        Ok(unread)
    }
}

/// Whether there is no such file.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
