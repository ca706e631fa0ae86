//! The program as a process: its socket, its end, its words.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn no_op_ends_at_once() {
    let output = run(["--no-op"]);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn says_how_it_is_called() {
    assert!(text(&run(["--help"]).stdout).contains("--copy-path PATH"));
    let output = run::<&str>([]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("--copy-path or --no-op is needed"), "{output:?}");
}

#[test]
fn listens_hangs_up_and_ends_on_a_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let folder = Folder::new();
        let disk = Disk::start(&folder.0.join("new/folder/disk_0"));
        for _ in 0..200 {
            let mut stream = UnixStream::connect(&disk.socket).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            assert_eq!(std::io::Read::read(&mut stream, &mut [0]).unwrap(), 0, "it hangs up");
        }
        disk.signal(signal);
        let (output, socket) = disk.end();
        assert!(output.status.success(), "{output:?}");
        assert!(!socket.exists());
    }
}

#[test]
fn ends_when_its_socket_is_removed() {
    let folder = Folder::new();
    let disk = Disk::start(&folder.0.join("disk_0"));
    fs::write(folder.0.join("other"), "").unwrap();
    fs::remove_file(folder.0.join("other")).unwrap();
    UnixStream::connect(&disk.socket).unwrap();
    fs::remove_file(&disk.socket).unwrap();
    let (output, socket) = disk.end();
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stderr).contains(&format!("{} was removed", socket.display())), "{output:?}");
}

#[test]
fn leaves_the_socket_of_another_process_alone() {
    let folder = Folder::new();
    let disk = Disk::start(&folder.0.join("disk_0"));
    fs::remove_file(&disk.socket).unwrap();
    let _other = UnixListener::bind(&disk.socket).unwrap();
    let (output, socket) = disk.end();
    assert!(output.status.success(), "{output:?}");
    assert!(socket.exists());
}

#[test]
fn takes_the_place_of_one_that_was_killed() {
    let folder = Folder::new();
    let path = folder.0.join("disk_0");
    let killed = Disk::start(&path);
    killed.signal(Signal::KILL);
    let (_, socket) = killed.end();
    assert!(socket.exists());
    let next = Disk::start(&path);
    UnixStream::connect(&next.socket).unwrap();
    next.signal(Signal::TERM);
    assert!(next.end().0.status.success());
}

#[test]
fn says_why_it_cannot_listen() {
    let folder = Folder::new();
    let file = folder.0.join("file");
    fs::write(&file, "").unwrap();
    fs::write(folder.0.join("disk.sock"), "mine").unwrap();
    let taken = folder.0.join("taken");
    let _other = UnixListener::bind(folder.0.join("taken.sock")).unwrap();
    for (path, expected) in [
        (file.join("disk_0"), "cannot create"),
        (folder.0.join("disk"), "is not a socket"),
        (taken, "another process does"),
    ] {
        let output = run([OsStr::new("--copy-path"), path.as_os_str()]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text(&output.stderr).contains(expected), "{output:?}");
    }
    assert_eq!(fs::read_to_string(folder.0.join("disk.sock")).unwrap(), "mine");
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_container-disk"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    program().args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A running program that listens; killed if a test forgets it.
struct Disk {
    child: Option<Child>,
    socket: PathBuf,
}

impl Disk {
    fn start(path: &Path) -> Self {
        let child = program().arg("--copy-path").arg(path).spawn().unwrap();
        let mut disk = Self { child: Some(child), socket: path.with_extension("sock") };
        let begun = Instant::now();
        while UnixStream::connect(&disk.socket).is_err() {
            let ended = disk.child.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none() && begun.elapsed() < PATIENCE, "it does not listen: {ended:?}");
            sleep(Duration::from_millis(5));
        }
        disk
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().unwrap();
        kill_process(Pid::from_child(child), signal).unwrap();
    }

    fn end(mut self) -> (Output, PathBuf) {
        let begun = Instant::now();
        while self.child.as_mut().unwrap().try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < PATIENCE, "it does not end");
            sleep(Duration::from_millis(5));
        }
        (self.child.take().unwrap().wait_with_output().unwrap(), self.socket.clone())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("container-disk-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
