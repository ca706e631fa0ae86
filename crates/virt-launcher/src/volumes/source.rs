//! Mounted folders of ConfigMaps, Secrets and the like, read without ever leaving them.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags};

use super::error::Problem;

/// Most files of a folder; a ConfigMap has at most a MiB, so it has far fewer.
const MOST_FILES: usize = 10_000;
const DEEPEST: usize = 7;
/// Link of a mounted volume to the folder with its current state.
const CURRENT: &str = "..data";

/// A mounted folder, as it is now: a change of the ConfigMap or Secret does not change what is read here.
#[derive(Debug)]
pub struct Source {
    folder: OwnedFd,
}

/// A file of a mounted folder.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Path in the folder.
    pub path: String,
    /// Number of bytes.
    pub size: u64,
}

impl Source {
    /// Opens a mounted folder.
    pub fn open(path: &Path) -> Result<Self, Problem> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder =
            rustix::fs::open(path, flags, Mode::empty()).map_err(|source| failed(path, source.into()))?;
        match beneath(&folder, CURRENT, OFlags::DIRECTORY) {
            Ok(current) => Ok(Self { folder: current }),
            Err(rustix::io::Errno::NOENT) => Ok(Self { folder }),
            Err(source) => Err(failed(&path.join(CURRENT), source.into())),
        }
    }

    /// All files, sorted by path; what starts with two dots belongs to the mount.
    pub fn files(&self, path: &Path) -> Result<Vec<SourceFile>, Problem> {
        let mut files = Vec::new();
        self.walk(path, "", 0, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    fn walk(&self, root: &Path, at: &str, depth: usize, files: &mut Vec<SourceFile>) -> Result<(), Problem> {
        let here = if at.is_empty() { "." } else { at };
        let error = |source: rustix::io::Errno| failed(&root.join(at), source.into());
        let folder = beneath(&self.folder, here, OFlags::DIRECTORY).map_err(error)?;
        for entry in Dir::read_from(folder.as_fd()).map_err(error)? {
            let entry = entry.map_err(error)?;
            let Ok(name) = entry.file_name().to_str() else {
                return Err(Problem::Name(entry.file_name().to_string_lossy().into_owned()));
            };
            if name == "." || name.starts_with("..") {
                continue;
            }
            let path = if at.is_empty() { name.to_owned() } else { format!("{at}/{name}") };
            let error = |source: rustix::io::Errno| failed(&root.join(&path), source.into());
            let file = beneath(&self.folder, &path, OFlags::PATH).map_err(error)?;
            let stat = rustix::fs::fstat(&file).map_err(error)?;
            if files.len() >= MOST_FILES {
                return Err(Problem::TooManyFiles(root.into()));
            }
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => files.push(SourceFile { path, size: stat.st_size as u64 }),
                FileType::Directory if depth < DEEPEST => self.walk(root, &path, depth + 1, files)?,
                FileType::Directory => return Err(Problem::TooManyFiles(root.into())),
                _ => return Err(Problem::Outside(root.join(path))),
            }
        }
        Ok(())
    }

    /// Opens a regular file.
    pub fn file(&self, path: &str) -> io::Result<File> {
        let file = File::from(beneath(&self.folder, path, OFlags::NONBLOCK)?);
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(file)
    }

    /// The bytes of a file that is not larger than any Secret, or nothing if there is no such file.
    ///
    /// Where a key of a Secret is mounted that is not there, a kubelet makes a folder.
    pub fn read(&self, root: &Path, path: &str) -> Result<Option<Vec<u8>>, Problem> {
        const MOST: u64 = 4 << 20;
        let error = |source| failed(&root.join(path), source);
        let file = match self.file(path) {
            Ok(file) => file,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(error(source)),
        };
        let mut bytes = Vec::new();
        file.take(MOST + 1).read_to_end(&mut bytes).map_err(error)?;
        if bytes.len() as u64 > MOST {
            return Err(Problem::TooMuchData { path: root.join(path), most: MOST });
        }
        Ok(Some(bytes))
    }
}

/// Opens what is in a folder; links may lead anywhere within it and nowhere else.
pub fn beneath(folder: impl AsFd, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// An error of the system, as the one that a caller can act on.
pub fn failed(path: &Path, source: io::Error) -> Problem {
    match source.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::NOENT) => Problem::NotMounted(path.into()),
        Some(rustix::io::Errno::XDEV | rustix::io::Errno::LOOP) => Problem::Outside(path.into()),
        _ => Problem::Io { doing: "read", path: path.into(), source },
    }
}
