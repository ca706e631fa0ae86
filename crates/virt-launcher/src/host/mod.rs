//! What is known of the host and of its QEMU, asked once.

mod cpu;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kubevirt_domain::QemuFacts;
use kubevirt_domain::domain::Architecture;
use kubevirt_domain::facts::HostCpu;
use kubevirt_host::kvm::{self, Accelerator, Kvm, NoAccelerator};
use kubevirt_qemu::process::{Launch, StartError};
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

    /// Finds out everything now, so that nobody has to wait for it later.
    pub(crate) async fn learn(&self) {
        if let Err(error) = self.qemu().await {
            tracing::error!(%error, "QEMU cannot be asked what it has");
        }
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

    /// What QEMU has. The answer is the same for the launcher's life, so it is asked once, early.
    pub(crate) async fn qemu(&self) -> Result<QemuFacts, ProbeError> {
        self.told().await.map(|told| told.qemu.clone())
    }

    /// The host's CPU in words that mean the same on every host; nothing where guests are emulated, which are all
    /// given the same.
    pub(crate) async fn cpu(&self) -> Result<HostCpu, ProbeError> {
        self.told().await.map(|told| told.cpu.clone())
    }

    async fn told(&self) -> Result<&Told, ProbeError> {
        let ask = || async {
            let kvm = matches!(self.accelerator().await, Ok(Accelerator::Kvm));
            probe(self.architecture, kvm).await
        };
        self.told.get_or_try_init(ask).await
    }
}

/// The program of an architecture: by its own name, or as distributions name the one for their own architecture.
pub(crate) fn program(architecture: Architecture) -> PathBuf {
    let other = Path::new("/usr/libexec/qemu-kvm");
    let name = architecture.qemu_program();
    let in_path = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()));
    if !in_path && other.is_file() { other.to_owned() } else { name.into() }
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
    let devices: BTreeSet<String> = machine.types().await?.into_iter().collect();
    let mut machines = BTreeMap::new();
    for kind in machine.machine_types().await? {
        if let Some(alias) = kind.alias {
            machines.insert(alias, kind.name.clone());
        }
        machines.insert(kind.name.clone(), kind.name);
    }
    let mut cpu = HostCpu::default();
    // Elsewhere guests have the host's CPU as it is.
    if kvm && architecture == Architecture::Amd64 {
        match cpu::ask(&machine, "host").await {
            Ok(told) => cpu = told,
            Err(error) => tracing::warn!(%error, "guests get the host's CPU, which no other host may have"),
        }
    }
    process.end().await;
    Ok(Told { qemu: QemuFacts { version, devices, machines }, cpu })
}

/// The name that Kubernetes has for an architecture of Rust.
fn go_name(rust: &str) -> &str {
    match rust {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
