//! Processes of others: who listens on a socket, and what belongs to that process.
#![expect(unsafe_code, reason = "no library asks a socket for the other end's pidfd")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, prlimit};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::inside::Inside;
use crate::mounts::MountNs;

/// `SO_PEERPIDFD`, which Linux has since 6.5.
const PEER_PIDFD: libc::c_int = 77;

/// A process that may end at any time; what is read here never belongs to another one with the same number.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    handle: OwnedFd,
    folder: Inside,
}

impl Process {
    /// The process that listens on a socket.
    pub fn listening_on(socket: &Inside) -> io::Result<Self> {
        let stream = connect(socket)?;
        let pid = peer(&stream)?;
        if let Some(handle) = peer_handle(&stream)? {
            return Self::checked(pid, handle);
        }
        // Older kernels tell only the number. If the one that we hold is still the listener, it is the right one.
        let handle = pidfd_open(pid, PidfdFlags::empty())?;
        if peer(&connect(socket)?)? != pid {
            return Err(io::Error::new(io::ErrorKind::NotFound, "another process listens by now"));
        }
        Self::checked(pid, handle)
    }

    /// A process by its number, which the caller knows to be still its own.
    pub fn numbered(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no number of a process"))?;
        Self::checked(pid, pidfd_open(pid, PidfdFlags::empty())?)
    }

    fn checked(pid: Pid, handle: OwnedFd) -> io::Result<Self> {
        let folder = Inside::folder(Path::new(&format!("/proc/{}", pid.as_raw_nonzero())))?;
        let process = Self { pid, handle, folder };
        // If it still lives now, the folder was opened while it did, and is no other's.
        if process.is_alive()? { Ok(process) } else { Err(gone()) }
    }

    /// Its number as we see it.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Whether it has not ended.
    pub fn is_alive(&self) -> io::Result<bool> {
        let mut handles = [PollFd::new(&self.handle, PollFlags::IN)];
        match poll(&mut handles, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(ended) => Ok(ended == 0),
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// The root folder that it sees.
    pub fn root(&self) -> io::Result<Inside> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(&self.folder, "root", flags, Mode::empty())?;
        Ok(Inside::of(root, self.folder.shown().join("root")))
    }

    /// The mount namespace that it is in.
    pub fn mounts(&self) -> io::Result<MountNs> {
        self.file("ns/mnt").map(Into::into)
    }

    /// A file that stands for the network namespace that it is in.
    pub fn network(&self) -> io::Result<File> {
        self.file("ns/net")
    }

    /// What one of its files in `/proc` says.
    pub fn text(&self, name: &str) -> io::Result<String> {
        io::read_to_string(self.file(name)?)
    }

    /// Whether it is in the same mount namespace as another process, which is named by its folder in `/proc`.
    pub fn shares_mounts_with(&self, other: &Path) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        let (its, others) = (self.file("ns/mnt")?.metadata()?, std::fs::metadata(other.join("ns/mnt"))?);
        Ok((its.dev(), its.ino()) == (others.dev(), others.ino()))
    }

    /// What its file `cgroup` says to someone in this namespace of control groups.
    pub fn groups_seen_from(&self, namespace: &Path) -> io::Result<String> {
        let namespace = File::open(namespace)?;
        let read = || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::ControlGroup))?;
            self.text("cgroup")
        };
        thread::scope(|scope| {
            let thread = thread::Builder::new().name("cgroupns".into()).spawn_scoped(scope, read)?;
            thread.join().map_err(|_| io::Error::other("the reading of control groups panicked"))?
        })
    }

    fn file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.folder, name, flags, Mode::empty())?.into())
    }

    /// Its children.
    pub fn children(&self) -> io::Result<Vec<Process>> {
        let mut children = Vec::new();
        for thread in self.folder.beneath("task")?.names()? {
            let path = Path::new("task").join(thread).join("children");
            let Ok(text) = path.to_str().map_or_else(|| Ok(String::new()), |path| self.text(path)) else {
                continue;
            };
            children.extend(text.split_whitespace().filter_map(|pid| Self::numbered(pid.parse().ok()?).ok()));
        }
        let parent = format!("\nPPid:\t{}\n", self.id());
        children.retain(|child| child.text("status").is_ok_and(|status| status.contains(&parent)));
        Ok(children)
    }

    /// The name of the program that it runs, of at most 15 bytes.
    pub fn name(&self) -> io::Result<String> {
        self.text("comm").map(|name| name.trim_end().to_owned())
    }

    /// Lets it lock so many bytes of memory, if it may not do so already. Whether that changed anything is returned.
    pub fn allow_locking(&self, bytes: u64) -> io::Result<bool> {
        if !self.is_alive()? {
            return Err(gone());
        }
        let now = limits(self)?;
        let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= bytes);
        if enough(now.current) && enough(now.maximum) {
            return Ok(false);
        }
        let maximum = if enough(now.maximum) { now.maximum } else { Some(bytes) };
        prlimit(Some(self.pid), Resource::Memlock, Rlimit { current: Some(bytes), maximum })?;
        Ok(true)
    }
}

/// What a process may lock now.
fn limits(process: &Process) -> io::Result<Rlimit> {
    let text = process.text("limits")?;
    // Nothing that is not understood makes a limit smaller than it is.
    Ok(parse_limits(&text).unwrap_or_else(|| getrlimit(Resource::Memlock)))
}

fn parse_limits(text: &str) -> Option<Rlimit> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    let mut numbers = line.split_whitespace().map(|word| match word {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    });
    Some(Rlimit { current: numbers.next()??, maximum: numbers.next()?? })
}

/// Calls whoever listens on a socket, and does not wait: one who takes no calls would keep us for ever.
fn connect(socket: &Inside) -> io::Result<UnixStream> {
    // The path may be longer than the address of a socket can be; this one never is.
    let address = SocketAddrUnix::new(socket.path())?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&stream, &address) {
        Ok(()) => Ok(stream.into()),
        Err(Errno::AGAIN) => {
            let busy = io::Error::new(io::ErrorKind::WouldBlock, "too many calls wait there already");
            Err(named(socket, &busy))
        }
        Err(error) => Err(named(socket, &error.into())),
    }
}

fn peer(stream: &UnixStream) -> io::Result<Pid> {
    let number = rustix::net::sockopt::socket_peercred(stream.as_fd());
    match number {
        Ok(credentials) => Ok(credentials.pid),
        // A process of another PID namespace has the number 0, which is none.
        Err(error) => Err(error.into()),
    }
}

/// The process at the other end; nothing if the kernel is too old to tell.
fn peer_handle(stream: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut fd: libc::c_int = -1;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes one number of the size that it is told to a place that lives during the call.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            PEER_PIDFD,
            (&raw mut fd).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ENOPROTOOPT) => Ok(None),
            Some(libc::ESRCH | libc::EINVAL | libc::ENODATA) => Err(gone()),
            _ => Err(error),
        };
    }
    // SAFETY: the kernel just opened it, and nothing else has it.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) }))
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the process has ended")
}

fn named(socket: &Inside, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", socket.shown().display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::testing::Folder;

    #[test]
    fn finds_the_listener() {
        let folder = Folder::new();
        let path = folder.path().join("x.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let socket = Inside::folder(folder.path()).unwrap().beneath("x.sock").unwrap();
        let found = Process::listening_on(&socket).unwrap();
        assert_eq!(found.id(), std::process::id());
        assert!(found.is_alive().unwrap());
        assert!(found.shares_mounts_with(Path::new("/proc/thread-self")).unwrap());
        let seen = found.groups_seen_from(Path::new("/proc/self/ns/cgroup")).unwrap();
        assert_eq!(seen, std::fs::read_to_string("/proc/self/cgroup").unwrap());
        assert_eq!(
            found.root().unwrap().identity().unwrap(),
            Inside::folder(Path::new("/")).unwrap().identity().unwrap()
        );
        drop(listener);
        assert_eq!(Process::listening_on(&socket).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_listener_that_takes_no_calls_is_not_waited_for() {
        let folder = Folder::new();
        let listener = UnixListener::bind(folder.path().join("x.sock")).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let _first = UnixStream::connect(folder.path().join("x.sock")).unwrap();
        let socket = Inside::folder(folder.path()).unwrap().beneath("x.sock").unwrap();
        let (sender, found) = std::sync::mpsc::channel();
        // Somebody who waits would wait for as long as the listener is there.
        thread::spawn(move || sender.send(Process::listening_on(&socket).unwrap_err().kind()));
        let found = found.recv_timeout(std::time::Duration::from_secs(60));
        assert_eq!(found, Ok(io::ErrorKind::WouldBlock));
        drop(listener);
    }

    #[test]
    fn mounts_are_shared_or_not() {
        let mut alone = Command::new("unshare")
            .args(["--mount", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It answers once it has its own mounts.
        let (mut to, mut from) = (alone.stdin.take().unwrap(), alone.stdout.take().unwrap());
        io::Write::write_all(&mut to, b"x").unwrap();
        io::Read::read_exact(&mut from, &mut [0]).unwrap();
        let found = Process::numbered(alone.id()).unwrap();
        assert!(!found.shares_mounts_with(Path::new("/proc/thread-self")).unwrap());
        let folder = format!("/proc/{}", alone.id());
        assert!(found.shares_mounts_with(Path::new(&folder)).unwrap());
        drop(to);
        alone.wait().unwrap();
        assert!(found.shares_mounts_with(Path::new("/proc/thread-self")).is_err());
    }

    #[test]
    fn a_process_that_ended_has_nothing_left() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let found = Process::numbered(child.id()).unwrap();
        assert!(!found.allow_locking(1).unwrap(), "one byte is always allowed");
        assert!(
            Process::numbered(std::process::id())
                .unwrap()
                .children()
                .unwrap()
                .iter()
                .any(|c| c.id() == child.id())
        );
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!found.is_alive().unwrap());
        assert!(found.root().is_err());
        assert!(found.text("cgroup").is_err());
        assert!(Process::numbered(0).is_err());
    }

    #[test]
    fn reads_limits() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max locked memory         8388608              unlimited            bytes     \n";
        let read = parse_limits(text).unwrap();
        assert_eq!((read.current, read.maximum), (Some(8388608), None));
        assert!(parse_limits("Max locked memory  x y").is_none());
    }
}
