//! Real files and pipes, as guests and kubelets treat them.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Instant;

use kubevirt_qemu::process::Launch;

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

/// A folder that is gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kubevirt-follow-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn append(path: &Path, text: impl AsRef<[u8]>) {
    let mut file = File::options().append(true).create(true).open(path).unwrap();
    file.write_all(text.as_ref()).unwrap();
}

/// Waits until something is so.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A copy of a file into another file.
struct Copy {
    following: Following,
    output: PathBuf,
}

impl Copy {
    fn of(source: &Path, output: PathBuf) -> Self {
        let file = File::options().append(true).create(true).open(&output).unwrap();
        Self { following: Following::copy(source, file.into(), None).unwrap(), output }
    }

    fn shows(&self, expected: &str) {
        let shown = || String::from_utf8_lossy(&fs::read(&self.output).unwrap()).into_owned();
        eventually(expected, || shown() == expected);
    }
}

#[tokio::test]
async fn what_is_appended_is_copied_as_it_is() {
    let folder = Folder::new("append");
    let source = folder.path("log");
    append(&source, "before\n");
    let copy = Copy::of(&source, folder.path("copy"));
    copy.shows("before\n");
    append(&source, "line\r\n\x1b[31mred\x1b[0m login: ");
    copy.shows("before\nline\r\n\x1b[31mred\x1b[0m login: ");
    append(&source, "root\n");
    copy.shows("before\nline\r\n\x1b[31mred\x1b[0m login: root\n");
    copy.following.finish().await.unwrap();
}

#[tokio::test]
async fn an_emptied_file_is_read_from_its_beginning() {
    let folder = Folder::new("empty");
    let source = folder.path("log");
    append(&source, "a long first line\n");
    let copy = Copy::of(&source, folder.path("copy"));
    copy.shows("a long first line\n");
    File::options().write(true).open(&source).unwrap().set_len(0).unwrap();
    append(&source, "second\n");
    copy.shows("a long first line\nsecond\n");
    copy.following.finish().await.unwrap();
}

#[tokio::test]
async fn a_replaced_file_is_copied_after_the_old_one() {
    let folder = Folder::new("replace");
    let source = folder.path("log");
    append(&source, "one\n");
    let copy = Copy::of(&source, folder.path("copy"));
    copy.shows("one\n");
    let mut old = File::options().append(true).open(&source).unwrap();
    fs::rename(&source, folder.path("log.1")).unwrap();
    old.write_all(b"two\n").unwrap();
    copy.shows("one\ntwo\n");
    append(&folder.path("log.new"), "three\n");
    fs::rename(folder.path("log.new"), &source).unwrap();
    copy.shows("one\ntwo\nthree\n");
    fs::remove_file(&source).unwrap();
    append(&source, "four\n");
    copy.shows("one\ntwo\nthree\nfour\n");
    copy.following.finish().await.unwrap();
}

#[tokio::test]
async fn a_file_may_come_later_and_so_may_its_folders() {
    let folder = Folder::new("later");
    let source = folder.path("some/where/log");
    let copy = Copy::of(&source, folder.path("copy"));
    fs::create_dir(folder.path("some")).unwrap();
    // Time to see one folder before the next comes, which nothing tells; without it this would prove less, but not
    // fail.
    std::thread::sleep(Duration::from_millis(100));
    fs::create_dir(folder.path("some/where")).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    append(&source, "here\n");
    copy.shows("here\n");
    copy.following.finish().await.unwrap();
}

#[tokio::test]
async fn the_rest_is_copied_at_the_end() {
    let folder = Folder::new("rest");
    let source = folder.path("log");
    append(&source, "");
    let copy = Copy::of(&source, folder.path("copy"));
    let text = "the last words of a guest\n".repeat(10_000);
    append(&source, &text);
    copy.following.finish().await.unwrap();
    assert!(fs::read_to_string(folder.path("copy")).unwrap() == text);
}

#[tokio::test]
async fn who_reads_nothing_makes_nobody_wait() {
    let folder = Folder::new("stuck");
    let source = folder.path("log");
    append(&source, "");
    let (mut reader, writer) = io::pipe().unwrap();
    let bounds = Bounds { soft: 64 << 10, hard: 256 << 10 };
    let following = Following::copy(&source, writer.into(), Some(bounds)).unwrap();
    for _ in 0..64 {
        append(&source, vec![b'x'; 32 << 10]);
    }
    let length = || fs::metadata(&source).unwrap().len();
    eventually("the file is emptied though nobody reads", || length() <= bounds.hard);

    // Once somebody reads, it goes on.
    append(&source, "the end\n");
    let reading = std::thread::spawn(move || {
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        all
    });
    following.finish().await.unwrap();
    let all = reading.join().unwrap();
    assert!(all.ends_with(b"the end\n") && all.len() < 2 << 20, "{} bytes", all.len());
}

#[tokio::test]
async fn a_flood_is_copied_and_the_file_stays_small() {
    let folder = Folder::new("flood");
    let source = folder.path("log");
    append(&source, "");
    let output = folder.path("copy");
    let bounds = Bounds { soft: 128 << 10, hard: 64 << 20 };
    let following = Following::copy(&source, File::create(&output).unwrap().into(), Some(bounds)).unwrap();
    for number in 0..100_000 {
        append(&source, format!("line {number}\n"));
    }
    let length = |path: &Path| fs::metadata(path).unwrap().len();
    eventually("the file is emptied", || length(&source) <= bounds.soft);
    append(&source, "the end\n");
    following.finish().await.unwrap();
    let copied = fs::read_to_string(&output).unwrap();
    assert!(copied.starts_with("line 0\nline 1\n") && copied.ends_with("the end\n"));
    let lines = copied.lines().count();
    assert!(lines > 90_000, "only what came while the file was emptied may be missing, not {lines} lines");
}

#[tokio::test]
async fn a_file_that_somebody_else_copies_is_emptied_when_it_is_quiet() {
    let folder = Folder::new("shorten");
    let source = folder.path("log");
    let bounds = Bounds { soft: 1000, hard: 1 << 20 };
    let mut following = Following::shorten(&source, bounds).unwrap();
    append(&source, vec![b'x'; 2000]);
    let length = || fs::metadata(&source).unwrap().len();
    eventually("the file is emptied", || length() == 0);
    append(&source, "short");
    let early = timeout(Duration::from_millis(1500), following.ended()).await;
    assert!(early.is_err() && length() == 5, "{early:?}");
    following.finish().await.unwrap();
}

#[tokio::test]
async fn a_closed_output_ends_it() {
    let folder = Folder::new("closed");
    let source = folder.path("log");
    append(&source, "text");
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let mut following = Following::copy(&source, writer.into(), None).unwrap();
    let ended = timeout(PATIENCE, following.ended()).await.unwrap();
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

/// A file may only be emptied under somebody who appends: others would leave a hole as large as what was there.
#[tokio::test]
async fn qemu_appends_to_the_log_of_a_console() {
    let folder = Folder::new("qemu");
    let log = folder.path("log");
    let console = format!("null,id=c,logfile={},logappend=on", log.display());
    let launch = Launch {
        program: crate::host::program(kubevirt_domain::domain::Architecture::default()),
        arguments: ["-machine", "none", "-nodefaults", "-display", "none", "-chardev", &console]
            .map(Into::into)
            .to_vec(),
        ..Launch::default()
    };
    let (process, _machine) = launch.start().await.unwrap();
    let proc = PathBuf::from(format!("/proc/{}", process.pid()));
    let fds = fs::read_dir(proc.join("fd")).unwrap().map(|fd| fd.unwrap().path());
    let opened = fds.into_iter().find(|fd| fs::read_link(fd).is_ok_and(|target| target == log)).unwrap();
    let info = fs::read_to_string(proc.join("fdinfo").join(opened.file_name().unwrap())).unwrap();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
    let flags = u32::from_str_radix(flags, 8).unwrap();
    assert_ne!(flags & rustix::fs::OFlags::APPEND.bits(), 0, "{flags:o}");
    process.end().await;
}
