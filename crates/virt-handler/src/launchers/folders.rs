//! Where launchers and their sockets lie in the kubelet's folder of pods.
//!
//! What is inside a pod's volumes is the pod's, and may be made to mislead us: it is opened without following any
//! link, and used through what was opened.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use kubevirt_launcher_rpc::{LAUNCHER_SOCKET, NOTIFY_SOCKET};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::process::{Gid, Uid};

/// Where a kubelet keeps what is of the type that launchers use.
const VOLUMES: &str = "volumes/kubernetes.io~empty-dir";

/// Volume of the launcher's own socket.
const SOCKETS: &str = "sockets";

/// Volume that handler and launcher share.
const SHARED: &str = "public";

/// Where kubelets keep their pods, if nobody says otherwise.
pub const KUBELET_PODS: &str = "/var/lib/kubelet/pods";

/// The kubelet's folder of pods.
#[derive(Clone, Debug)]
pub struct Folders {
    pods: PathBuf,
}

impl Folders {
    /// The folder of pods, as the handler sees it.
    pub fn new(pods: &Path) -> Self {
        Self { pods: pods.to_owned() }
    }

    /// The folder of a pod; none if its UID cannot be one.
    pub fn pod(&self, pod: &str) -> Option<PathBuf> {
        is_name(pod).then(|| self.pods.join(pod))
    }

    /// The volume of a pod that its launcher's socket appears in.
    pub fn sockets(&self, pod: &str) -> Option<PathBuf> {
        Some(self.pod(pod)?.join(VOLUMES).join(SOCKETS))
    }

    /// The socket of a pod's launcher, if it is there.
    pub fn socket(&self, pod: &str) -> io::Result<Option<Opened>> {
        let folder = self.open(pod, SOCKETS)?;
        let opened = rustix::fs::openat2(
            &folder,
            LAUNCHER_SOCKET,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            INSIDE,
        );
        let socket = match opened {
            Ok(socket) => socket,
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&socket)?.st_mode);
        if kind != FileType::Socket {
            return Err(io::Error::other(format!("{LAUNCHER_SOCKET} is no socket")));
        }
        Ok(Some(Opened(socket)))
    }

    /// Listens where a pod's launcher tells what happens. The socket is given to whoever the launcher's own belongs to:
    /// that is the user that it runs as, also where nothing else is known of its instance yet.
    pub fn listen(&self, pod: &str) -> io::Result<tokio::net::UnixListener> {
        let launcher = self.socket(pod)?.ok_or(io::ErrorKind::NotFound)?;
        let user = rustix::fs::fstat(&launcher.0)?.st_uid;
        let folder = Opened(self.open(pod, SHARED)?);
        remove(&folder.0)?;
        // By way of the open folder: the whole path would be too long for a socket.
        let listener = std::os::unix::net::UnixListener::bind(folder.path().join(NOTIFY_SOCKET))?;
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(user));
        rustix::fs::chownat(&folder.0, NOTIFY_SOCKET, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
        listener.set_nonblocking(true)?;
        tokio::net::UnixListener::from_std(listener)
    }

    /// Takes the socket that we listened at away.
    pub fn stop_listening(&self, pod: &str) {
        // The pod may be gone, and its folder with it.
        let _ = self.open(pod, SHARED).and_then(|folder| remove(&folder));
    }

    /// Opens a volume of a pod.
    fn open(&self, pod: &str, volume: &str) -> io::Result<OwnedFd> {
        let path = self.pod(pod).ok_or(io::ErrorKind::InvalidInput)?.join(VOLUMES).join(volume);
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        // The way to the volume is the kubelet's, and may well be a link.
        let parent = rustix::fs::openat(CWD, path.parent().unwrap_or(&path), flags, Mode::empty())?;
        Ok(rustix::fs::openat2(&parent, volume, flags, Mode::empty(), INSIDE)?)
    }
}

/// Nothing that a pod makes leads elsewhere.
const INSIDE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// A file or folder that was opened, and is the same whatever happens to its name.
#[derive(Debug)]
pub struct Opened(OwnedFd);

impl Opened {
    /// A path that leads to it as long as it is open.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_fd().as_raw_fd()).into()
    }
}

/// Whether a pod has put something in the way that leads elsewhere or is something else. All other errors are troubles
/// of our own, such as too many open files, that say nothing of the pod.
pub fn is_misleading(error: &io::Error) -> bool {
    use rustix::io::Errno;
    // What the system does not say, we say.
    let Some(code) = error.raw_os_error() else { return true };
    matches!(Errno::from_raw_os_error(code), Errno::LOOP | Errno::XDEV | Errno::NOTDIR)
}

fn remove(folder: &OwnedFd) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, NOTIFY_SOCKET, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a text names a file of its own in a folder.
pub fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !text.is_empty() && text.bytes().all(plain)
}

/// The socket of a pod's launcher where a kubelet has it.
pub fn socket_of_kubelet(pod: &str) -> String {
    format!("{KUBELET_PODS}/{pod}/{VOLUMES}/{SOCKETS}/{LAUNCHER_SOCKET}")
}

/// The pod that a socket of a launcher belongs to.
pub fn pod_of(socket: &str) -> Option<&str> {
    let above = socket.strip_suffix(LAUNCHER_SOCKET)?.strip_suffix('/')?.strip_suffix(SOCKETS)?;
    let above = above.strip_suffix('/')?.strip_suffix(VOLUMES)?.strip_suffix('/')?;
    above.rsplit('/').next().filter(|pod| is_name(pod))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::testing::Folder;

    fn pod(folder: &Folder) -> PathBuf {
        let volumes = folder.path().join("b2a7").join(VOLUMES);
        for volume in [SOCKETS, SHARED] {
            std::fs::create_dir_all(volumes.join(volume)).unwrap();
        }
        volumes
    }

    #[test]
    fn pods_are_found_by_their_socket() {
        assert_eq!(pod_of(&socket_of_kubelet("b2a7")), Some("b2a7"));
        for wrong in ["", "/launcher-sock", "/pods/b2a7/sockets/launcher-sock"] {
            assert_eq!(pod_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_a_socket_in_the_pods_own_volume_is_one() {
        let folder = Folder::new();
        let folders = Folders::new(folder.path());
        assert!(folders.socket("b2a7").is_err(), "there is no such pod");
        let sockets = pod(&folder).join(SOCKETS);
        assert!(folders.socket("b2a7").unwrap().is_none());
        let elsewhere = folder.path().join("elsewhere");
        let _listener = UnixListener::bind(&elsewhere).unwrap();
        symlink(&elsewhere, sockets.join(LAUNCHER_SOCKET)).unwrap();
        assert!(folders.socket("b2a7").is_err(), "links are not followed");
        std::fs::remove_file(sockets.join(LAUNCHER_SOCKET)).unwrap();
        std::fs::write(sockets.join(LAUNCHER_SOCKET), "").unwrap();
        assert!(folders.socket("b2a7").is_err(), "a file is no socket");
        std::fs::remove_file(sockets.join(LAUNCHER_SOCKET)).unwrap();
        let _listener = UnixListener::bind(sockets.join(LAUNCHER_SOCKET)).unwrap();
        let socket = folders.socket("b2a7").unwrap().unwrap();
        assert!(std::os::unix::net::UnixStream::connect(socket.path()).is_ok());
        assert!(folders.socket("../b2a7").is_err());
    }

    #[tokio::test]
    async fn we_listen_in_the_pods_folder_whatever_is_there() {
        let folder = Folder::new();
        let folders = Folders::new(folder.path());
        let shared = pod(&folder).join(SHARED);
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        symlink(&victim, shared.join(NOTIFY_SOCKET)).unwrap();
        let launcher = pod(&folder).join(SOCKETS).join(LAUNCHER_SOCKET);
        assert!(folders.listen("b2a7").is_err(), "there is no launcher");
        let _launcher = UnixListener::bind(&launcher).unwrap();
        for user in [107, 0] {
            std::os::unix::fs::chown(&launcher, Some(user), Some(0)).unwrap();
            let _listener = folders.listen("b2a7").unwrap();
            let given = std::fs::metadata(shared.join(NOTIFY_SOCKET)).unwrap();
            assert_eq!((given.uid(), given.gid()), (user, user));
            assert!(std::os::unix::net::UnixStream::connect(shared.join(NOTIFY_SOCKET)).is_ok());
        }
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        folders.stop_listening("b2a7");
        assert!(!shared.join(NOTIFY_SOCKET).exists());
        folders.stop_listening("gone");
    }
}
