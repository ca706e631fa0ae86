//! Booting the small guest.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kubevirt_qemu::agent::Exec;
use kubevirt_qemu::process::Launch;
use kubevirt_qemu::qmp::{Event, Events, Limits};
use kubevirt_qemu::{Agent, Machine, Process};

use test_guest::{COMMAND_LINE, Flavour, artifacts};

/// The longest that any step may take; generous, for busy machines.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Guest {
    pub(crate) folder: PathBuf,
    pub(crate) process: Process,
    pub(crate) machine: Machine,
    pub(crate) agent: Agent,
    pub(crate) events: Events,
}

impl Guest {
    /// Boots and returns once the guest's agent is there.
    pub(crate) async fn boot(arguments: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("kubevirt-guest-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let guest = tokio::task::spawn_blocking(|| artifacts(Flavour::Cloud)).await.unwrap().unwrap();
        let command_line = format!("{COMMAND_LINE} guest.data=/dev/vda");
        let disk = folder.join("disk.raw");
        std::fs::write(&disk, vec![0; 4 << 20]).unwrap();
        let socket = folder.join("agent.sock");

        let agent = format!("socket,id=agent,path={},server=on,wait=off", socket.display());
        let drive = format!("driver=file,node-name=disk,filename={}", disk.display());
        let base: [&str; 24] = [
            "-accel",
            "tcg",
            "-nodefaults",
            "-display",
            "none",
            "-machine",
            "q35",
            "-cpu",
            "max",
            "-kernel",
            guest.kernel.to_str().unwrap(),
            "-initrd",
            guest.initrd.to_str().unwrap(),
            "-append",
            &command_line,
            "-serial",
            "file:/dev/stdout",
            "-blockdev",
            &drive,
            "-device",
            "virtio-blk-pci,drive=disk",
            "-chardev",
            &agent,
            "-no-reboot",
        ];
        let port = ["-device", "virtio-serial-pci", "-device"];
        let port =
            port.into_iter().chain(["virtserialport,chardev=agent,name=org.qemu.guest_agent.0,id=agent"]);
        let launch = Launch {
            program: "qemu-system-x86_64".into(),
            arguments: base
                .into_iter()
                .chain(port)
                .chain(arguments.iter().copied())
                .map(Into::into)
                .collect(),
            limits: Limits { reply: PATIENCE, ..Limits::default() },
            ..Launch::default()
        };
        let (process, machine) = launch.start().await.unwrap();
        let events = machine.events();
        machine.resume().await.unwrap();
        let agent = Agent::at(&socket).patient(PATIENCE);
        let mut guest = Self { folder, process, machine, agent, events };
        let up = guest.wait_for(|event| match event {
            Event::SerialPortChange { id, open: true } if id == "agent" => Some(()),
            _ => None,
        });
        up.await;
        guest
    }

    /// Waits for the event that answers.
    pub(crate) async fn wait_for<T>(&mut self, answer: impl Fn(&Event) -> Option<T>) -> T {
        let waiting = async {
            while let Some(happened) = self.events.next().await {
                if let Some(answer) = answer(&happened.event) {
                    return answer;
                }
            }
            panic!("QEMU is gone: {}", self.process.exited().await);
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(answer) => answer,
            Err(_) => panic!("nothing came of it: {:#?}", self.process.output()),
        }
    }

    /// What a shell in the guest prints.
    pub(crate) async fn shell(&self, script: &str) -> String {
        let arguments = vec!["-c".to_owned(), script.to_owned()];
        let program = Exec { path: "/bin/sh".to_owned(), arguments, ..Exec::default() };
        let status = self.agent.exec(&program, PATIENCE).await.unwrap();
        assert_eq!(status.code, Some(0), "{script}: {}", String::from_utf8_lossy(&status.stderr));
        String::from_utf8(status.stdout).unwrap().trim().to_owned()
    }

    /// Asks the guest until it prints what is expected.
    pub(crate) async fn until(&self, script: &str, expected: &str) {
        let mut said = String::new();
        for _ in 0..600 {
            said = self.shell(script).await;
            if said == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{script} says {said:?}, not {expected:?}");
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
