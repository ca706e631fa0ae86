//! Makes what a plan says.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use kubevirt_disk_image::{Allowance, Format, ImageError, create_metrics_disk, create_qcow2, replace};
use kubevirt_domain::facts::VolumeFacts;

use super::cloud_init::Seed;
use super::error::{Problem, VolumeError};
use super::plan::{Preparation, Work};
use super::source::failed;
use super::storage_facts::volume_facts;
use super::{claims, container, isos};

/// Volumes that are ready.
#[derive(Debug, Default)]
pub struct Prepared {
    /// What is known of each volume that can be a disk, by name.
    pub facts: BTreeMap<String, VolumeFacts>,
    /// Seeds for cloud-init, which can still tell the guest about its devices.
    pub seeds: Vec<Seed>,
    /// What the user should hear of.
    pub notes: Vec<Note>,
}

/// Something that is not as asked for, but does not stop the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// An image is smaller than asked, within what is tolerated.
    Smaller {
        /// The volume.
        volume: String,
        /// Bytes that were asked for.
        wanted: u64,
        /// Bytes that it has.
        size: u64,
    },
    /// An image could not be grown to the size of its claim.
    NotGrown {
        /// The volume.
        volume: String,
        /// Why not.
        reason: String,
    },
    /// A Secret does not have a key, but the seed has other data.
    SecretKey {
        /// The volume.
        volume: String,
        /// The key.
        key: &'static str,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Smaller { volume, wanted, size } => write!(
                f,
                "volume {volume:?} has {size} bytes instead of {wanted}, which is within what is tolerated"
            ),
            Self::NotGrown { volume, reason } => write!(f, "volume {volume:?} keeps its size: {reason}"),
            Self::SecretKey { volume, key } => {
                write!(f, "volume {volume:?} goes without {key}, which its secret does not have")
            }
        }
    }
}

/// Makes what a plan says, and tells what is known of each volume.
///
/// What is there already and right is kept, so this can be done again.
pub fn carry_out(plan: &[Preparation], allowance: Allowance) -> Result<Prepared, Vec<VolumeError>> {
    let mut prepared = Prepared::default();
    let mut errors = Vec::new();
    for preparation in plan {
        match one(preparation, allowance, &mut prepared) {
            Ok(Some(facts)) => {
                prepared.facts.insert(preparation.volume.clone(), facts);
            }
            Ok(None) => {}
            Err(problem) => errors.push(VolumeError { volume: preparation.volume.clone(), problem }),
        }
    }
    if errors.is_empty() { Ok(prepared) } else { Err(errors) }
}

fn one(
    preparation: &Preparation,
    allowance: Allowance,
    prepared: &mut Prepared,
) -> Result<Option<VolumeFacts>, Problem> {
    let (volume, notes) = (preparation.volume.as_str(), &mut prepared.notes);
    let path = match &preparation.work {
        Work::ContainerDisk { image, overlay } => return container::disk(image, overlay).map(Some),
        Work::Ephemeral { device, file, overlay } => return ephemeral(device, file, overlay).map(Some),
        Work::Kernel(image) => return container::kernel(image).map(|()| None),
        Work::MemoryDump(folder) if folder.is_dir() => return Ok(None),
        Work::MemoryDump(folder) => return Err(Problem::NotMounted(folder.clone())),
        Work::Ignition { path, data } => return ignition(path, data).map(|()| None),
        Work::Claim { device, image } => match block_device(device)? {
            true => device.clone(),
            false => {
                claims::make(image, allowance, notes, volume).map_err(|problem| match problem {
                    Problem::NotMounted(_) => {
                        Problem::NoDisk { file: image.path.clone(), device: device.clone() }
                    }
                    problem => problem,
                })?;
                image.path.clone()
            }
        },
        Work::HostDisk(image) => {
            claims::make(image, allowance, notes, volume)?;
            image.path.clone()
        }
        Work::Existing { device, file, growth } => {
            let path = existing(device, file)?;
            let mut facts = facts(&path, preparation)?;
            if !facts.block {
                facts.room = Some(claims::room(&path, *growth)?);
            }
            return Ok(Some(facts));
        }
        Work::EmptyDisk { path, size } => {
            create_qcow2(path, *size, None)?;
            path.clone()
        }
        Work::CloudInit(plan) => {
            let seed = Seed::read(volume, plan, notes)?;
            seed.write(&[])?;
            prepared.seeds.push(seed);
            plan.path.clone()
        }
        Work::Iso { path, folder, label, needs_answer_file } => {
            isos::of_folder(path, folder, label, *needs_answer_file)?;
            path.clone()
        }
        Work::Received { path, size } => {
            replace(path, 0o640, |file| {
                file.set_len(*size).map_err(|source| ImageError::io("extend", path, source))
            })?;
            path.clone()
        }
        Work::Metrics(path) => {
            create_metrics_disk(path)?;
            path.clone()
        }
    };
    facts(&path, preparation).map(Some)
}

fn facts(path: &Path, preparation: &Preparation) -> Result<VolumeFacts, Problem> {
    volume_facts(path, None, preparation.discard).map_err(|source| failed(path, source))
}

fn ephemeral(device: &Path, file: &Path, overlay: &Path) -> Result<VolumeFacts, Problem> {
    let block = block_device(device)?;
    let (base, size) = if block {
        (device, size_of_device(device)?)
    } else {
        let none = || Problem::NoDisk { file: file.into(), device: device.into() };
        let image = claims::open(file).map_err(|problem| match problem {
            Problem::NotMounted(_) => none(),
            problem => problem,
        })?;
        // Whatever its first bytes say: the claim's image is raw.
        (file, image.ok_or_else(none)?.metadata().map_err(|source| failed(file, source))?.len())
    };
    container::over(overlay, base, Format::Raw, size)?;
    let facts = volume_facts(overlay, Some(base), true).map_err(|source| failed(base, source))?;
    // What is said to be a device is the claim: the layer over it is always a file.
    Ok(VolumeFacts { block, ..facts })
}

fn size_of_device(path: &Path) -> Result<u64, Problem> {
    let size = fs::File::open(path).and_then(|mut device| device.seek(SeekFrom::End(0)));
    size.map_err(|source| failed(path, source))
}

/// The device or image of a volume that must be there.
fn existing(device: &Path, file: &Path) -> Result<PathBuf, Problem> {
    if block_device(device)? {
        return Ok(device.into());
    }
    match fs::metadata(file) {
        Ok(metadata) if metadata.is_file() && metadata.len() > 0 => Ok(file.into()),
        Ok(metadata) if metadata.is_file() => {
            Err(ImageError::Truncated { path: file.into(), what: "it is empty".into() }.into())
        }
        Ok(_) => Err(ImageError::NotAFile(file.into()).into()),
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
            Err(Problem::NoDisk { file: file.into(), device: device.into() })
        }
        Err(source) => Err(failed(file, source)),
    }
}

/// Whether there is a block device.
fn block_device(path: &Path) -> Result<bool, Problem> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.file_type().is_block_device()),
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(failed(path, source)),
    }
}

fn ignition(path: &Path, data: &str) -> Result<(), Problem> {
    let error = |source| ImageError::io("write", path, source);
    Ok(replace(path, 0o640, |mut file| file.write_all(data.as_bytes()).map_err(error))?)
}
