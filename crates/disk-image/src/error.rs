//! What can be wrong with an image.

use std::io;
use std::path::{Path, PathBuf};

/// What is wrong with an image, or kept one from being made.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// There is no such file.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    /// It is a folder, socket or something else that holds no image.
    #[error("{} is neither a regular file nor a block device", .0.display())]
    NotAFile(PathBuf),
    /// It is in a format that machines cannot use.
    #[error("{} is a {format} image; convert it to qcow2 or raw", path.display())]
    Format {
        /// The image.
        path: PathBuf,
        /// Name of the format.
        format: &'static str,
    },
    /// It ends before it should.
    #[error("{} is cut off: {what}", path.display())]
    Truncated {
        /// The image.
        path: PathBuf,
        /// What should be beyond its end.
        what: String,
    },
    /// Its header makes no sense.
    #[error("{} is damaged: {what}", path.display())]
    Corrupt {
        /// The image.
        path: PathBuf,
        /// What makes no sense.
        what: String,
    },
    /// It needs a feature that is not known here.
    #[error("{} uses {what}, which is not supported", path.display())]
    Feature {
        /// The image.
        path: PathBuf,
        /// The feature.
        what: String,
    },
    /// It names another file, and whoever made it must not choose files of this host.
    #[error("{} takes data from another file ({name}); make it self-contained", path.display())]
    Reference {
        /// The image.
        path: PathBuf,
        /// The file it names.
        name: String,
    },
    /// Its bytes are encrypted.
    #[error("{} is encrypted", .0.display())]
    Encrypted(PathBuf),
    /// An image is there already, and it is not the one that was asked for.
    #[error("{} exists but is not what it should be: {what}", path.display())]
    Different {
        /// The image.
        path: PathBuf,
        /// How it differs.
        what: String,
    },
    /// No image can have this size.
    #[error("{} cannot be {size} bytes: {what}", path.display())]
    Size {
        /// The image.
        path: PathBuf,
        /// The size that was asked for.
        size: u64,
        /// Why not.
        what: &'static str,
    },
    /// The file system is full.
    #[error("there is no space for {}", .0.display())]
    NoSpace(PathBuf),
    /// The system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried, such as `read`.
        doing: &'static str,
        /// The image.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl ImageError {
    /// An error of the system, as the one that a caller can act on.
    pub fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing(path.into()),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace(path.into()),
            _ => Self::Io { doing, path: path.into(), source },
        }
    }

    pub(crate) fn corrupt(path: &Path, what: impl Into<String>) -> Self {
        Self::Corrupt { path: path.into(), what: what.into() }
    }

    pub(crate) fn truncated(path: &Path, what: impl Into<String>) -> Self {
        Self::Truncated { path: path.into(), what: what.into() }
    }

    pub(crate) fn different(path: &Path, what: impl Into<String>) -> Self {
        Self::Different { path: path.into(), what: what.into() }
    }
}
