//! Files in folders that belong to others, reached without ever being led out of them.
//!
//! Whoever owns a folder can put a link at any place in it, at any time. So a path is resolved by the kernel, with
//! links forbidden or kept within the folder, and what was found is held open and not looked up again.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags, Uid,
};
use rustix::io::Errno;

/// A file or folder that is held, but not open for reading or writing.
#[derive(Debug)]
pub struct Inside {
    file: OwnedFd,
    shown: PathBuf,
}

/// What kind of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A block device with this number.
    Block(u64),
    /// A character device with this number.
    Char(u64),
    /// Something else, such as a socket.
    Other,
}

impl Inside {
    /// A folder whose path nobody can change but us.
    pub fn folder(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| said(path, error))?;
        Ok(Self { file, shown: path.into() })
    }

    /// Something that was opened as a path, and how to call it in messages.
    pub fn of(file: OwnedFd, shown: impl Into<PathBuf>) -> Self {
        Self { file, shown: shown.into() }
    }

    /// What is below this folder; a link anywhere on the way is an error.
    pub fn beneath(&self, path: impl AsRef<Path>) -> io::Result<Self> {
        self.found(path.as_ref(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
    }

    /// What a process would find whose root folder this is: links lead anywhere in it and nowhere else.
    pub fn in_root(&self, path: impl AsRef<Path>) -> io::Result<Self> {
        self.found(path.as_ref(), ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS)
    }

    fn found(&self, path: &Path, resolve: ResolveFlags) -> io::Result<Self> {
        let shown = self.shown.join(path.strip_prefix("/").unwrap_or(path));
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        // The kernel gives up with EAGAIN where folders are being renamed just then.
        let mut tries = 0..16;
        loop {
            match rustix::fs::openat2(&self.file, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) if tries.next().is_some() => {}
                Err(error) => return Err(said(&shown, error)),
                Ok(file) => return Ok(Self { file, shown }),
            }
        }
    }

    /// How it is called in messages; not to be opened by this name.
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// A name that leads to this very file, for functions that want one.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }

    /// Opens it.
    pub fn open(&self, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::open(self.path(), flags, Mode::empty()).map_err(|error| self.said(error))?;
        Ok(file.into())
    }

    /// What it is.
    pub fn kind(&self) -> io::Result<Kind> {
        let stat = rustix::fs::fstat(&self.file).map_err(|error| self.said(error))?;
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Folder,
            FileType::BlockDevice => Kind::Block(stat.st_rdev),
            FileType::CharacterDevice => Kind::Char(stat.st_rdev),
            _ => Kind::Other,
        })
    }

    /// Device and number of the file, which no other file has at the same time.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::fstat(&self.file).map_err(|error| self.said(error))?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// User and group that it belongs to.
    pub fn owner(&self) -> io::Result<(u32, u32)> {
        let stat = rustix::fs::fstat(&self.file).map_err(|error| self.said(error))?;
        Ok((stat.st_uid, stat.st_gid))
    }

    /// Whether something is mounted here.
    pub fn is_mount_point(&self) -> io::Result<bool> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
        let stat =
            rustix::fs::statx(&self.file, "", flags, StatxFlags::TYPE).map_err(|error| self.said(error))?;
        Ok(stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
    }

    /// Names in this folder, sorted.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let error = |error| self.said(error);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(&self.file, ".", flags, Mode::empty()).map_err(error)?;
        let mut names = Vec::new();
        for entry in Dir::new(folder).map_err(error)? {
            let name = entry.map_err(error)?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        names.sort();
        Ok(names)
    }

    /// An empty file in this folder; one that is there is taken as it is.
    pub fn make_file(&self, name: &str, mode: u32) -> io::Result<Self> {
        self.check(name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.file, name, flags, Mode::from_raw_mode(mode)) {
            Ok(_) | Err(Errno::EXIST) => {}
            Err(error) => return Err(said(&self.shown.join(name), error)),
        }
        self.expect(name, |kind| kind == Kind::File)
    }

    /// A folder in this folder; one that is there is taken as it is.
    pub fn make_folder(&self, name: &str, mode: u32) -> io::Result<Self> {
        self.check(name)?;
        match rustix::fs::mkdirat(&self.file, name, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(said(&self.shown.join(name), error)),
        }
        self.expect(name, |kind| kind == Kind::Folder)
    }

    /// A block device in this folder; the same one that is there is taken as it is.
    pub fn make_block_device(&self, name: &str, device: u64, mode: u32) -> io::Result<Self> {
        self.check(name)?;
        match rustix::fs::mknodat(&self.file, name, FileType::BlockDevice, Mode::from_raw_mode(mode), device)
        {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(said(&self.shown.join(name), error)),
        }
        self.expect(name, |kind| kind == Kind::Block(device))
    }

    fn expect(&self, name: &str, good: impl FnOnce(Kind) -> bool) -> io::Result<Self> {
        let there = self.beneath(name)?;
        let kind = there.kind()?;
        if good(kind) {
            return Ok(there);
        }
        let problem = format!("{} is there already and is something else: {kind:?}", there.shown.display());
        Err(io::Error::new(io::ErrorKind::AlreadyExists, problem))
    }

    /// Removes a file from this folder; one that is not there is as good.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        self.unlink(name, AtFlags::empty())
    }

    /// Removes an empty folder from this folder; one that is not there is as good.
    pub fn remove_folder(&self, name: &str) -> io::Result<()> {
        self.unlink(name, AtFlags::REMOVEDIR)
    }

    fn unlink(&self, name: &str, flags: AtFlags) -> io::Result<()> {
        self.check(name)?;
        match rustix::fs::unlinkat(&self.file, name, flags) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(said(&self.shown.join(name), error)),
        }
    }

    /// Gives it to a user and group. Whether that changed anything is returned.
    pub fn give_to(&self, user: u32, group: u32) -> io::Result<bool> {
        if self.owner()? == (user, group) {
            return Ok(false);
        }
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        rustix::fs::chownat(&self.file, "", Some(user), Some(group), AtFlags::EMPTY_PATH)
            .map_err(|error| self.said(error))?;
        Ok(true)
    }

    /// Sets who may do what with it.
    pub fn permit(&self, mode: u32) -> io::Result<()> {
        let mode = Mode::from_raw_mode(mode);
        rustix::fs::chmodat(CWD, self.path(), mode, AtFlags::empty()).map_err(|error| self.said(error))
    }

    /// An extended attribute; none where it has none, or the file system knows none.
    pub fn attribute(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut value = vec![0; 4096];
        match rustix::fs::getxattr(self.path(), name, &mut value[..]) {
            Ok(length) => {
                value.truncate(length);
                Ok(Some(value))
            }
            Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
            Err(error) => Err(self.said(error)),
        }
    }

    /// Sets an extended attribute.
    pub fn set_attribute(&self, name: &str, value: &[u8]) -> io::Result<()> {
        rustix::fs::setxattr(self.path(), name, value, rustix::fs::XattrFlags::empty())
            .map_err(|error| self.said(error))
    }

    fn check(&self, name: &str) -> io::Result<()> {
        let mut parts = Path::new(name).components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(part)), None) if part == name => Ok(()),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{name:?} cannot be the name of a file in {}", self.shown.display()),
            )),
        }
    }

    fn said(&self, error: Errno) -> io::Error {
        said(&self.shown, error)
    }
}

impl AsFd for Inside {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The system's error, with the file that it is about.
fn said(path: &Path, error: Errno) -> io::Error {
    let kind = io::Error::from(error).kind();
    let reason = match error {
        Errno::LOOP => "a link is in the way".to_owned(),
        Errno::XDEV => "it leads out of its folder".to_owned(),
        error => error.to_string(),
    };
    io::Error::new(kind, format!("{}: {reason}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::testing::Folder;

    fn tree() -> (Folder, Inside) {
        let folder =
            Folder::of(&[("pod/disks/a.img", "a"), ("pod/etc/secret", "theirs"), ("host/secret", "ours")]);
        let inside = Inside::folder(&folder.path().join("pod")).unwrap();
        (folder, inside)
    }

    fn text(file: &Inside) -> String {
        io::read_to_string(file.open(OFlags::RDONLY).unwrap()).unwrap()
    }

    #[test]
    fn links_are_refused_beneath() {
        let (folder, pod) = tree();
        let disks = folder.path().join("pod/disks");
        symlink("../../host/secret", disks.join("relative")).unwrap();
        symlink(folder.path().join("host/secret"), disks.join("absolute")).unwrap();
        symlink("a.img", disks.join("harmless")).unwrap();
        symlink(folder.path().join("host"), folder.path().join("pod/folder")).unwrap();
        symlink("/proc/self/root", disks.join("magic")).unwrap();
        for path in ["disks/relative", "disks/absolute", "disks/harmless", "folder/secret", "disks/magic/etc"]
        {
            let error = pod.beneath(path).unwrap_err().to_string();
            assert!(error.contains("a link is in the way"), "{path}: {error}");
        }
        for path in ["../host/secret", "disks/../../host/secret", "/etc/passwd"] {
            let error = pod.beneath(path).unwrap_err().to_string();
            assert!(error.contains("leads out"), "{path}: {error}");
        }
        assert_eq!(text(&pod.beneath("disks/a.img").unwrap()), "a");
    }

    #[test]
    fn links_stay_in_the_root() {
        let (folder, pod) = tree();
        let disks = folder.path().join("pod/disks");
        symlink("/etc/secret", disks.join("absolute")).unwrap();
        symlink("../../../../../etc/secret", disks.join("climbs")).unwrap();
        symlink(folder.path().join("host/secret"), disks.join("outside")).unwrap();
        assert_eq!(text(&pod.in_root("disks/absolute").unwrap()), "theirs");
        assert_eq!(text(&pod.in_root("/disks/climbs").unwrap()), "theirs");
        assert_eq!(pod.in_root("disks/outside").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_is_found_stays_what_it_is() {
        let (folder, pod) = tree();
        let found = pod.beneath("disks/a.img").unwrap();
        let place = folder.path().join("pod/disks/a.img");
        std::fs::remove_file(&place).unwrap();
        symlink(folder.path().join("host/secret"), &place).unwrap();
        assert_eq!(text(&found), "a");
        found.give_to(107, 107).unwrap();
        use std::os::unix::fs::MetadataExt;
        assert_ne!(std::fs::metadata(folder.path().join("host/secret")).unwrap().uid(), 107);
    }

    #[test]
    fn making_follows_nothing() {
        let (folder, pod) = tree();
        let disks = pod.beneath("disks").unwrap();
        let target = folder.path().join("host/new");
        symlink(&target, folder.path().join("pod/disks/trap")).unwrap();
        assert!(disks.make_file("trap", 0o600).is_err());
        assert!(disks.make_folder("trap", 0o700).is_err());
        assert!(disks.make_block_device("trap", rustix::fs::makedev(7, 9999), 0o600).is_err());
        assert!(!target.exists());
        for name in ["", ".", "..", "a/b", "/a", "a/"] {
            assert!(disks.make_file(name, 0o600).is_err(), "{name}");
        }
        let made = disks.make_file("new", 0o640).unwrap();
        assert_eq!(made.identity().unwrap(), disks.make_file("new", 0o640).unwrap().identity().unwrap());
        assert!(disks.make_folder("new", 0o700).is_err());
        assert_eq!(disks.names().unwrap(), ["a.img", "new", "trap"]);
        disks.remove("new").unwrap();
        disks.remove("new").unwrap();
        disks.remove("trap").unwrap();
        assert_eq!(disks.names().unwrap(), ["a.img"]);
    }

    #[test]
    fn tells_mount_points() {
        assert!(Inside::folder(Path::new("/proc")).unwrap().is_mount_point().unwrap());
        assert!(!tree().1.is_mount_point().unwrap());
    }
}
