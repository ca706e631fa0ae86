//! What is known of the host and of its QEMU, asked once.

mod cpu;

use std::io;
use std::path::{Path, PathBuf};

use kubevirt_domain::QemuFacts;
use kubevirt_domain::domain::Architecture;
use kubevirt_domain::facts::HostCpu;
use kubevirt_host::kvm::{self, Accelerator, Kvm, NoAccelerator};
use kubevirt_launcher_rpc::qemu::{ProgramFile, QemuAnswers};
use kubevirt_qemu::process::{Launch, StartError, program as programs};
use kubevirt_qemu::qmp::QmpError;
use tokio::sync::OnceCell;

use crate::arguments::Arguments;
use crate::orphans;

/// What is known of the host.
pub struct Host {
    /// Architecture of the host.
    pub(crate) architecture: Architecture,
    told: OnceCell<Told>,
    kvm: OnceCell<Kvm>,
    allow_emulation: bool,
    use_emulation: bool,
    firmware: PathBuf,
}

/// What QEMU tells.
#[derive(Clone)]
struct Told {
    qemu: QemuFacts,
    cpu: HostCpu,
}

/// QEMU cannot be asked what it has.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It does not answer.
    #[error(transparent)]
    Qmp(#[from] QmpError),
}

impl Host {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        let architecture = Architecture::from_name(go_name(std::env::consts::ARCH)).unwrap_or_default();
        Self {
            architecture,
            told: OnceCell::new(),
            kvm: OnceCell::new(),
            allow_emulation: arguments.allow_emulation,
            use_emulation: arguments.use_emulation,
            firmware: arguments.ovmf_path.clone(),
        }
    }

    /// Folder of the UEFI images.
    pub(crate) fn firmware(&self) -> &Path {
        &self.firmware
    }

    /// Finds out now what nobody else knows, so that nobody has to wait for it later.
    pub(crate) async fn learn(&self) {
        match self.accelerator().await {
            Ok(Accelerator::Kvm) => tracing::info!("machines run with KVM"),
            Ok(Accelerator::Emulation { because }) => {
                tracing::info!(because, "machines run by software emulation");
            }
            Err(error) => tracing::error!(%error, "machines cannot run here"),
        }
    }

    /// What runs the guest's instructions: KVM if it was tried and works, emulation where that is allowed.
    pub(crate) async fn accelerator(&self) -> Result<Accelerator, NoAccelerator> {
        let probe = || async {
            // An attempt at KVM is no use to somebody who forbids it, and may take seconds on a broken host.
            if self.use_emulation {
                return Kvm::Missing;
            }
            let told = tokio::task::spawn_blocking(kvm::probe).await;
            told.unwrap_or_else(|error| Kvm::Unusable { reason: error.to_string() })
        };
        let kvm = self.kvm.get_or_init(probe).await;
        kvm::accelerator(kvm, self.allow_emulation, self.use_emulation)
    }

    /// Takes over what was asked on this node before, if the same would be asked here: every QEMU that need not start
    /// leaves the node to those that must.
    pub(crate) async fn hear(&self, answers: &[u8]) {
        if answers.is_empty() || self.told.initialized() {
            return;
        }
        match self.fitting(answers).await {
            Ok(Some(told)) => {
                tracing::info!("this QEMU was asked before on this node");
                drop(self.told.set(told));
            }
            Ok(None) => tracing::info!("this node was asked about another QEMU than this one"),
            Err(error) => tracing::warn!(%error, "what is known of QEMU on this node is of no use"),
        }
    }

    async fn fitting(&self, answers: &[u8]) -> io::Result<Option<Told>> {
        let QemuAnswers { program: asked, kvm, qemu, cpu } = serde_json::from_slice(answers)?;
        let ours = ProgramFile::of(&program(self.architecture))?;
        let fits = asked == ours && kvm == self.uses_kvm().await;
        Ok(fits.then_some(Told { qemu, cpu }))
    }

    async fn uses_kvm(&self) -> bool {
        matches!(self.accelerator().await, Ok(Accelerator::Kvm))
    }

    /// What QEMU has. The answer is the same for the launcher's life, so it is asked once.
    pub(crate) async fn qemu(&self) -> Result<QemuFacts, ProbeError> {
        self.told().await.map(|told| told.qemu.clone())
    }

    /// The host's CPU in words that mean the same on every host; nothing where guests are emulated, which are all
    /// given the same.
    pub(crate) async fn cpu(&self) -> Result<HostCpu, ProbeError> {
        self.told().await.map(|told| told.cpu.clone())
    }

    async fn told(&self) -> Result<&Told, ProbeError> {
        let ask = || async { probe(self.architecture, self.uses_kvm().await).await };
        self.told.get_or_try_init(ask).await
    }
}

/// The program of an architecture.
pub(crate) fn program(architecture: Architecture) -> PathBuf {
    programs::qemu(architecture.qemu_program())
}

async fn probe(architecture: Architecture, kvm: bool) -> Result<Told, ProbeError> {
    let machine = if kvm { "none,accel=kvm" } else { "none" };
    let arguments = ["-machine", machine, "-nodefaults", "-display", "none"];
    let launch = Launch {
        program: program(architecture),
        arguments: arguments.map(Into::into).to_vec(),
        ..Launch::default()
    };
    let (process, machine) = orphans::start(launch).await?;
    let version = machine.qmp().version().major_minor();
    let (types, machines) = (machine.types().await?, machine.machine_types().await?);
    let qemu = QemuFacts::told(version, types, machines.into_iter().map(|one| (one.name, one.alias)));
    let mut cpu = HostCpu::default();
    // Elsewhere guests have the host's CPU as it is.
    if kvm && architecture == Architecture::Amd64 {
        match cpu::ask(&machine, "host").await {
            Ok(told) => cpu = told,
            Err(error) => tracing::warn!(%error, "guests get the host's CPU, which no other host may have"),
        }
    }
    process.end().await;
    Ok(Told { qemu, cpu })
}

/// The name that Kubernetes has for an architecture of Rust.
fn go_name(rust: &str) -> &str {
    match rust {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host {
            architecture: Architecture::Amd64,
            told: OnceCell::new(),
            kvm: OnceCell::new(),
            allow_emulation: true,
            use_emulation: true,
            firmware: PathBuf::new(),
        }
    }

    /// Answers that no real QEMU gives.
    fn answers(program: &Path, kvm: bool) -> Vec<u8> {
        let answers = QemuAnswers {
            program: ProgramFile::of(program).unwrap(),
            kvm,
            qemu: QemuFacts { version: (1, 0), ..QemuFacts::default() },
            cpu: HostCpu::default(),
        };
        serde_json::to_vec(&answers).unwrap()
    }

    #[tokio::test]
    async fn what_the_node_was_told_is_not_asked_again() {
        let qemu = program(Architecture::Amd64);
        let other = std::env::current_exe().unwrap();
        for (answers, taken) in [
            (answers(&qemu, false), true),
            (answers(&qemu, true), false),
            (answers(&other, false), false),
            (b"{}".to_vec(), false),
            (Vec::new(), false),
        ] {
            let host = host();
            host.hear(&answers).await;
            let version = host.qemu().await.unwrap().version;
            assert_eq!(version == (1, 0), taken, "{}", String::from_utf8_lossy(&answers));
        }
    }
}
