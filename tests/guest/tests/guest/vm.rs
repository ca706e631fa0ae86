//! A QEMU with the guest in it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use test_guest::{Artifacts, COMMAND_LINE, Console, Flavour, artifacts};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, MutexGuard};

/// The longest that any step may take; generous, for busy machines.
const PATIENCE: Duration = Duration::from_secs(180);

/// A running guest. The next one starts when this one is gone.
pub(crate) struct Vm {
    pub(crate) console: Console,
    pub(crate) folder: PathBuf,
    process: Child,
    _turn: MutexGuard<'static, ()>,
}

/// What a guest is started with.
pub(crate) struct Plan {
    arguments: Vec<String>,
    pub(crate) folder: PathBuf,
    artifacts: Artifacts,
    turn: MutexGuard<'static, ()>,
}

impl Plan {
    /// A machine without any disk.
    pub(crate) async fn new(flavour: Flavour) -> Self {
        static TURN: Mutex<()> = Mutex::const_new(());
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let turn = TURN.lock().await;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("test-guest-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let artifacts = tokio::task::spawn_blocking(move || artifacts(flavour)).await.unwrap().unwrap();
        let base = "-accel tcg -nodefaults -display none -machine q35 -cpu max -m 256 -no-reboot";
        let arguments = base.split(' ').map(str::to_owned).collect();
        Self { arguments, folder, artifacts, turn }
    }

    /// Adds arguments, which are separated by single blanks. `{}` is the machine's folder.
    pub(crate) fn with(mut self, arguments: &str) -> Self {
        let folder = self.folder.display().to_string();
        self.arguments.extend(arguments.split(' ').map(|argument| argument.replace("{}", &folder)));
        self
    }

    /// Boots the kernel itself.
    pub(crate) fn kernel(self, further: &str) -> Self {
        let kernel = self.artifacts.kernel.display().to_string();
        let initrd = self.artifacts.initrd.display().to_string();
        let mut plan = self.with(&format!("-kernel {kernel} -initrd {initrd} -append"));
        plan.arguments.push(format!("{COMMAND_LINE} {further}"));
        plan
    }

    /// Adds the guest's disk under the name `boot`, for some device.
    pub(crate) fn disk(self) -> Self {
        let file = self.folder.join("boot.raw");
        std::fs::copy(&self.artifacts.disk, &file).unwrap();
        self.file("boot", &file)
    }

    /// Adds the content of a disk, for some device.
    pub(crate) fn drive(self, name: &str, content: &[u8]) -> Self {
        let file = self.folder.join(format!("{name}.raw"));
        std::fs::write(&file, content).unwrap();
        self.file(name, &file)
    }

    fn file(self, name: &str, file: &Path) -> Self {
        self.with(&format!("-drive if=none,format=raw,id={name},file={}", file.display()))
    }

    /// Starts the machine.
    pub(crate) async fn start(self) -> Vm {
        let plan = self.with(
            "-chardev socket,id=console,path={}/console,server=on,wait=off,logfile={}/console.log \
             -serial chardev:console -monitor unix:{}/monitor,server=on,wait=off",
        );
        let process = Command::new("qemu-system-x86_64")
            .args(&plan.arguments)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let console = Console::connect(&plan.folder.join("console")).await.unwrap();
        Vm { console, folder: plan.folder, process, _turn: plan.turn }
    }
}

impl Vm {
    /// What a script in the guest prints.
    pub(crate) async fn run(&mut self, script: &str) -> String {
        self.console.run(script).await.unwrap()
    }

    /// Logs in as root.
    pub(crate) async fn login(&mut self) {
        self.console.login("root", "root").await.unwrap();
    }

    /// Gives QEMU a command, which must have nothing to answer.
    pub(crate) async fn monitor(&self, line: &str) {
        const PROMPT: &str = "(qemu) ";
        let monitor = UnixStream::connect(self.folder.join("monitor")).await.unwrap();
        let mut monitor = Console::over(monitor);
        monitor.expect(PROMPT).await.unwrap();
        monitor.send_line(line).await.unwrap();
        // The echo is a mess, but ends with the line's end.
        monitor.expect("\n").await.unwrap();
        assert_eq!(monitor.expect(PROMPT).await.unwrap(), "", "{line}");
    }

    /// Waits for the end of QEMU.
    pub(crate) async fn ended(&mut self) {
        let status = tokio::time::timeout(PATIENCE, self.process.wait()).await;
        let status = status.unwrap_or_else(|_| panic!("it still runs: {}", self.console.transcript()));
        assert!(status.unwrap().success());
    }

    /// What the guest's agent answers.
    pub(crate) async fn agent(&self, request: &str) -> String {
        let mut agent = UnixStream::connect(self.folder.join("agent")).await.unwrap();
        agent.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\n") {
            let read = tokio::io::AsyncReadExt::read_buf(&mut agent, &mut answer);
            assert!(tokio::time::timeout(PATIENCE, read).await.expect("no answer").unwrap() > 0);
        }
        String::from_utf8(answer).unwrap()
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        let _ = self.process.start_kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
