//! Images that come in container images.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kubevirt_disk_image::{Backing, Format, ImageError, create_qcow2, probe};
use kubevirt_domain::domain::disk::ImageFormat;
use kubevirt_domain::facts::VolumeFacts;
use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::error::Problem;
use super::plan::ImageFile;
use super::source::failed;
use super::storage_facts::volume_facts;

/// Where the disk is in an image that does not say it.
const DEFAULT_FOLDER: &str = "disk";

/// Makes the layer for a guest's writes over a container disk.
pub fn disk(image: &ImageFile, overlay: &Path) -> Result<VolumeFacts, Problem> {
    link(image)?;
    let base = &image.place;
    let info = probe(base).map_err(wrong)?;
    // Whoever made the image must not choose a file of this pod that the guest can then read.
    info.self_contained(base).map_err(wrong)?;
    over(overlay, base, info.format, info.virtual_size)?;
    let facts = volume_facts(overlay, Some(base), true).map_err(|source| failed(base, source))?;
    let format = match info.format {
        Format::Raw => ImageFormat::Raw,
        Format::Qcow2 => ImageFormat::Qcow2,
    };
    Ok(VolumeFacts { format: Some(format), block: false, ..facts })
}

fn wrong(error: ImageError) -> Problem {
    match error {
        ImageError::Missing(path) => Problem::NotMounted(path),
        error @ ImageError::Io { .. } => error.into(),
        error => Problem::ContainerDisk(error),
    }
}

/// Makes a layer for writes over an image or device that stays as it is.
pub fn over(overlay: &Path, base: &Path, format: Format, size: u64) -> Result<(), Problem> {
    let path = base.to_str().ok_or_else(|| Problem::Name(base.display().to_string()))?;
    create_qcow2(overlay, size, Some(Backing { path, format }))?;
    Ok(())
}

/// Checks a kernel or initial RAM disk.
pub fn kernel(image: &ImageFile) -> Result<(), Problem> {
    link(image)?;
    let path = &image.place;
    let metadata = fs::metadata(path).map_err(|source| failed(path, source))?;
    if !metadata.is_file() {
        return Err(ImageError::NotAFile(path.clone()).into());
    }
    if metadata.len() == 0 {
        return Err(ImageError::Truncated { path: path.clone(), what: "it is empty".into() }.into());
    }
    Ok(())
}

/// Where the cluster mounts whole images, puts a link to the file at the place where it is looked for.
fn link(image: &ImageFile) -> Result<(), Problem> {
    if fs::symlink_metadata(&image.place).is_ok() || !image.mount.is_dir() {
        return Ok(());
    }
    let target = resolve(&image.mount, &image.file()?)?;
    let error = |source| Problem::Io { doing: "link", path: image.place.clone(), source };
    if let Some(folder) = image.place.parent() {
        fs::create_dir_all(folder).map_err(error)?;
    }
    match std::os::unix::fs::symlink(target, &image.place) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => Err(error(source)),
        _ => Ok(()),
    }
}

impl ImageFile {
    /// Path of the file in the image.
    fn file(&self) -> Result<PathBuf, Problem> {
        if let Some(file) = &self.file {
            return Ok(file.into());
        }
        let folder = resolve(&self.mount, Path::new(DEFAULT_FOLDER)).map_err(|problem| match problem {
            Problem::NotMounted(path) => Problem::NoDiskInImage(path),
            problem => problem,
        })?;
        let error = |source| failed(&folder, source);
        let mut names = fs::read_dir(&folder).map_err(error)?;
        let Some(first) = names.next().transpose().map_err(error)? else {
            return Err(Problem::NoDiskInImage(folder));
        };
        if names.next().is_some() {
            return Err(Problem::ManyDisksInImage(folder));
        }
        Ok(Path::new(DEFAULT_FOLDER).join(first.file_name()))
    }
}

/// The real place of a path in an image, as if the image were the root of the file system.
///
/// The image is mounted read-only, so what is found here stays so.
fn resolve(mount: &Path, path: &Path) -> Result<PathBuf, Problem> {
    let error = |source: rustix::io::Errno| {
        failed(&mount.join(path.strip_prefix("/").unwrap_or(path)), source.into())
    };
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let root = rustix::fs::open(mount, flags | OFlags::DIRECTORY, Mode::empty()).map_err(error)?;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let file = rustix::fs::openat2(&root, path, flags, Mode::empty(), resolve).map_err(error)?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&file);
    fs::read_link(format!("/proc/self/fd/{number}")).map_err(|source| failed(mount, source))
}
