//! Two hundred guests that are no more than their serial ports, and what their viewers do.
//!
//! The ports are sockets where launchers have them, and a process listens there that is in a mount namespace of its
//! own, as launchers are; a handler cannot tell the difference. What is typed is echoed, and one key calls for a flood.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join_all;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_streams::{Stream, Upgraded};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::process::{Child, Command};

use super::door::Behind;

/// How many guests there are.
pub(crate) const COUNT: usize = 200;
/// One viewer in so many does not read for a while.
const SLOW: usize = 25;
/// How much each of their guests has to say meanwhile: more than all buffers on the way can hold.
const FLOOD: usize = 24 << 20;
/// The key that calls for it.
const KEY: u8 = 1;
/// How much each of the others types, and reads again: less than is kept for a slow viewer, so that nothing is dropped.
const TYPED: usize = 32 << 10;
/// So many connect at a time.
const CONNECTING: usize = 32;
/// The most that a server may grow by during the flood, of which there is more than twice as much.
const GROWTH: u64 = 64 << 20;
/// The longest that anything may take; generous, for busy machines.
const PATIENCE: Duration = Duration::from_secs(180);
/// Says which part of a test a process is: that of the viewers, or that of the guests in a folder.
const PART: &str = "KUBEVIRT_TEST_CROWD";
const VIEWERS: &str = "viewers";

/// The guests, until they are dropped.
pub(crate) struct Crowd {
    folder: PathBuf,
    child: Child,
}

/// Runs a test with the guests beside it in processes of their own, so that all that is left open can be counted.
pub(crate) fn alone(name: &str, test: impl AsyncFnOnce(&Crowd)) {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match std::env::var_os(PART) {
        None => {
            let mut command = std::process::Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "--nocapture", "--test-threads=1", name]).env(PART, VIEWERS);
            assert!(command.status().unwrap().success(), "{name}");
        }
        Some(part) if part == VIEWERS => {
            more_files();
            runtime().unwrap().block_on(async {
                let crowd = Crowd::start(name).await;
                test(&crowd).await;
            });
        }
        Some(folder) => {
            more_files();
            runtime().unwrap().block_on(be_guests(Path::new(&folder)));
        }
    }
}

/// A console takes some files at each end, and all ends are on this machine.
fn more_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

impl Crowd {
    async fn start(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kubevirt-crowd-{}", std::process::id()));
        let mut command = Command::new("unshare");
        command.arg("--mount").arg(std::env::current_exe().unwrap());
        command.args(["--exact", "--nocapture", "--test-threads=1", test]).env(PART, &folder);
        let child = command.stdin(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let crowd = Self { folder, child };
        until("the guests are there", || crowd.folder.join("ready").exists()).await;
        crowd
    }

    /// What a handler knows of the guests, which are in this namespace.
    pub(crate) fn behind(&self, namespace: &str) -> Behind {
        let known = (0..COUNT).map(|number| {
            let metadata = json!({"name": name(number), "namespace": namespace, "uid": uid(number)});
            let spec = json!({"domain": {"devices": {}}});
            let vmi: VirtualMachineInstance =
                serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
            (vmi, pod(number))
        });
        let folders = ["pods", "records", "private"].map(|name| self.folder.join(name));
        Behind::of(known.collect(), folders)
    }

    /// How many files the guests have open.
    pub(crate) fn files(&self) -> usize {
        files(self.child.id().unwrap())
    }

    fn is_done(&self, number: usize) -> bool {
        self.folder.join(format!("done-{number}")).exists()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The name of a guest's instance.
pub(crate) fn name(number: usize) -> String {
    format!("guest-{number}")
}

fn uid(number: usize) -> String {
    format!("u{number}")
}

fn pod(number: usize) -> String {
    format!("p{number}")
}

/// Whether its viewer does not read for a while.
pub(crate) fn is_slow(number: usize) -> bool {
    number.is_multiple_of(SLOW)
}

/// How many files a process has open.
pub(crate) fn files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn in_time<T>(what: &str, doing: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, doing).await.unwrap_or_else(|_| panic!("in time: {what}"))
}

/// Listens on all sockets until nobody wants it any more.
async fn be_guests(folder: &Path) {
    for number in 0..COUNT {
        let launcher = folder.join(format!("pods/{}/volumes/kubernetes.io~empty-dir/sockets", pod(number)));
        let launcher = listen(&launcher, kubevirt_launcher_rpc::LAUNCHER_SOCKET);
        tokio::spawn(async move { while launcher.accept().await.is_ok() {} });
        let port = listen(&folder.join("private").join(uid(number)), "virt-serial0");
        let done = folder.join(format!("done-{number}"));
        tokio::spawn(async move {
            // One viewer at a time, as QEMU has it.
            while let Ok((viewer, _)) = port.accept().await {
                let _ = talk(viewer, &done).await;
            }
        });
    }
    std::fs::write(folder.join("ready"), "").unwrap();
    let _ = tokio::io::stdin().read(&mut [0]).await;
}

fn listen(folder: &Path, name: &str) -> UnixListener {
    std::fs::create_dir_all(folder).unwrap();
    UnixListener::bind(folder.join(name)).unwrap()
}

async fn talk(mut viewer: UnixStream, done: &Path) -> std::io::Result<()> {
    let mut buffer = vec![0; 4096];
    loop {
        let length = viewer.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        if buffer[..length].contains(&KEY) {
            let lines = [&[b'x'; 62][..], b"\r\n"].concat().repeat(64);
            for _ in 0..FLOOD / lines.len() {
                viewer.write_all(&lines).await?;
            }
            std::fs::write(done, "")?;
            viewer.write_all(b"END").await?;
        } else {
            viewer.write_all(&buffer[..length]).await?;
        }
    }
}

/// All guests have viewers at once, some of them slow, who then leave. `count` counts what must not stay behind,
/// `servers` are the processes that carry the streams.
pub(crate) async fn visit<O: Future<Output = Stream<Upgraded>>>(
    crowd: &Crowd,
    servers: &[u32],
    count: impl Fn() -> Vec<usize>,
    open: impl Fn(usize) -> O,
) {
    let before = count();
    let open_all = async || {
        let opening = futures_util::stream::iter(0..COUNT).map(&open).buffered(CONNECTING);
        in_time("all consoles are open", opening.collect::<Vec<_>>()).await
    };
    let mut viewers = open_all().await;
    type_on(viewers.iter_mut().enumerate()).await;

    let memory = || servers.iter().map(|pid| kubevirt_host::memory::of(*pid).unwrap().proportional);
    let at_rest: Vec<u64> = memory().collect();
    for (_, viewer) in viewers.iter_mut().enumerate().filter(|(number, _)| is_slow(*number)) {
        viewer.write_all(&[KEY]).await.unwrap();
        viewer.flush().await.unwrap();
    }
    // Nobody waits for those who do not read: neither other viewers, nor their own guests.
    type_on(viewers.iter_mut().enumerate().filter(|(number, _)| !is_slow(*number))).await;
    for number in (0..COUNT).filter(|number| is_slow(*number)) {
        until("a guest has said all", || crowd.is_done(number)).await;
    }
    for (before, now) in at_rest.into_iter().zip(memory()) {
        let grown = now.saturating_sub(before);
        assert!(grown < GROWTH, "{grown} bytes more are in memory");
    }
    let slow = viewers.iter_mut().enumerate().filter(|(number, _)| is_slow(*number));
    in_time("the slow ones have read", join_all(slow.map(|(_, viewer)| account(viewer)))).await;

    for (number, mut viewer) in viewers.into_iter().enumerate() {
        // Some say goodbye, others are gone without a word.
        if number % 2 == 0 {
            viewer.shutdown().await.unwrap();
        }
    }
    let left = || count().iter().zip(&before).all(|(now, before)| now <= before);
    let began = Instant::now();
    while !left() {
        assert!(began.elapsed() < PATIENCE, "left behind: {:?}, where there were {before:?}", count());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // And everyone can come again.
    let mut again = open_all().await;
    type_on(again.iter_mut().enumerate()).await;
}

/// Everyone types, and reads all of it again.
async fn type_on<'a>(viewers: impl Iterator<Item = (usize, &'a mut Stream<Upgraded>)>) {
    let typing = viewers.map(async |(number, viewer)| {
        let typed: Vec<u8> = (0..TYPED).map(|at| b'a' + ((at / 7 + at + number) % 26) as u8).collect();
        let (mut from, mut to) = tokio::io::split(viewer);
        let mut echo = vec![0; TYPED];
        let typing = async {
            to.write_all(&typed).await.unwrap();
            to.flush().await.unwrap();
        };
        let (_, read) = tokio::join!(typing, from.read_exact(&mut echo));
        read.unwrap();
        assert!(echo == typed, "the console of {} carries something else", name(number));
    });
    in_time("everyone types", join_all(typing)).await;
}

/// Reads the flood: each byte of it is there, or was counted as missing.
async fn account(viewer: &mut Stream<Upgraded>) {
    let mut text = Vec::new();
    let mut piece = vec![0; 64 << 10];
    while !text.ends_with(b"END") {
        let length = viewer.read(&mut piece).await.unwrap();
        assert!(length > 0, "the flood breaks off: {:?}", viewer.farewell());
        text.extend_from_slice(&piece[..length]);
    }
    let text = String::from_utf8(text).unwrap();
    let (mut seen, mut missing) = (text.len() - "END".len(), 0);
    for notice in text.split('[').skip(1) {
        let (number, rest) = notice.split_once(' ').unwrap();
        let words = rest.split(']').next().unwrap();
        missing += number.parse::<usize>().unwrap();
        // With its brackets and its two ends of lines.
        seen -= number.len() + 1 + words.len() + 2 + 4;
    }
    assert_eq!(seen + missing, FLOOD, "{missing} of {FLOOD} are said to be missing");
    assert!(missing > 0, "nothing is missing: the flood was too small to tell anything");
}
