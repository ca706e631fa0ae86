//! Guests that are built once and kept.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::build::{self, Flavour};

/// The files of a guest, in a cache: to be read only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifacts {
    /// The kernel for QEMU to start with its BIOS: as it is, if it can be started so, for that is faster.
    pub kernel: PathBuf,
    /// The same kernel as an image that unpacks itself, which UEFI can start as well.
    pub vmlinuz: PathBuf,
    /// The initial memory disk, which holds the whole system.
    pub initrd: PathBuf,
    /// A raw disk that boots both with BIOS and with UEFI, with a partition for data.
    pub disk: PathBuf,
}

/// The files of a guest of this flavour, built now if they are not in the cache yet.
pub fn artifacts(flavour: Flavour) -> Result<Artifacts> {
    let folder = cache_folder()?;
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let place = folder.join(format!("{flavour}-{:016x}", build::fingerprint()));
    let found = Artifacts {
        kernel: place.join("kernel"),
        vmlinuz: place.join("vmlinuz"),
        initrd: place.join("initrd"),
        disk: place.join("disk.img"),
    };
    if place.is_dir() {
        return Ok(found);
    }
    let lock = folder.join(format!("{flavour}.lock"));
    let lock = File::create(&lock).with_context(|| format!("open {}", lock.display()))?;
    lock.lock().context("wait for another build of the guest")?;
    if !place.is_dir() {
        build_at(flavour, &folder, &place)?;
    }
    Ok(found)
}

/// Builds aside, so that whatever is at its place is whole.
fn build_at(flavour: Flavour, folder: &Path, place: &Path) -> Result<()> {
    let aside = folder.join(format!("{flavour}.new"));
    let work = folder.join(format!("{flavour}.work"));
    for path in [&aside, &work] {
        let _ = fs::remove_dir_all(path);
        fs::create_dir_all(path).with_context(|| format!("make {}", path.display()))?;
    }
    let built = build::build(flavour, &work, &aside);
    let _ = fs::remove_dir_all(&work);
    built.with_context(|| format!("build the test guest ({flavour})"))?;
    fs::rename(&aside, place).with_context(|| format!("name {}", place.display()))?;
    forget_old(flavour, folder);
    Ok(())
}

/// Removes what was built long ago, from other states of this library. What cannot be removed stays.
fn forget_old(flavour: Flavour, folder: &Path) {
    const LONG: Duration = Duration::from_secs(7 * 24 * 60 * 60);
    let prefix = format!("{flavour}-");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|about| about.modified()).ok().and_then(|at| at.elapsed().ok());
        if entry.file_name().to_string_lossy().starts_with(&prefix) && age.is_some_and(|age| age > LONG) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn cache_folder() -> Result<PathBuf> {
    if let Some(cache) = std::env::var_os("KUBEVIRT_RS_CACHE") {
        return Ok(PathBuf::from(cache).join("guest"));
    }
    let home = std::env::var_os("HOME").context("neither KUBEVIRT_RS_CACHE nor HOME is set")?;
    Ok(PathBuf::from(home).join(".cache/kubevirt-rs/guest"))
}
