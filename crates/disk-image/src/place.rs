//! Puts finished files in place in one step.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags};

use crate::error::ImageError;

/// Whether an image was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was made.
    Made,
    /// One was there already and is kept.
    Kept,
}

/// Makes a file that is not there yet; one that is there is kept as it is.
///
/// `fill` writes to a file beside it, which gets the name once it is whole. Missing folders are made.
pub fn create(
    path: &Path,
    mode: u32,
    fill: impl FnOnce(&File) -> Result<(), ImageError>,
) -> Result<Outcome, ImageError> {
    if exists(path)? {
        return Ok(Outcome::Kept);
    }
    let beside = Beside::new(path, mode)?;
    fill(&beside.file)?;
    match rustix::fs::renameat_with(CWD, &beside.path, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(Outcome::Made),
        // Somebody else was faster, and theirs is as good as ours.
        Err(rustix::io::Errno::EXIST) => Ok(Outcome::Kept),
        // Not every file system can rename so; the name is still free unless somebody took it just now.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => link_in_place(&beside.path, path),
        Err(source) => Err(ImageError::io("create", path, source.into())),
    }
}

/// Makes a file, or puts a new one in the place of the old one.
pub fn replace(
    path: &Path,
    mode: u32,
    fill: impl FnOnce(&File) -> Result<(), ImageError>,
) -> Result<(), ImageError> {
    let beside = Beside::new(path, mode)?;
    fill(&beside.file)?;
    fs::rename(&beside.path, path).map_err(|source| ImageError::io("create", path, source))
}

fn link_in_place(from: &Path, to: &Path) -> Result<Outcome, ImageError> {
    match fs::hard_link(from, to) {
        Ok(()) => Ok(Outcome::Made),
        Err(source) if source.kind() == io::ErrorKind::AlreadyExists => Ok(Outcome::Kept),
        Err(source) => Err(ImageError::io("create", to, source)),
    }
}

fn exists(path: &Path) -> Result<bool, ImageError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(ImageError::io("look at", path, source)),
    }
}

/// A file that goes away unless it gets its name.
struct Beside {
    path: PathBuf,
    file: File,
}

impl Beside {
    fn new(path: &Path, mode: u32) -> Result<Self, ImageError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let failed = |source| ImageError::io("create", path, source);
        let folder = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).map_err(failed)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Others that make the same file, perhaps on another node, have other process or counter numbers, or
        // other times.
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let beside = folder.join(format!(".{name}.{}-{number}-{now:x}", std::process::id()));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&beside)
            .map_err(failed)?;
        Ok(Self { path: beside, file })
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // After the rename there is nothing left to remove.
        let _ = fs::remove_file(&self.path);
    }
}
