//! The programs that pods run by name, as real processes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use kubevirt_launcher_rpc::cmd::{Vmi, VmiRequest};
use kubevirt_launcher_rpc::connect;
use rustix::process::{Pid, Signal, kill_process};

/// The longest that any step may take; generous, for busy machines.
const PATIENCE: Duration = Duration::from_secs(90);

/// The folders of a pod, gone when the test ends.
struct Pod(PathBuf);

impl Pod {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kubevirt-programs-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("disks")).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn socket(&self) -> PathBuf {
        self.path("share/sockets/launcher-sock")
    }

    /// The command line of a launcher's container.
    fn launcher(&self, flags: &[&str]) -> Vec<String> {
        let mut line: Vec<String> =
            "--name web --namespace default --uid 1234 --run-as-nonroot --allow-emulation"
                .split(' ')
                .map(Into::into)
                .collect();
        for (flag, folder) in [
            ("--kubevirt-share-dir", "share"),
            ("--private-dir", "private"),
            ("--ephemeral-disk-dir", "ephemeral"),
            ("--container-disk-dir", "disks"),
            ("--hotplug-disk-dir", "hotplug"),
        ] {
            line.extend([flag.to_owned(), self.path(folder).display().to_string()]);
        }
        line.extend(flags.iter().map(|flag| (*flag).to_owned()));
        line
    }

    /// Runs a program that speaks to the launcher: its exit code, and what it says.
    fn ask(&self, words: &[&str]) -> (i32, String) {
        let socket = self.socket();
        let socket = ["--socket", socket.to_str().unwrap()];
        let (program, flags) = words.split_first().unwrap();
        let line: Vec<&str> = [*program].into_iter().chain(socket).chain(flags.iter().copied()).collect();
        let output = kubevirt(&line);
        (output.status.code().unwrap(), said(&output))
    }

    /// Starts a launcher and waits until it listens.
    fn start(&self, flags: &[&str]) -> Running {
        let mut command = Command::new(crate::BINARY);
        command.arg0("/usr/bin/virt-launcher-monitor").args(self.launcher(flags));
        let running = Running::start(&mut command);
        eventually("the launcher listens", || self.socket().exists());
        running
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that does not outlive its test.
struct Running(Option<Child>);

impl Running {
    fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(Some(command.spawn().unwrap()))
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    fn pid(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    /// The first line of its output, and what follows it.
    fn first_line(&mut self) -> (String, BufReader<ChildStdout>) {
        let mut output = BufReader::new(self.child().stdout.take().unwrap());
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            tell.send((line, output))
        });
        told.recv_timeout(PATIENCE).expect("it prints nothing")
    }

    fn tell_to_end(&self) {
        signal(self.pid(), Signal::TERM);
    }

    fn end(mut self) -> (ExitStatus, String) {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn signal(process: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(process).unwrap()).unwrap(), signal).unwrap();
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn kubevirt(arguments: &[&str]) -> Output {
    Command::new(crate::BINARY).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn help_tells_of_every_component() {
    let output = kubevirt(&["--help"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for name in ["admit", "up", "virt-api", "virt-launcher", "virt-probe", "virt-tail", "virtctl"] {
        assert!(text.contains(&format!("  {name} ")), "{name}: {text}");
    }
    let output = kubevirt(&["virt-probe", "--help"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("--guestAgentPing"), "{output:?}");
    assert_eq!(kubevirt(&["no-such-thing"]).status.code(), Some(2));
}

#[test]
fn a_launcher_that_nobody_asks_fails_and_lets_the_pod_end() {
    let pod = Pod::new("unasked");
    fs::write(pod.path("disks/disk_0.sock"), "").unwrap();
    fs::write(pod.path("disks/disk_0.img"), "").unwrap();
    let (status, log) = pod.start(&["--qemu-timeout", "1s"]).end();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("nobody asked for the machine in time"), "{log}");
    assert!(!pod.path("disks/disk_0.sock").exists() && pod.path("disks/disk_0.img").exists());
}

#[test]
fn a_launcher_can_be_told_to_end_before_it_has_a_machine() {
    let pod = Pod::new("early");
    let launcher = pod.start(&[]);
    launcher.tell_to_end();
    let (status, log) = launcher.end();
    assert_eq!(status.code(), Some(0), "{log}");
}

#[test]
fn a_launcher_can_stay_after_a_failure() {
    let pod = Pod::new("stay");
    fs::write(pod.path("disks/disk_0.sock"), "").unwrap();
    let mut launcher = pod.start(&["--qemu-timeout", "1s", "--keep-after-failure"]);
    let log = BufReader::new(launcher.child().stderr.take().unwrap());
    let stays = log.lines().map_while(Result::ok).any(|line| line.contains("staying after the failure"));
    assert!(stays && !pod.path("disks/disk_0.sock").exists());
    assert!(launcher.child().try_wait().unwrap().is_none());
    launcher.tell_to_end();
    assert_eq!(launcher.end().0.code(), Some(1));
}

#[test]
fn wrong_flags_are_named() {
    let output = kubevirt(&["virt-launcher", "--name", "web"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("--namespace"), "{}", said(&output));
}

#[test]
fn probe_and_freezer_speak_to_the_launcher() {
    let pod = Pod::new("ask");
    let launcher = pod.start(&[]);
    // There is no machine yet: no harm, nothing to run anything in and nothing to hold still.
    let name = ["--name", "web", "--namespace", "default"];
    let freezer = |flag| ["virt-freezer", flag, name[0], name[1], name[2], name[3]];
    let cases: [(&[&str], i32, &str); 8] = [
        (&["virt-probe", "--guestAgentPing", "--timeoutSeconds", "1"], 0, ""),
        (
            &["virt-probe", "--command", "cat", "--", "-n", "/etc/hostname"],
            1,
            "virt-probe: the virtual machine",
        ),
        (&["virt-probe"], 1, "--guestAgentPing"),
        (&["virt-probe", "--no-such-flag"], 2, "--no-such-flag"),
        (&freezer("--freeze"), 0, "does not run"),
        (&freezer("--unfreeze"), 0, "does not run"),
        (&["virt-freezer", "--freeze"], 1, "--name"),
        (&["virt-freezer", "--name", "web", "--namespace", "default"], 1, "--unfreeze"),
    ];
    for (words, code, sentence) in cases {
        let (ended, said) = pod.ask(words);
        assert_eq!(ended, code, "{words:?}: {said}");
        assert!(said.contains(sentence), "{words:?}: {said}");
    }
    launcher.tell_to_end();
    assert_eq!(launcher.end().0.code(), Some(0));
    for words in [&["virt-probe", "--guestAgentPing"][..], &freezer("--freeze")] {
        let (ended, said) = pod.ask(words);
        assert!(ended == 1 && said.contains("nobody answers"), "{words:?}: {ended} {said}");
    }
}

#[tokio::test]
async fn a_machine_has_its_console_in_the_log_and_dies_with_its_launcher() {
    let pod = Pod::new("console");
    let mut launcher = pod.start(&[]);
    let mut client = connect::launcher(&pod.socket()).await.unwrap();
    let vmi = serde_json::json!({
        "metadata": { "name": "web", "namespace": "default", "uid": "1234" },
        "spec": { "domain": { "devices": {}, "memory": { "guest": "64Mi" } } },
    });
    let vmi = Some(Vmi { vmi_json: vmi.to_string().into_bytes() });
    let answer =
        client.sync_virtual_machine(VmiRequest { vmi, ..VmiRequest::default() }).await.unwrap().into_inner();
    assert!(answer.success, "{answer:?}");

    // It has nothing to boot, so we print in its place, as QEMU would.
    let file = pod.path("private/1234/virt-serial0-log");
    fs::File::options().append(true).open(file).unwrap().write_all(b"Welcome to web\r\n").unwrap();
    assert_eq!(launcher.first_line().0, "Welcome to web\r\n");

    // Nothing answers in it either, which is bad for a probe but not for a backup.
    let (code, said) = pod.ask(&["virt-probe", "--guestAgentPing"]);
    assert!(code == 1 && said.contains("guest agent"), "{code} {said}");
    let (code, said) = pod.ask(&["virt-freezer", "--freeze", "--name", "web", "--namespace", "default"]);
    assert!(code == 0 && said.contains("guest agent"), "{code} {said}");

    let qemu = children_of(launcher.pid()).into_iter().find(|process| name_of(*process).starts_with("qemu"));
    let qemu = qemu.unwrap();
    launcher.child().kill().unwrap();
    eventually("QEMU ends as well", || !name_of(qemu).starts_with("qemu") || is_zombie(qemu));
}

#[test]
fn tail_copies_by_its_own_name_until_it_is_told_to_end() {
    let pod = Pod::new("tail");
    let (program, log) = (pod.path("virt-tail"), pod.path("log"));
    std::os::unix::fs::symlink(crate::BINARY, &program).unwrap();
    let mut tail = Running::start(Command::new(&program).arg("--logfile").arg(&log));
    let mut file = fs::File::options().append(true).create(true).open(&log).unwrap();
    file.write_all(b"Welcome\r\n").unwrap();
    let (line, mut copied) = tail.first_line();
    assert_eq!(line, "Welcome\r\n");
    file.write_all(b"login: ").unwrap();
    tail.tell_to_end();
    let mut rest = String::new();
    copied.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "login: ");
    assert_eq!(tail.end().0.code(), Some(0));

    let output = kubevirt(&["virt-tail"]);
    assert!(output.status.code() == Some(1) && said(&output).contains("--logfile"), "{output:?}");
    let output = kubevirt(&["virt-tail", "--logfile", pod.0.to_str().unwrap()]);
    assert!(output.status.code() == Some(1) && said(&output).contains("cannot copy"), "{output:?}");
}

#[test]
fn the_first_process_of_a_pod_reaps_what_others_leave_behind() {
    let pod = Pod::new("reap");
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child", crate::BINARY, "virt-launcher"]);
    let outside = Running::start(command.args(pod.launcher(&["-v", "5"])));
    eventually("the launcher listens", || pod.socket().exists());
    let launcher = children_of(outside.pid())[0];

    // The shell is gone before its child is, which is then left to the first process.
    let namespace = format!("--pid=/proc/{launcher}/ns/pid");
    let shell = ["sh", "-c", "sleep 1000 >/dev/null 2>&1 & exit 0"];
    assert!(Command::new("nsenter").arg(namespace).args(shell).status().unwrap().success());
    let mut orphan = None;
    eventually("the child is an orphan", || {
        orphan = children_of(launcher).into_iter().find(|process| name_of(*process) == "sleep");
        orphan.is_some()
    });
    let orphan = orphan.unwrap();
    signal(orphan, Signal::KILL);
    eventually("the orphan is reaped", || !Path::new(&format!("/proc/{orphan}")).exists());

    signal(launcher, Signal::TERM);
    let (status, log) = outside.end();
    assert_eq!(status.code(), Some(0), "{log}");
    // What the launcher itself starts, to ask QEMU what it has, is not taken from it.
    assert!(!log.contains("QEMU cannot be asked"), "{log}");
}

/// The children of a process.
fn children_of(parent: u32) -> Vec<u32> {
    let all =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    all.filter(|process| {
        stat(*process).and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok()) == Some(parent)
    })
    .collect()
}

fn name_of(process: u32) -> String {
    stat(process).map(|(name, _)| name).unwrap_or_default()
}

fn is_zombie(process: u32) -> bool {
    stat(process).is_some_and(|(_, rest)| rest.starts_with('Z'))
}

/// Name of a process, and all that follows it: state, parent and more.
fn stat(process: u32) -> Option<(String, String)> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (head, rest) = text.rsplit_once(") ")?;
    Some((head.split_once('(')?.1.to_owned(), rest.to_owned()))
}
