//! The program `node-labeller`: it runs once in the launcher's image, which has the QEMU that guests will run with,
//! and writes down what that QEMU can do on this host.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use kubevirt_domain::QemuFacts;
use kubevirt_domain::facts::HostCpu;
use kubevirt_host::kvm::{self, Kvm};
use kubevirt_launcher_rpc::qemu::{ProgramFile, QemuAnswers};
use kubevirt_qemu::Machine;
use kubevirt_qemu::process::{Launch, program};
use kubevirt_qemu::qmp::Limits;

use super::ask;
use super::facts::{FILE, Facts, QEMU_FILE, Tsc, write};

/// Write down what the QEMU of this image can do on this host.
#[derive(Debug, Parser)]
#[command(name = "node-labeller")]
pub struct Arguments {
    /// Folder for the facts, which virt-handler reads.
    #[arg(long, default_value = "/var/lib/kubevirt-node-labeller")]
    pub output: PathBuf,
    /// The QEMU to ask, if it is not the one of the host's architecture.
    #[arg(long)]
    pub qemu: Option<PathBuf>,
}

/// Runs the program; its name is the first argument.
pub fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let arguments = Arguments::parse_from(arguments);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (facts, answers) = runtime.block_on(gather(arguments.qemu))?;
    let path = arguments.output.join(FILE);
    write(&facts, &path)?;
    write(&answers, &arguments.output.join(QEMU_FILE))?;
    let model = facts.cpu.model.as_deref().unwrap_or("unnamed");
    eprintln!("{}: {} CPU models, the host's own is {model}", path.display(), facts.models.len());
    Ok(ExitCode::SUCCESS)
}

/// Asks QEMU, KVM and the kernel: for labels, and what launchers would ask.
pub async fn gather(qemu: Option<PathBuf>) -> Result<(Facts, QemuAnswers)> {
    let architecture = std::env::consts::ARCH;
    let kvm = tokio::task::spawn_blocking(kvm::probe).await?;
    eprintln!("{kvm}");
    let usable = kvm == Kvm::Usable;
    let accelerator = if usable { "kvm" } else { "tcg" };
    let program = qemu.unwrap_or_else(|| program::qemu(&format!("qemu-system-{architecture}")));
    let launch = Launch {
        program: program.clone(),
        arguments: ["-machine", &format!("none,accel={accelerator}"), "-nodefaults", "-no-user-config"]
            .into_iter()
            .chain(["-display", "none"])
            .map(OsString::from)
            .collect(),
        environment: Vec::new(),
        limits: Limits::default(),
    };
    let (process, machine) = launch.start().await.context("QEMU cannot be asked")?;
    let told = ask(&machine, &program, usable, kubernetes_name(architecture)).await;
    process.end().await;
    let (mut facts, answers) = told?;
    if usable {
        let abilities = tokio::task::spawn_blocking(kvm::abilities).await?;
        facts.hyperv = abilities.hyperv.into_iter().map(str::to_owned).collect();
        facts.tsc = abilities.tsc.map(|tsc| Tsc { frequency: tsc.frequency, scalable: tsc.scalable });
    }
    narrow(&mut facts, Path::new("/sys"));
    facts.foreign_architectures = foreign(architecture, |name| program::in_path(name).is_some());
    Ok((facts, answers))
}

async fn ask(
    machine: &Machine,
    program: &Path,
    kvm: bool,
    architecture: &str,
) -> Result<(Facts, QemuAnswers)> {
    let facts = ask::facts(machine, kvm, architecture).await.context("QEMU did not answer")?;
    let types = machine.types().await.context("QEMU does not tell what devices it has")?;
    let machines = machine.machine_types().await.context("QEMU does not tell what machines it has")?;
    let machines = machines.into_iter().map(|one| (one.name, one.alias));
    let program = ProgramFile::of(program).with_context(|| format!("read {}", program.display()))?;
    // Elsewhere guests have the host's CPU as it is, or one that is the same for all.
    let named = kvm && architecture == "amd64";
    let cpu = if named { facts.cpu.clone() } else { HostCpu::default() };
    let qemu = QemuFacts::told(machine.qmp().version().major_minor(), types, machines);
    Ok((facts, QemuAnswers { program, kvm, qemu, cpu }))
}

/// What QEMU can encrypt, less what this kernel cannot.
fn narrow(facts: &mut Facts, sysfs: &Path) {
    let is_on = |path: &str| {
        let text = std::fs::read_to_string(sysfs.join(path)).unwrap_or_default();
        ["1", "Y", "y"].contains(&text.trim())
    };
    let kvm = facts.kvm;
    let encryption = &mut facts.encryption;
    encryption.sev_es &= encryption.sev && is_on("module/kvm_amd/parameters/sev_es");
    encryption.sev_snp &= encryption.sev_es && is_on("module/kvm_amd/parameters/sev_snp");
    encryption.tdx &= kvm && is_on("module/kvm_intel/parameters/tdx");
    encryption.secure_execution &= kvm && is_on("firmware/uv/prot_virt_host");
}

/// The other architectures that there is a QEMU for.
fn foreign(own: &str, has: impl Fn(&str) -> bool) -> Vec<String> {
    let others = ["x86_64", "aarch64"].into_iter().filter(|other| *other != own);
    others
        .filter(|other| has(&format!("qemu-system-{other}")))
        .map(|other| kubernetes_name(other).to_owned())
        .collect()
}

fn kubernetes_name(architecture: &str) -> &str {
    match architecture {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::testing::Tree;
    use crate::labels::facts::{Encryption, MachineType};

    #[test]
    fn the_kernel_has_a_say_in_encryption() {
        let all = Encryption { sev: true, sev_es: true, sev_snp: true, tdx: true, secure_execution: true };
        let told = |files: &[(&str, &str)], kvm| {
            let tree = Tree::new();
            for (name, text) in files {
                tree.file(name, text);
            }
            let mut facts = Facts { kvm, encryption: all, ..Facts::default() };
            narrow(&mut facts, tree.path());
            facts.encryption
        };
        let only_sev = Encryption { sev: true, ..Encryption::default() };
        assert_eq!(told(&[], true), only_sev);
        assert_eq!(
            told(&[("module/kvm_amd/parameters/sev_snp", "Y\n")], true),
            only_sev,
            "nothing without what it builds on"
        );
        let amd = [("module/kvm_amd/parameters/sev_es", "Y\n"), ("module/kvm_amd/parameters/sev_snp", "1\n")];
        assert_eq!(
            told(&amd, true),
            Encryption { sev: true, sev_es: true, sev_snp: true, ..Encryption::default() }
        );
        let intel = [("module/kvm_intel/parameters/tdx", "Y\n")];
        assert_eq!(told(&intel, true), Encryption { tdx: true, ..only_sev });
        assert_eq!(told(&intel, false), only_sev);
    }

    #[test]
    fn other_architectures_need_a_program() {
        assert_eq!(foreign("x86_64", |program| program == "qemu-system-aarch64"), ["arm64"]);
        assert_eq!(foreign("s390x", |_| true), ["amd64", "arm64"]);
        assert_eq!(foreign("x86_64", |_| false), [""; 0]);
    }

    /// The QEMU of this machine, whichever it is.
    #[tokio::test]
    async fn asks_a_real_qemu() {
        let (facts, answers) = gather(None).await.unwrap();
        let tree = Tree::new();
        let path = tree.path().join(FILE);
        write(&facts, &path).unwrap();
        assert_eq!(Facts::read(&path).unwrap(), facts);
        println!("{}", std::fs::read_to_string(&path).unwrap());

        assert_eq!(answers.kvm, facts.kvm);
        assert!(answers.qemu.devices.contains("virtio-scsi-pci"));
        assert!(!facts.machine_types.is_empty());
        let known = |one: &MachineType| one.name == "none" || answers.qemu.machines.contains_key(&one.name);
        assert!(facts.machine_types.iter().all(known));
        if facts.architecture == "amd64" {
            assert!(facts.machine_types.iter().any(|one| one.name == "q35"));
            assert!(facts.models.iter().any(|model| model.name == "Penryn" && model.usable));
            assert!(facts.cpu.features.contains("sse2"));
            assert!(facts.feature_aliases.iter().any(|alias| alias == "lahf_lm"));
            let model = facts.cpu.model.as_ref().unwrap();
            assert!(!kubevirt_domain::host_model::is_obsolete(model), "{model}");
            assert!(facts.models.iter().any(|known| known.name == *model));
            assert!(facts.vendor.is_some());
        }
    }
}
