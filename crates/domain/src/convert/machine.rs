//! The board, what runs it, and what happens at start and reboot.

use kubevirt_api::names::annotations;
use kubevirt_api::vmi::StartStrategy;
use kubevirt_api::vmi::domain::RebootPolicy;

use super::{Conversion, firmware, switch};
use crate::domain::{Accelerator, Architecture, Lifecycle, Machine};

/// The board.
pub(super) fn convert(c: &mut Conversion<'_>) -> Machine {
    let features = c.spec.features.as_ref();
    let timer = c.spec.clock.as_ref().and_then(|clock| clock.timer.as_ref());
    let acpi = features.and_then(|features| switch(&features.acpi)).unwrap_or(true);
    let smm = features.and_then(|features| switch(&features.smm));
    let hpet = timer.and_then(|timer| timer.hpet.as_ref()).map(|hpet| hpet.present.unwrap_or(true));
    let pit =
        timer.and_then(|timer| timer.pit.as_ref()).and_then(|pit| pit.present).filter(|present| !present);
    if c.architecture != Architecture::Amd64 {
        refuse_pc_parts(c, smm == Some(true), hpet == Some(true));
    }
    let secure = firmware::secure_boot(c);
    if secure && smm == Some(false) {
        c.unsupported("spec.domain.features.smm", "secure boot needs System Management Mode");
    }
    let x86 = c.architecture == Architecture::Amd64;
    let asked = c.spec.machine.as_ref().and_then(|machine| machine.type_.clone());
    Machine {
        asked: asked.unwrap_or_default(),
        machine_type: machine_type(c),
        architecture: c.architecture,
        accelerator: accelerator(c),
        acpi,
        smm: if secure && x86 { Some(true) } else { smm.filter(|_| x86) },
        hpet: hpet.filter(|_| x86),
        pit: pit.filter(|_| x86),
        virtio_iommu: virtio_iommu(c),
        no_pci_hole64: x86 && c.annotation(annotations::DISABLE_PCI_HOLE_64).is_some_and(is_true),
        virtio: c.virtio(),
    }
}

/// What happens at start and reboot.
pub(super) fn lifecycle(c: &mut Conversion<'_>) -> Lifecycle {
    let attested = c.spec.launch_security.as_ref().and_then(|security| security.sev.as_ref());
    let paused = c.vmi.spec.start_strategy == Some(StartStrategy::Paused)
        || attested.is_some_and(|sev| sev.attestation.is_some());
    let terminate = match &c.spec.reboot_policy {
        None | Some(RebootPolicy::Reboot) => false,
        Some(RebootPolicy::Terminate) => true,
        Some(RebootPolicy::Other(other)) => {
            if !other.is_empty() {
                c.unsupported("spec.domain.rebootPolicy", format_args!("{other:?} is not known"));
            }
            false
        }
    };
    Lifecycle { start_paused: paused, terminate_on_reboot: terminate }
}

fn refuse_pc_parts(c: &mut Conversion<'_>, smm: bool, hpet: bool) {
    let architecture = c.architecture.as_str();
    if smm {
        c.unsupported(
            "spec.domain.features.smm",
            format_args!("{architecture} has no System Management Mode"),
        );
    }
    if hpet {
        c.unsupported("spec.domain.clock.timer.hpet", format_args!("{architecture} has no such timer"));
    }
}

/// The exact machine type, where QEMU told which there are.
fn machine_type(c: &mut Conversion<'_>) -> String {
    let default = match c.architecture {
        Architecture::Amd64 => "q35",
        Architecture::Arm64 => "virt",
        Architecture::S390x => "s390-ccw-virtio",
    };
    let asked = c.spec.machine.as_ref().and_then(|machine| machine.type_.as_deref());
    let asked = asked.filter(|name| !name.is_empty()).unwrap_or(default);
    if c.architecture == Architecture::Amd64 && !asked.contains("q35") {
        c.unsupported("spec.domain.machine.type", format_args!("{asked:?} is not a q35 machine"));
    }
    if c.qemu.machines.is_empty() {
        return asked.to_owned();
    }
    c.qemu.machines.get(asked).cloned().unwrap_or_else(|| {
        c.unsupported("spec.domain.machine.type", format_args!("this QEMU has no machine type {asked:?}"));
        asked.to_owned()
    })
}

fn accelerator(c: &mut Conversion<'_>) -> Accelerator {
    if c.is_kvm() {
        return Accelerator::Kvm;
    }
    if !c.host.allow_emulation {
        let reason = if c.architecture == c.host.architecture {
            "KVM does not work on this host and emulation is not allowed".to_owned()
        } else {
            format!("the host is {} and emulation is not allowed", c.host.architecture.as_str())
        };
        c.unsupported("spec.architecture", reason);
    }
    Accelerator::Tcg { buffer: c.host.translation_buffer }
}

/// Encrypted guests must bounce what devices see, which virtio devices do behind a translated platform.
fn virtio_iommu(c: &Conversion<'_>) -> bool {
    c.spec.launch_security.as_ref().is_some_and(|security| {
        security.sev.is_some() || security.snp.is_some() || c.architecture == Architecture::S390x
    })
}

fn is_true(value: &str) -> bool {
    value.eq_ignore_ascii_case("true")
}
