//! What can be wrong with a volume, and the way out.

use std::io;
use std::path::PathBuf;

use kubevirt_disk_image::ImageError;
use kubevirt_disk_image::iso::IsoError;
use kubevirt_domain::sizes::SizeError;

/// A volume that cannot be made ready.
#[derive(Debug, thiserror::Error)]
#[error("volume {volume:?}: {problem}")]
pub struct VolumeError {
    /// Name of the volume; `kernelBoot` and `ignition` for those.
    pub volume: String,
    /// What is wrong.
    #[source]
    pub problem: Problem,
}

/// What is wrong with a volume.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Its name, or a name that it refers to, is no name of a file.
    #[error("{0:?} cannot be the name of a file")]
    Name(String),
    /// An image is wrong.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A container disk's image is wrong.
    #[error("{0}; build the container image with a self-contained qcow2 or raw disk")]
    ContainerDisk(ImageError),
    /// An ISO image cannot be made.
    #[error(transparent)]
    Iso(#[from] IsoError),
    /// What should be mounted into the pod is not there.
    #[error("{} is not there; it should have been mounted into the pod", .0.display())]
    NotMounted(PathBuf),
    /// There is neither an image nor a device.
    #[error("there is neither an image {} nor a block device {}", file.display(), device.display())]
    NoDisk {
        /// Where an image would be.
        file: PathBuf,
        /// Where a device would be.
        device: PathBuf,
    },
    /// An image is missing and its size is not known.
    #[error("{} does not exist and cannot be made, because {why}", path.display())]
    NotMade {
        /// The image.
        path: PathBuf,
        /// Why it cannot be made.
        why: &'static str,
    },
    /// A link leads out of the volume.
    #[error("{} is a link that leads out of the volume", .0.display())]
    Outside(PathBuf),
    /// There is not enough space for an image.
    #[error(
        "there is no space for {}: it wants {wanted} bytes and {available} are available, which is more than the \
         tolerated {tolerated_percent}% less; use a larger claim or ask for less", path.display()
    )]
    NoSpace {
        /// The image.
        path: PathBuf,
        /// Bytes that were asked for.
        wanted: u64,
        /// Bytes that could be had.
        available: u64,
        /// Percent that may be missing.
        tolerated_percent: u8,
    },
    /// A size is wrong.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// The image of a container disk has no disk in it.
    #[error("there is no file in {}; put the disk there, or name it in containerDisk.path", .0.display())]
    NoDiskInImage(PathBuf),
    /// The image of a container disk has more than one disk in it.
    #[error("there is more than one file in {}; name the disk in containerDisk.path", .0.display())]
    ManyDisksInImage(PathBuf),
    /// A Secret does not have a key.
    #[error("the secret of {field} has no key {key:?} with a value")]
    SecretKey {
        /// The field that names the secret.
        field: &'static str,
        /// The key.
        key: &'static str,
    },
    /// Text is not base64.
    #[error("{field} is not base64: {reason}")]
    Base64 {
        /// The field.
        field: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// There is nothing to tell cloud-init.
    #[error("cloud-init needs user data or network data")]
    NoData,
    /// Data is larger than any Secret can be.
    #[error("{} is larger than {most} bytes", path.display())]
    TooMuchData {
        /// The file.
        path: PathBuf,
        /// How many bytes it may have.
        most: u64,
    },
    /// A folder has more files than any ConfigMap or Secret.
    #[error("{} has too many files, or folders that are too deep", .0.display())]
    TooManyFiles(PathBuf),
    /// There is no answer file for Windows.
    #[error("it needs a key autounattend.xml or unattend.xml")]
    NoAnswerFile,
    /// The other node did not say how large an image is.
    #[error("the status does not tell its size, which is needed to receive it from the other node")]
    UnknownSize,
    /// The system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried, such as `read`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
