//! Images of claims and host disks: making and growing them.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use kubevirt_api::vmi::status::PersistentVolumeClaimInfo;
use kubevirt_disk_image::{
    Allocation, Allowance, Fit, ImageError, Outcome, create_raw, fit, free_space, grow_raw,
};
use kubevirt_domain::sizes::{self, Growth, SizeError};
use rustix::fs::{Mode, OFlags};

use super::carry_out::Note;
use super::error::Problem;
use super::source::{beneath, failed};

/// A raw image in a folder that is mounted into the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimImage {
    /// The image.
    pub path: PathBuf,
    /// Size to make it with if it is missing, or why it cannot be made.
    pub create: Result<u64, &'static str>,
    /// How large it may become if it is there.
    pub growth: Option<Growth>,
}

/// Size to make the image of a claim with, or why it cannot be made; what is said wrongly is wrong at once.
pub fn size_of_claim(info: Option<&PersistentVolumeClaimInfo>) -> Result<Result<u64, &'static str>, Problem> {
    let Some(info) = info else { return Ok(Err("nothing is known about its claim")) };
    match sizes::of_claim(info) {
        Err(SizeError::Unsaid) => Ok(Err("its claim has neither a capacity nor a request")),
        size => Ok(Ok(size?)),
    }
}

/// Bytes that an image may come to have: what it has, or more if its claim has grown.
pub fn room(image: &Path, growth: Option<Growth>) -> Result<u64, Problem> {
    let metadata = std::fs::metadata(image).map_err(|source| failed(image, source))?;
    let most = growth.map(|growth| possible_size(image, &metadata, growth)).transpose()?;
    Ok(metadata.len().max(most.unwrap_or_default()))
}

/// What is free and what the image takes already is there for it.
fn possible_size(path: &Path, metadata: &Metadata, growth: Growth) -> Result<u64, Problem> {
    Ok(growth.size(free_space(path)?.saturating_add(metadata.blocks() * 512)))
}

/// Makes an image if it is missing and may be made, and grows it if it may grow.
pub fn make(
    image: &ClaimImage,
    allowance: Allowance,
    notes: &mut Vec<Note>,
    volume: &str,
) -> Result<(), Problem> {
    let Some(file) = open(&image.path)? else {
        let size = image.create.map_err(|why| Problem::NotMade { path: image.path.clone(), why })?;
        return create(&image.path, size, allowance, notes, volume);
    };
    let Some(growth) = image.growth else { return Ok(()) };
    if let Err(problem) = grow(&image.path, &file, growth) {
        // The disk is good as it is, so the machine can start.
        notes.push(Note::NotGrown { volume: volume.into(), reason: problem.to_string() });
    }
    Ok(())
}

/// Opens an image; nothing if it is missing. Links may lead only to files of the same volume.
pub fn open(path: &Path) -> Result<Option<File>, Problem> {
    let folder_path = path.parent().unwrap_or(Path::new("/"));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder_path, flags, Mode::empty())
        .map_err(|source| failed(folder_path, source.into()))?;
    // Only looked at: its owner may be another user than ours before the handler hands it over.
    let file = match beneath(&folder, name, OFlags::PATH) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(source) => return Err(failed(path, source.into())),
    };
    let metadata = file.metadata().map_err(|source| failed(path, source))?;
    if !metadata.is_file() {
        return Err(ImageError::NotAFile(path.into()).into());
    }
    if metadata.len() == 0 {
        return Err(ImageError::Truncated { path: path.into(), what: "it is empty".into() }.into());
    }
    Ok(Some(file))
}

fn create(
    path: &Path,
    wanted: u64,
    allowance: Allowance,
    notes: &mut Vec<Note>,
    volume: &str,
) -> Result<(), Problem> {
    let free = free_space(path.parent().unwrap_or(Path::new("/")))?;
    let size = match fit(wanted, free, allowance) {
        Fit::Whole(size) => size,
        Fit::Smaller(size) => {
            notes.push(Note::Smaller { volume: volume.into(), wanted, size });
            size
        }
        Fit::TooSmall { available } => {
            let tolerated_percent = allowance.tolerated_percent;
            return Err(Problem::NoSpace { path: path.into(), wanted, available, tolerated_percent });
        }
    };
    create_raw(path, size, Allocation::Sparse)?;
    Ok(())
}

fn grow(path: &Path, file: &File, growth: Growth) -> Result<(), Problem> {
    let metadata = file.metadata().map_err(|source| failed(path, source))?;
    let size = possible_size(path, &metadata, growth)?;
    if size <= metadata.len() {
        return Ok(());
    }
    let full = metadata.blocks() * 512 >= metadata.len();
    let outcome = grow_raw(path, size, if full { Allocation::Full } else { Allocation::Sparse })?;
    debug_assert_eq!(outcome, Outcome::Made);
    Ok(())
}
