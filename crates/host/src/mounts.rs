//! Mounts of single files and folders from one place to another, also between mount namespaces.
//!
//! A copy of a mount is made in the namespace that the file is in, held as a file, and attached in another. So
//! nobody needs to know under which path a container's file is seen on the host.
#![expect(
    unsafe_code,
    reason = "no library has mount_setattr, and a thread leaves the others' folders by unshare"
)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use rustix::mount::{MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount, open_tree, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::inside::Inside;

/// More mounts on top of each other than anybody ever made.
const DEEPEST: usize = 64;

/// A mount namespace, kept alive while this value is.
#[derive(Clone, Debug)]
pub struct MountNs(Arc<File>);

impl MountNs {
    /// The namespace of the calling thread.
    pub fn current() -> io::Result<Self> {
        File::open("/proc/thread-self/ns/mnt").map(Self::from)
    }

    /// Runs `work` inside the namespace and waits for it. It has a thread of its own, which ends with it, so that
    /// no other work can end up in the wrong namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let inside = || {
            // SAFETY: only the folders that the thread works in become its own; no memory or file is unshared.
            unsafe { unshare_unsafe(UnshareFlags::FS) }?;
            move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Mount))?;
            Ok(work())
        };
        thread::scope(|scope| {
            let thread = thread::Builder::new().name("mountns".into()).spawn_scoped(scope, inside)?;
            thread.join().map_err(|_| io::Error::other("the work in the mount namespace panicked"))?
        })
    }
}

impl From<File> for MountNs {
    fn from(file: File) -> Self {
        Self(Arc::new(file))
    }
}

/// A copy of a mount that is not attached anywhere; it is gone with this value unless it was attached.
#[derive(Debug)]
pub struct Detached(OwnedFd);

impl Detached {
    /// A copy of what is seen at this file or folder, without what is mounted below it. `namespace` is the one that
    /// the file is in.
    ///
    /// Programs, devices and set-user bits on it count for nothing.
    pub fn copy(file: &Inside, namespace: &MountNs, read_only: bool) -> io::Result<Self> {
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
        let tree = namespace.run(|| open_tree(file.as_fd(), "", flags))??;
        let limits = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;
        let limits = limits | if read_only { libc::MOUNT_ATTR_RDONLY } else { 0 };
        set_attributes(&tree, limits)?;
        Ok(Self(tree))
    }

    /// Attaches it to a file or folder of the calling thread's namespace.
    pub fn attach(self, onto: &Inside) -> io::Result<()> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(self.0.as_fd(), "", onto.as_fd(), "", flags).map_err(io::Error::from)
    }
}

/// Sets attributes of a mount, and keeps what is mounted below it from spreading to where it was copied from.
fn set_attributes(tree: &OwnedFd, attributes: u64) -> io::Result<()> {
    let wanted =
        libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: libc::MS_PRIVATE, userns_fd: 0 };
    // SAFETY: the path is an empty C string, and the attributes live and keep their size during the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes away all that is mounted on a name in a folder. Whether there was anything is returned; who has files of it
/// open keeps them.
pub fn unmount_all(folder: &Inside, name: &str) -> io::Result<bool> {
    for round in 0..DEEPEST {
        let there = match folder.beneath(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(round > 0),
            there => there?,
        };
        if !there.is_mount_point()? {
            return Ok(round > 0);
        }
        unmount(folder.path().join(name), UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
    }
    Err(io::Error::other(format!("{} does not become free", folder.shown().join(name).display())))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use rustix::fs::OFlags;
    use rustix::mount::{MountPropagationFlags, mount_change};

    use super::*;
    use crate::testing::Folder;

    /// A mount namespace of its own, held by nothing but this value.
    fn another() -> MountNs {
        let make = || {
            // SAFETY: the thread does nothing else, and a mount namespace holds no memory of ours.
            unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.unwrap();
            mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE).unwrap();
            MountNs::current().unwrap()
        };
        thread::spawn(make).join().unwrap()
    }

    #[test]
    fn a_file_of_one_namespace_is_mounted_in_another() {
        let folder = Folder::of(&[("source/disk.img", ""), ("target/place", "")]);
        let (theirs, ours) = (another(), another());
        let path = folder.path().to_owned();
        // Only there is a file system with the image.
        let source = theirs.run(|| {
            let flags = rustix::mount::MountFlags::empty();
            rustix::mount::mount("none", path.join("source"), "tmpfs", flags, None).unwrap();
            fs::write(path.join("source/disk.img"), "image").unwrap();
            Inside::folder(&path.join("source")).unwrap().beneath("disk.img").unwrap()
        });
        let source = source.unwrap();
        assert_eq!(fs::read_to_string(path.join("source/disk.img")).unwrap(), "");
        let copy = Detached::copy(&source, &theirs, true).unwrap();
        ours.run(|| {
            let target = Inside::folder(&path.join("target")).unwrap();
            copy.attach(&target.beneath("place").unwrap()).unwrap();
            let there = target.beneath("place").unwrap();
            assert!(there.is_mount_point().unwrap());
            assert_eq!(there.identity().unwrap(), source.identity().unwrap());
            assert_eq!(fs::read_to_string(path.join("target/place")).unwrap(), "image");
            assert!(there.open(OFlags::WRONLY).unwrap_err().to_string().contains("Read-only"));
            assert!(unmount_all(&target, "place").unwrap());
            assert!(!unmount_all(&target, "place").unwrap());
            assert!(!unmount_all(&target, "nothing").unwrap());
            assert!(!target.beneath("place").unwrap().is_mount_point().unwrap());
        })
        .unwrap();
    }

    #[test]
    fn a_panic_is_an_error() {
        let namespace = MountNs::current().unwrap();
        assert!(namespace.run(|| panic!("as the test wants it")).is_err());
        assert!(namespace.run(|| Path::new("/").is_dir()).unwrap());
    }
}
