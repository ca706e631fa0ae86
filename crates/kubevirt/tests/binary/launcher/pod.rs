//! A launcher's pod: the real program, unprivileged, first process of its own namespaces.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use kubevirt_launcher_rpc::cmd::cmd_client::CmdClient;
use kubevirt_launcher_rpc::cmd::{
    self, EmptyRequest, ExecRequest, MigrationRequest, VirtualMachineOptions, VmiRequest,
};
use kubevirt_launcher_rpc::migration::{MigrationOptions, SOCKETS, Stream};
use kubevirt_launcher_rpc::report::{Reason, State};
use kubevirt_launcher_rpc::{DomainReport, connect};
use serde_json::{Value, json};
use test_guest::{Artifacts, Console, Flavour};
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, SemaphorePermit};
use tonic::transport::Channel;

use super::handler::{Handler, PATIENCE};
use super::proxy::{Slow, hang_up_at_answer};

/// The user that launchers run as.
pub(crate) const USER: u32 = 107;

/// The UID of every test's VMI.
pub(crate) const UID: &str = "3f1c9a52-6c0e-4d3b-9d9e-2f6d3a1b7c44";

/// The UID of every test's pod.
pub(crate) const POD: &str = "b2a71875-905e-4c4b-92ba-e84018b91d3e";

/// At most two guests at once: they are emulated.
pub(crate) static GUESTS: Semaphore = Semaphore::const_new(2);

/// A pod with a launcher in it, and a handler that listens to it.
pub(crate) struct Pod {
    folder: PathBuf,
    child: Child,
    network: Child,
    flavour: Flavour,
    commands: Option<CmdClient<Channel>>,
    pub(crate) handler: Option<Handler>,
    pub(crate) options: VirtualMachineOptions,
    _place: Option<SemaphorePermit<'static>>,
}

/// How a pod differs from the usual.
#[derive(Default)]
pub(crate) struct Settings {
    /// Further flags of the launcher.
    pub(crate) flags: Vec<&'static str>,
    /// No handler listens at first.
    pub(crate) no_handler: bool,
    /// The guest with all drivers.
    pub(crate) all_drivers: bool,
    /// Runs in the pod's mount namespace before the launcher, in the pod's folder.
    pub(crate) set_up: String,
    /// What the launcher may do beyond the usual.
    pub(crate) capabilities: Vec<&'static str>,
    /// Whoever starts it has a place for its guest already.
    pub(crate) has_place: bool,
    /// A memory cgroup to run in.
    pub(crate) cgroup: Option<PathBuf>,
    /// Folders lie where a kubelet has them.
    pub(crate) like_kubelet: bool,
}

impl Pod {
    /// Starts a launcher and waits until it is ready for commands.
    pub(crate) async fn start() -> Self {
        Self::with(Settings::default()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        let place = if settings.has_place { None } else { Some(GUESTS.acquire().await.unwrap()) };
        let folder = new_folder(settings.like_kubelet);
        let network = sleeper();
        let mut pod = Self {
            child: launch(&folder, network.id().unwrap(), &settings),
            folder,
            network,
            flavour: if settings.all_drivers { Flavour::Full } else { Flavour::Cloud },
            commands: None,
            handler: None,
            options: VirtualMachineOptions::default(),
            _place: place,
        };
        if !settings.no_handler {
            pod.handler = Some(Handler::listen(&pod.share().join(kubevirt_launcher_rpc::NOTIFY_SOCKET)));
        }
        pod.connect().await;
        pod
    }

    async fn connect(&mut self) {
        let socket = self.share().join("sockets").join(kubevirt_launcher_rpc::LAUNCHER_SOCKET);
        let connected = tokio::time::timeout(PATIENCE, async {
            loop {
                if let Ok(commands) = connect::launcher(&socket).await {
                    return commands;
                }
                if let Some(status) = self.child.try_wait().unwrap() {
                    panic!("the launcher ended: {status}\n{}", self.log());
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        });
        self.commands = Some(connected.await.expect("the launcher gets ready"));
    }

    /// Folder that handler and launcher share.
    pub(crate) fn share(&self) -> PathBuf {
        self.folder.join("share")
    }

    /// The kubelet's folder of pods, if this one is like it.
    pub(crate) fn pods(&self) -> PathBuf {
        self.folder.join("pods")
    }

    /// A folder for handlers.
    pub(crate) fn records(&self) -> PathBuf {
        self.folder.join("records")
    }

    /// Folder of the launcher alone.
    pub(crate) fn private(&self) -> PathBuf {
        self.folder.join("private")
    }

    /// A process in the pod's network.
    pub(crate) fn network(&self) -> u32 {
        self.network.id().unwrap()
    }

    /// The launcher, as the host numbers it.
    pub(crate) fn launcher(&self) -> u32 {
        child_of(self.child.id().unwrap()).expect("the launcher runs")
    }

    /// Its QEMU, as the host numbers it.
    pub(crate) fn qemu(&self) -> u32 {
        children_of(self.launcher())
            .into_iter()
            .find(|pid| {
                std::fs::read_to_string(format!("/proc/{pid}/comm"))
                    .is_ok_and(|name| name.starts_with("qemu-"))
            })
            .expect("QEMU runs")
    }

    /// Puts the guest's disk where the handler would have mounted a container disk.
    pub(crate) fn container_disk(&self, index: usize) {
        self.place(&self.guest().disk, &self.share().join(format!("container-disks/disk_{index}.img")));
    }

    /// Puts the guest's kernel where the handler would have mounted it.
    pub(crate) fn kernel_boot(&self) {
        for (file, name) in [(&self.guest().kernel, "vmlinuz"), (&self.guest().initrd, "initrd")] {
            self.place(file, &self.share().join("container-disks/kernel-boot").join(name));
        }
    }

    /// The files of the guest.
    pub(crate) fn guest(&self) -> Artifacts {
        test_guest::artifacts(self.flavour).unwrap()
    }

    fn place(&self, file: &Path, at: &Path) {
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::copy(file, at).unwrap();
        std::fs::set_permissions(at, PermissionsExt::from_mode(0o444)).unwrap();
    }

    /// A file of the launcher's user.
    pub(crate) fn write(&self, path: &Path, content: &[u8]) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self.own(path);
    }

    /// Gives what is there, and the folders that it is in, to the launcher's user.
    pub(crate) fn own(&self, path: &Path) {
        for own in path.ancestors().take_while(|own| own.starts_with(&self.folder) && **own != self.folder) {
            chown(own, Some(USER), Some(USER)).unwrap();
        }
    }

    /// Puts a disk in place that pods of a test share.
    pub(crate) fn shared_disk(&self, file: &Path, name: &str) {
        let place = self.private().join("vmi-disks").join(name);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::hard_link(file, place.join("disk.img")).unwrap();
        self.own(&place.join("disk.img"));
    }

    /// Lets this pod reach another, as the handlers of their nodes would.
    pub(crate) fn connect_to(&self, target: &Self) {
        let folder = self.share().join(SOCKETS);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        for stream in [Stream::Control, Stream::Memory, Stream::Disks] {
            let socket = |pod: &Self| stream.socket(&pod.share(), UID);
            std::os::unix::fs::symlink(socket(target), socket(self)).unwrap();
        }
        self.own(&folder);
    }

    /// The same, but the connection of the launchers fails instead of an answer of the target.
    pub(crate) fn connect_badly_to(&self, target: &Self, answer: u32, recovers: bool) {
        self.connect_to(target);
        let socket = |pod: &Self| Stream::Control.socket(&pod.share(), UID);
        std::fs::remove_file(socket(self)).unwrap();
        hang_up_at_answer(socket(self), socket(target), answer, recovers);
        self.own(&socket(self));
    }

    /// The same, but memory moves slowly and over a connection that can break.
    pub(crate) fn connect_slowly_to(&self, target: &Self) -> Slow {
        self.connect_to(target);
        let socket = |pod: &Self| Stream::Memory.socket(&pod.share(), UID);
        std::fs::remove_file(socket(self)).unwrap();
        let slow = Slow::between(socket(self), socket(target));
        self.own(&socket(self));
        slow
    }

    /// Gets ready for a machine from another pod.
    pub(crate) async fn prepare(&self, vmi: &Value) {
        told(self.commands().sync_migration_target(self.request(vmi)).await).unwrap();
    }

    /// Begins to move the machine.
    pub(crate) async fn migrate(&self, vmi: &Value, options: &MigrationOptions) -> Result<(), String> {
        let options = serde_json::to_vec(options).unwrap();
        let vmi = self.request(vmi).vmi;
        told(self.commands().migrate_virtual_machine(MigrationRequest { vmi, options }).await)
    }

    /// Ends the machine at once, and the launcher with it.
    pub(crate) async fn kill(&mut self) {
        self.call(|mut launcher, vmi| async move { launcher.kill_virtual_machine(vmi).await }).await.unwrap();
        assert_eq!(self.exit_code().await, 0);
    }

    /// What a shell in the guest prints, by its agent.
    pub(crate) async fn shell(&self, script: &str) -> String {
        let request = ExecRequest {
            domain_name: "default_web".into(),
            command: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            timeout_seconds: i32::try_from(PATIENCE.as_secs()).unwrap(),
        };
        let answer = self.commands().exec(request).await.unwrap().into_inner();
        assert!(answer.response.as_ref().is_some_and(|response| response.success), "{script}: {answer:?}");
        assert_eq!(answer.exit_code, 0, "{script}: {answer:?}");
        answer.std_out.trim().to_owned()
    }

    /// All that the guest has said on its serial console here.
    pub(crate) fn transcript(&self) -> String {
        let reports = self.handler.as_ref().unwrap().heard.all();
        let domain = reports.into_iter().rev().find_map(|report| report.spec).unwrap();
        let log = domain.devices.console.unwrap().log.unwrap();
        String::from_utf8_lossy(&std::fs::read(log).unwrap()).replace('\r', "")
    }

    fn commands(&self) -> CmdClient<Channel> {
        self.commands.clone().unwrap()
    }

    fn request(&self, vmi: &Value) -> VmiRequest {
        let vmi_json = serde_json::to_vec(vmi).unwrap();
        VmiRequest {
            vmi: Some(cmd::Vmi { vmi_json }),
            options: Some(self.options.clone()),
            ..VmiRequest::default()
        }
    }

    /// Asks for the machine.
    pub(crate) async fn sync(&self, vmi: &Value) -> Result<(), String> {
        told(self.commands().sync_virtual_machine(self.request(vmi)).await)
    }

    /// Asks for the machine and waits for its login prompt.
    pub(crate) async fn boot(&self, vmi: &Value) -> Console {
        if let Err(error) = self.sync(vmi).await {
            panic!("{error}\n{}", self.log());
        }
        let mut console = self.console().await;
        if let Err(error) = console.login("root", "root").await {
            panic!("{error}\n{}", self.log());
        }
        console
    }

    /// The serial console.
    pub(crate) async fn console(&self) -> Console {
        Console::connect(&self.socket("virt-serial0")).await.unwrap().patient(PATIENCE)
    }

    /// Calls a command that takes no more than the VMI.
    pub(crate) async fn call<F, Fut>(&self, command: F) -> Result<(), String>
    where
        F: FnOnce(CmdClient<Channel>, VmiRequest) -> Fut,
        Fut: Future<Output = Result<tonic::Response<cmd::Response>, tonic::Status>>,
    {
        told(command(self.commands(), self.request(&vmi(json!({})))).await)
    }

    /// The commands themselves.
    pub(crate) fn client(&self) -> CmdClient<Channel> {
        self.commands()
    }

    /// What the launcher says of its domain.
    pub(crate) async fn domain(&self) -> Option<DomainReport> {
        let answer = self.commands().get_domain(EmptyRequest {}).await.unwrap().into_inner();
        assert!(answer.response.unwrap().success);
        (!answer.domain.is_empty()).then(|| serde_json::from_str(&answer.domain).unwrap())
    }

    /// Waits until the handler heard of a state.
    pub(crate) async fn wait_for(&self, state: State) -> DomainReport {
        self.hear(&format!("{state:?}"), |report| report.status.status == state).await
    }

    /// Waits until the handler heard of a state for a reason.
    pub(crate) async fn wait_for_reason(&self, state: State, reason: Reason) -> DomainReport {
        let wanted = (state, reason);
        self.hear(&format!("{wanted:?}"), |report| (report.status.status, report.status.reason) == wanted)
            .await
    }

    /// Waits until the handler heard what the test wants to see.
    pub(crate) async fn hear(&self, what: &str, wanted: impl Fn(&DomainReport) -> bool) -> DomainReport {
        self.handler.as_ref().expect("a handler listens").heard.wait(what, wanted).await
    }

    /// A socket of the machine, such as its VNC server's.
    pub(crate) fn socket(&self, name: &str) -> PathBuf {
        self.private().join(UID).join(name)
    }

    /// Sends a signal to the launcher.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        send_signal(self.launcher(), signal);
    }

    /// Waits for the launcher's end and returns its exit code.
    pub(crate) async fn exit_code(&mut self) -> i32 {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let status = ended.expect("the launcher ends").unwrap();
        status.code().unwrap_or(-1)
    }

    /// What the launcher logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        // Killing the first process of a PID namespace ends all of them.
        if let Some(launcher) = self.child.id().and_then(child_of) {
            send_signal(launcher, rustix::process::Signal::KILL);
        }
        if std::thread::panicking() {
            eprintln!("the launcher's log:\n{}", self.log());
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A VMI with the guest's container disk, changed by a merge patch.
pub(crate) fn vmi(patch: Value) -> Value {
    let mut vmi = json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": { "name": "web", "namespace": "default", "uid": UID },
        "spec": {
            "terminationGracePeriodSeconds": 30,
            "domain": {
                "cpu": { "cores": 1 },
                "memory": { "guest": "192Mi" },
                "devices": {
                    "disks": [{ "name": "root", "disk": { "bus": "virtio" } }],
                },
            },
            "volumes": [{ "name": "root", "containerDisk": { "image": "guest" } }],
        },
        "status": {},
    });
    json_patch::merge(&mut vmi, &patch);
    vmi
}

pub(crate) fn told(answer: Result<tonic::Response<cmd::Response>, tonic::Status>) -> Result<(), String> {
    let answer = answer.map_err(|status| format!("the call failed: {status}"))?.into_inner();
    if answer.success { Ok(()) } else { Err(answer.message) }
}

pub(crate) fn send_signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    let _ = rustix::process::kill_process(pid, signal);
}

fn new_folder(like_kubelet: bool) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("kubevirt-pod-{}-{number}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    if like_kubelet {
        // The launcher's paths are short, as they are in its container.
        let volumes = folder.join(format!("pods/{POD}/volumes/kubernetes.io~empty-dir"));
        std::fs::create_dir_all(volumes.join("public")).unwrap();
        std::fs::create_dir_all(volumes.join("sockets")).unwrap();
        std::os::unix::fs::symlink(volumes.join("public"), folder.join("share")).unwrap();
        std::os::unix::fs::symlink(volumes.join("sockets"), volumes.join("public/sockets")).unwrap();
    }
    for name in ["", "share", "share/sockets", "share/container-disks", "private", "ephemeral"] {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        chown(&folder, Some(USER), Some(USER)).unwrap();
    }
    folder
}

/// Puts the program where an unprivileged user can read it: a link, so that all pods share its pages.
fn program(folder: &Path) -> PathBuf {
    let shipped =
        std::env::var_os("KUBEVIRT_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_kubevirt").into());
    let program = folder.join("virt-launcher");
    if std::fs::hard_link(&shipped, &program).is_err() {
        std::fs::copy(&shipped, &program).unwrap();
    }
    program
}

/// A process that keeps a network namespace; it has one of its own when this returns.
pub(crate) fn sleeper() -> Child {
    let mut command = Command::new("unshare");
    command.args(["--net", "--kill-child", "sleep", "infinity"]);
    let child = command.kill_on_drop(true).spawn().unwrap();
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).unwrap();
    let began = std::time::Instant::now();
    while namespace(&child.id().unwrap().to_string()) == namespace("self") {
        assert!(began.elapsed() < PATIENCE, "there is no new network namespace");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child
}

/// Runs the launcher as a container runtime would: without privileges, as the first of its PID namespace.
fn launch(folder: &Path, network: u32, settings: &Settings) -> Child {
    let log = std::fs::File::create(folder.join("log")).unwrap();
    let cgroup = settings.cgroup.as_ref().map(|cgroup| format!("echo $$ >{}/cgroup.procs", cgroup.display()));
    let script =
        format!("{}\ncd {}\n{}\nexec \"$@\"", cgroup.unwrap_or_default(), folder.display(), settings.set_up);
    let capabilities = ["-all", "+net_bind_service"].iter().chain(&settings.capabilities);
    let capabilities = capabilities.copied().collect::<Vec<_>>().join(",");
    let mut command = Command::new("nsenter");
    command
        .arg(format!("--net=/proc/{network}/ns/net"))
        .args([
            "unshare",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-ec",
            &script,
            "sh",
            "setpriv",
        ])
        .args(["--reuid", "107", "--regid", "107", "--clear-groups", "--no-new-privs"])
        .args(["bounding-set", "inh-caps", "ambient-caps"].map(|set| format!("--{set}={capabilities}")))
        .arg(program(folder))
        .args(["--name", "web", "--namespace", "default", "--uid", UID, "--qemu-timeout", "5m"])
        .args(["--grace-period-seconds", "60", "--hook-sidecars", "0", "--use-emulation"])
        .args(["--ovmf-path", "/usr/share/OVMF"]);
    for (flag, name) in [
        ("--kubevirt-share-dir", "share"),
        ("--private-dir", "private"),
        ("--ephemeral-disk-dir", "ephemeral"),
        ("--container-disk-dir", "share/container-disks"),
        ("--hotplug-disk-dir", "share/hotplug-disks"),
    ] {
        command.arg(flag).arg(folder.join(name));
    }
    command.args(&settings.flags).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    command.kill_on_drop(true).spawn().unwrap()
}

fn children_of(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn child_of(pid: u32) -> Option<u32> {
    children_of(pid).first().copied()
}
