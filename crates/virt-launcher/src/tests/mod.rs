//! A launcher around a real QEMU without a guest, and a real agent that looks at this machine.

mod agent;
mod backup;
mod dismissal;
mod machine;

use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use clap::Parser;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::domain::disk::Location;
use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::cmd::VirtualMachineOptions;
use kubevirt_launcher_rpc::report::State;
use kubevirt_qemu::process::Launch;
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{sleep, timeout};

use crate::arguments::Arguments;
use crate::board::Notice;
use crate::launcher::Launcher;
use crate::running::Running;

/// How long anything may take on a machine with other things to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// A launcher whose machine runs.
struct Bench {
    folder: PathBuf,
    launcher: Arc<Launcher>,
    running: Arc<Running>,
    notices: UnboundedReceiver<Notice>,
    ga: Option<Child>,
}

impl Bench {
    /// Starts a machine with a disk and a balloon but nothing that would boot.
    async fn start() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("kubevirt-bench-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let private = folder.to_str().unwrap();
        let line = format!(
            "virt-launcher --name web --namespace default --uid u1 --use-emulation --private-dir {private} \
             --kubevirt-share-dir {private} --ephemeral-disk-dir {private}"
        );
        let arguments = Arguments::try_parse_from(line.split_whitespace()).unwrap();
        let (launcher, notices) = Launcher::new(arguments);
        let vmi = vmi();
        launcher.remember(&vmi);
        let mut domain = launcher
            .describe(&vmi, &VirtualMachineOptions::default(), crate::volumes::Purpose::Start)
            .await
            .unwrap();
        for channel in &mut domain.devices.channels {
            channel.socket = folder.join("ga.sock").to_str().unwrap().to_owned();
        }
        let image = folder.join("root.qcow2");
        for disk in domain.disks.iter_mut().filter_map(|disk| disk.image.as_mut()) {
            // So its changes are tracked.
            disk.data = Some(Location::File(image.to_str().unwrap().to_owned()));
        }
        let made =
            Command::new("qemu-img").args(["create", "-q", "-f", "qcow2"]).arg(&image).arg("4M").status();
        assert!(made.unwrap().success());
        // It can be made slow.
        let file = json!({ "driver": "file", "filename": image });
        let file = json!({ "driver": "throttle", "throttle-group": "brake", "file": file });
        let blocks = json!({ "driver": "qcow2", "node-name": "v-root", "file": file }).to_string();
        let arguments = [
            "-machine",
            "q35",
            "-accel",
            "tcg",
            "-m",
            "16",
            "-nodefaults",
            "-display",
            "none",
            "-device",
            "virtio-balloon-pci,id=balloon0",
            "-object",
            "throttle-group,id=brake",
            "-blockdev",
            &blocks,
            "-device",
            "virtio-blk-pci,drive=v-root,id=disk-root",
        ];
        let launch = Launch {
            program: "qemu-system-x86_64".into(),
            arguments: arguments.map(Into::into).to_vec(),
            ..Launch::default()
        };
        let (process, machine) = launch.start().await.unwrap();
        let running = Arc::new(Running::new(process, machine, domain, Vec::new()));
        launcher.set_running(Some(running.clone()));
        launcher.board.change_status(|status| status.status = State::Running);
        Self { folder, launcher, running, notices, ga: None }
    }

    /// Starts an agent and tells the launcher that it came.
    async fn connect_agent(&mut self) {
        let socket = self.folder.join("ga.sock");
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin";
        let child = Command::new("qemu-ga")
            .env("PATH", path)
            .args(["-m", "unix-listen", "-b", agent::FORBIDDEN, "-t"])
            .arg(&self.folder)
            .arg("-f")
            .arg(self.folder.join("ga.pid"))
            .arg("-p")
            .arg(&socket)
            .spawn()
            .unwrap();
        self.ga = Some(child);
        let listens = async {
            while !socket.exists() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, listens).await.unwrap();
        self.launcher.agent_came_or_went(&self.running, true);
    }

    /// Waits until the report is as it should be.
    async fn until(&self, what: impl FnMut(&DomainReport) -> bool) -> DomainReport {
        let mut reports = self.launcher.board.follow();
        timeout(PATIENCE, reports.wait_for(what)).await.unwrap().unwrap().clone()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(ga) = &mut self.ga {
            let _ = ga.kill();
            let _ = ga.wait();
        }
        self.running.process.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn vmi() -> VirtualMachineInstance {
    let vmi = json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": { "name": "web", "namespace": "default", "uid": "u1" },
        "spec": {
            "domain": {
                "resources": { "requests": { "memory": "16Mi" } },
                "devices": { "disks": [{ "name": "root", "disk": { "bus": "virtio" } }] },
            },
            "volumes": [{ "name": "root", "emptyDisk": { "capacity": "4Mi" } }],
            "accessCredentials": [{ "userPassword": {
                "source": { "secret": { "secretName": "words" } }, "propagationMethod": { "qemuGuestAgent": {} },
            }}],
        },
    });
    serde_json::from_value(vmi).unwrap()
}
