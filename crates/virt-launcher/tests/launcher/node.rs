//! Pods of a virtual machine, each with its folders and a launcher.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use clap::Parser;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::Domain;
use kubevirt_launcher_rpc::cmd::cmd_client::CmdClient;
use kubevirt_launcher_rpc::cmd::{ExecRequest, MigrationRequest, Response, Vmi, VmiRequest};
use kubevirt_launcher_rpc::migration::{MigrationOptions, SOCKETS, Stream};
use kubevirt_launcher_rpc::{LAUNCHER_SOCKET, NOTIFY_SOCKET, connect};
use kubevirt_virt_launcher::Arguments;
use serde_json::{Value, json};
use tonic::transport::Channel;

use crate::handler::{Ear, PATIENCE};
use crate::proxy::hang_up_at_answer;

/// UID of the machine.
pub(crate) const UID: &str = "ad002f99-0cb6-4989-8b96-908c2c933bf7";

/// A folder that goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("launcher-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A pod with a launcher, as its handler sees it.
pub(crate) struct Pod {
    pub(crate) folder: PathBuf,
    pub(crate) ear: Ear,
    pub(crate) client: CmdClient<Channel>,
    life: Option<JoinHandle<ExitCode>>,
}

impl Pod {
    /// Starts a launcher in a folder of its own.
    pub(crate) async fn start(folder: &Folder, name: &str) -> Self {
        let folder = folder.0.join(name);
        let path = |name: &str| folder.join(name).display().to_string();
        for name in ["share", "private", "ephemeral/empty-disks", "images/kernel-boot"] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        let ear = Ear::at(&folder.join("share").join(NOTIFY_SOCKET));
        let (share, private, ephemeral, images) =
            (path("share"), path("private"), path("ephemeral"), path("images"));
        #[rustfmt::skip]
        let line = [
            "virt-launcher", "--name", "web", "--namespace", "default", "--uid", UID, "--allow-emulation",
            "--kubevirt-share-dir", &share, "--private-dir", &private, "--ephemeral-disk-dir", &ephemeral,
            "--container-disk-dir", &images, "--grace-period-seconds", "5",
        ];
        let arguments = Arguments::try_parse_from(line).unwrap();
        let life = std::thread::spawn(move || kubevirt_virt_launcher::run(arguments));
        let socket = folder.join("share/sockets").join(LAUNCHER_SOCKET);
        let connected = tokio::time::timeout(PATIENCE, async {
            loop {
                match connect::launcher(&socket).await {
                    Ok(client) => return client,
                    Err(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
                }
            }
        });
        Self { ear, client: connected.await.unwrap(), folder, life: Some(life) }
    }

    /// Puts the kernel and the files of the small guest where a container image would have them.
    pub(crate) fn put_kernel(&self) {
        let guest = test_guest::artifacts(test_guest::Flavour::Cloud).unwrap();
        let place = self.folder.join("images/kernel-boot");
        std::fs::copy(guest.kernel, place.join("vmlinuz")).unwrap();
        std::fs::copy(guest.initrd, place.join("initrd")).unwrap();
    }

    /// Makes a scratch disk.
    pub(crate) fn put_disk(&self, name: &str) {
        let file = self.folder.join(format!("ephemeral/empty-disks/{name}.qcow2"));
        let mut image = std::process::Command::new("qemu-img");
        image.args(["create", "-q", "-f", "qcow2"]).arg(file).arg("64M");
        assert!(image.status().unwrap().success());
    }

    /// Makes a claim full of a byte, and the layer over it that takes the guest's writes.
    pub(crate) fn put_layers(&self, name: &str) {
        let (claim, layer) = (self.folder.join("private/vmi-disks"), self.folder.join("ephemeral/disk-data"));
        for folder in [&claim, &layer] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        let (claim, layer) = (claim.join(name).join("disk.img"), layer.join(name).join("disk.qcow2"));
        std::fs::write(&claim, vec![7; 8 << 20]).unwrap();
        let mut image = std::process::Command::new("qemu-img");
        image.args(["create", "-q", "-f", "qcow2", "-F", "raw", "-b"]).arg(claim).arg(layer);
        assert!(image.status().unwrap().success());
    }

    /// Puts a disk in place that all pods of the test share.
    pub(crate) fn put_shared_disk(&self, name: &str) {
        let shared = self.folder.with_file_name("shared.img");
        if !shared.exists() {
            std::fs::write(&shared, vec![0; 1 << 20]).unwrap();
        }
        let place = self.folder.join("private/vmi-disks").join(name);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::hard_link(shared, place.join("disk.img")).unwrap();
    }

    /// Lets this pod reach another, as the handlers of their nodes would.
    pub(crate) fn connect_to(&self, target: &Self) {
        let folder = self.folder.join("share").join(SOCKETS);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder).unwrap();
        for stream in [Stream::Control, Stream::Memory, Stream::Disks] {
            let socket = |pod: &Self| stream.socket(&pod.folder.join("share"), UID);
            std::os::unix::fs::symlink(socket(target), socket(self)).unwrap();
        }
    }

    /// The same, but the connection of the launchers fails instead of an answer of the target.
    pub(crate) fn connect_badly_to(&self, target: &Self, answer: u32, recovers: bool) {
        self.connect_to(target);
        let socket = |pod: &Self| Stream::Control.socket(&pod.folder.join("share"), UID);
        std::fs::remove_file(socket(self)).unwrap();
        hang_up_at_answer(socket(self), socket(target), answer, recovers);
    }

    /// Starts the machine.
    pub(crate) async fn sync(&mut self, vmi: &Value) {
        accepted(self.client.sync_virtual_machine(request(vmi)).await);
    }

    /// Gets ready for the machine.
    pub(crate) async fn prepare(&mut self, vmi: &Value) {
        accepted(self.client.sync_migration_target(request(vmi)).await);
    }

    /// Begins to move the machine.
    pub(crate) async fn migrate(&mut self, vmi: &Value, options: &MigrationOptions) {
        accepted(self.try_migrate(vmi, options).await);
    }

    pub(crate) async fn try_migrate(
        &mut self,
        vmi: &Value,
        options: &MigrationOptions,
    ) -> Result<tonic::Response<Response>, tonic::Status> {
        let options = serde_json::to_vec(options).unwrap();
        let vmi = request(vmi).vmi;
        self.client.migrate_virtual_machine(MigrationRequest { vmi, options }).await
    }

    /// The machine as it was last told.
    pub(crate) fn domain(&self) -> Domain {
        self.ear.reports().into_iter().rev().find_map(|report| report.spec).unwrap()
    }

    /// Waits for the guest's agent.
    pub(crate) async fn agent(&self) {
        self.ear.hear("the guest agent", |report| report.status.agent_connected).await;
    }

    /// What a shell in the guest prints.
    pub(crate) async fn shell(&mut self, script: &str) -> String {
        let request = ExecRequest {
            domain_name: "default_web".into(),
            command: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            timeout_seconds: i32::try_from(PATIENCE.as_secs()).unwrap(),
        };
        let answer = self.client.exec(request).await.unwrap().into_inner();
        assert!(answer.response.as_ref().is_some_and(|response| response.success), "{script}: {answer:?}");
        assert_eq!(answer.exit_code, 0, "{script}: {answer:?}");
        answer.std_out.trim().to_owned()
    }

    /// All that the guest has said on its serial console here.
    pub(crate) fn console(&self) -> String {
        let log = self.domain().devices.console.unwrap().log.unwrap();
        String::from_utf8_lossy(&std::fs::read(log).unwrap()).replace('\r', "")
    }

    /// The id of this pod's QEMU.
    fn qemu(&self) -> Option<String> {
        let ours = |process: &Path| {
            let line = std::fs::read_to_string(process.join("cmdline")).unwrap_or_default();
            line.contains("qemu-system") && line.contains(&*self.folder.to_string_lossy())
        };
        let mut processes = std::fs::read_dir("/proc").ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        let process = processes.find(|process| ours(process))?;
        Some(process.file_name()?.to_str()?.to_owned())
    }

    /// Kills its QEMU.
    pub(crate) fn kill_qemu(&self) {
        kill(&self.qemu().expect("there is a QEMU"));
    }

    /// Waits for the launcher's end; whether its pod succeeded.
    pub(crate) async fn succeeded(mut self) -> bool {
        let life = self.life.take().unwrap();
        let ended = tokio::task::spawn_blocking(|| life.join().unwrap());
        let code = tokio::time::timeout(PATIENCE, ended).await.expect("the launcher does not end").unwrap();
        format!("{code:?}") == format!("{:?}", ExitCode::SUCCESS)
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        // A test that failed leaves no QEMU behind.
        if let Some(qemu) = self.qemu() {
            kill(&qemu);
        }
    }
}

fn kill(process: &str) {
    let _ = std::process::Command::new("kill").args(["-9", process]).status();
}

/// A request for the machine.
pub(crate) fn request(vmi: &Value) -> VmiRequest {
    VmiRequest { vmi: Some(Vmi { vmi_json: serde_json::to_vec(vmi).unwrap() }), options: None }
}

/// The command was carried out.
#[track_caller]
pub(crate) fn accepted(response: Result<tonic::Response<Response>, tonic::Status>) {
    let response = response.unwrap().into_inner();
    assert!(response.success, "{}", response.message);
}

/// Why the command was not carried out.
#[track_caller]
pub(crate) fn refused(response: Result<tonic::Response<Response>, tonic::Status>) -> String {
    let response = response.unwrap().into_inner();
    assert!(!response.success);
    response.message
}

/// A machine without anything to boot, which idles in its firmware.
pub(crate) fn idle() -> Value {
    vmi(json!({
        "domain": { "memory": { "guest": "64Mi" }, "devices": { "autoattachPodInterface": false } },
    }))
}

/// The same with a disk that is not copied.
pub(crate) fn idle_on_shared_disk() -> Value {
    let mut vmi = idle();
    let source = json!({ "path": "/somewhere/disk.img", "type": "Disk", "shared": true });
    vmi["spec"]["domain"]["devices"]["disks"] = json!([{ "name": "shared", "disk": { "bus": "virtio" } }]);
    vmi["spec"]["volumes"] = json!([{ "name": "shared", "hostDisk": source }]);
    vmi
}

/// A machine with the small guest.
pub(crate) fn guest(volumes: &[(&str, Value)]) -> Value {
    let disks: Vec<Value> =
        volumes.iter().map(|(name, _)| json!({ "name": name, "disk": { "bus": "virtio" } })).collect();
    let volumes: Vec<Value> = volumes
        .iter()
        .map(|(name, source)| {
            let mut volume = source.clone();
            volume["name"] = json!(name);
            volume
        })
        .collect();
    vmi(json!({
        "domain": {
            "memory": { "guest": "256Mi" },
            "firmware": { "kernelBoot": {
                "kernelArgs": format!("{} guest.data=/dev/vda", test_guest::COMMAND_LINE),
                "container": { "image": "guest", "kernelPath": "/vmlinuz", "initrdPath": "/initrd" },
            } },
            "devices": { "disks": disks, "autoattachPodInterface": false },
        },
        "volumes": volumes,
    }))
}

fn vmi(spec: Value) -> Value {
    let vmi = json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": { "name": "web", "namespace": "default", "uid": UID },
        "spec": spec,
    });
    // It must be one that the launcher understands.
    serde_json::from_value::<VirtualMachineInstance>(vmi.clone()).unwrap();
    vmi
}

/// The machine, as it is told of once it is to be moved.
pub(crate) fn moving(vmi: &Value, migration: &str) -> Value {
    let mut vmi = vmi.clone();
    vmi["status"] = json!({
        "migrationMethod": "BlockMigration",
        "migrationTransport": "Unix",
        "migrationState": { "migrationUid": migration, "targetPod": "pod-b" },
    });
    vmi
}
