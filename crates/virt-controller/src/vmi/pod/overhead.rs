//! Memory that a machine costs beside what its guest sees.
//!
//! Measured with QEMU 7.2 and a small Linux guest of 128 MiB, without KVM (which takes the most), at its login prompt:
//! anonymous memory is 59 MiB, of which 32 are translated code; 22 MiB more are code and libraries, which all machines of
//! a node share and the kernel may drop. With 1 GiB the guest costs the same. What could not be measured is as large as
//! KubeVirt has it.

use kubevirt_admission::ClusterConfig;
use kubevirt_api::quantity::{Amount, QuantityExt};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::probes::Probe;
use kubevirt_domain::facts::TRANSLATION_BUFFER;

use super::quantities::mib;
use super::{instance, networks, resources};

/// The launcher: 3.3 MiB are its own, the rest is code that it shares with others.
const LAUNCHER: i64 = 8;

/// QEMU's own memory without virtual CPUs, display and translated code: 23 MiB measured.
const QEMU: i64 = 24;

/// QEMU's code and libraries: 22 MiB, shared; this share is in constant use.
const CODE: i64 = 8;

/// A virtual CPU: 2.0 MiB measured, from one to four.
const VCPU: i64 = 2;

/// A thread that serves disks: its stack and the requests that it holds.
const IO_THREAD: i64 = 1;

/// A disk: the tables of a qcow2 image are 1 MiB for each 8 GiB in use.
const DISK: i64 = 1;

/// The display: 16 MiB of video memory, of which 2.4 were measured for text, and VNC's copy of a small screen.
const DISPLAY: i64 = 18;

/// UEFI of a PC: two flash chips of 4 MiB in all, and what it leaves behind.
const UEFI: i64 = 8;

/// UEFI of an ARM machine: QEMU keeps two flash chips of 64 MiB each.
const ARM_UEFI: i64 = 128;

/// A kernel from an image: QEMU keeps a copy, 14 MiB for Debian's, and maps the initial RAM disk.
const KERNEL: i64 = 32;

/// The emulator of a TPM: KubeVirt saw 3.5 MiB resident; more while it makes its first state. Not measured.
const TPM: i64 = 12;

/// Host devices: QEMU maps their memory, and the kernel needs tables for them. Not measured.
const HOST_DEVICES: i64 = 1024;

/// Encrypted memory: flash, video memory and more cannot be moved any more. Not measured.
const ENCRYPTION: i64 = 256;

/// User-mode networking with all ports open. Not measured.
const PASST: i64 = 250;

/// The disk with the host's metrics.
const METRICS: i64 = 1;

/// A program that asks the guest agent, for as long as it runs: as much as a launcher.
const PROBE: i64 = 8;

/// What a container runtime needs to start such a program in the pod, which counts as the pod's own. Not measured.
const PROBE_START: i64 = 24;

/// Where there is a limit, nothing may ever be above it: the rest of the code, and the kernel's own memory. A guest that
/// boots while its node is busy was seen to take 33 MiB more than when it is alone.
const BOUNDED: i64 = 48;

/// How many bytes of guest memory one byte of page tables describes.
const PAGE_TABLES: i64 = 512;

/// Memory that a machine costs beside what its guest sees, in whole MiB.
pub fn overhead(vmi: &VirtualMachineInstance, config: &ClusterConfig) -> Amount {
    let all = [machine(vmi, config), devices(vmi), company(vmi), page_tables(vmi), wishes(vmi, config)];
    let sum = all.into_iter().fold(Amount::zero(), plus);
    let sum = more(sum, config.configuration().additional_guest_memory_overhead_ratio.as_deref());
    let mebibytes = sum.value().max(0).div_euclid(1 << 20) + i64::from(sum.value() % (1 << 20) != 0);
    mib(mebibytes)
}

fn plus(sum: Amount, term: Amount) -> Amount {
    sum.checked_add(term).unwrap_or(sum)
}

fn when(needed: bool, term: i64) -> i64 {
    if needed { term } else { 0 }
}

/// Launcher, QEMU, its virtual CPUs and threads, translated code.
fn machine(vmi: &VirtualMachineInstance, config: &ClusterConfig) -> Amount {
    let vcpus = instance::vcpus(vmi).max(1).saturating_mul(VCPU);
    let shared_thread = when(vmi.spec.domain.io_threads_policy.is_some(), IO_THREAD);
    let threads = instance::pool_threads(vmi).saturating_mul(IO_THREAD).saturating_add(shared_thread);
    let translated = when(resources::may_emulate(config), i64::from(TRANSLATION_BUFFER));
    let sum = LAUNCHER + QEMU + CODE + translated + when(instance::memory_limited(vmi), BOUNDED);
    // Whatever numbers a VMI names, this stays far below what a sum can hold.
    let counted = vcpus.saturating_add(threads).min(1 << 30);
    mib(sum.saturating_add(counted))
}

/// Devices that take memory of QEMU.
fn devices(vmi: &VirtualMachineInstance) -> Amount {
    let domain = &vmi.spec.domain;
    let disks = domain.devices.disks.iter().flatten().count();
    let disks = i64::try_from(disks).unwrap_or(i64::MAX).min(1 << 20).saturating_mul(DISK);
    let arm = vmi.spec.architecture.as_deref() == Some("arm64");
    let loader = domain.firmware.as_ref().and_then(|firmware| firmware.bootloader.as_ref());
    let uefi = loader.is_some_and(|loader| loader.efi.is_some());
    let security = instance::launch_security(vmi);
    let encrypted = security.is_some_and(|it| it.sev.is_some() || it.snp.is_some());
    let metrics = instance::volumes(vmi).any(|volume| volume.downward_metrics.is_some());
    mib(disks
        + when(domain.devices.autoattach_graphics_device != Some(false), DISPLAY)
        + when(uefi && !arm, UEFI)
        + when(arm, ARM_UEFI)
        + when(instance::kernel_container(vmi).is_some(), KERNEL)
        + when(instance::has_host_devices(vmi), HOST_DEVICES)
        + when(encrypted, ENCRYPTION)
        + when(metrics, METRICS))
}

/// Programs that run beside QEMU.
fn company(vmi: &VirtualMachineInstance) -> Amount {
    let asks = |probe: &Option<Probe>| {
        probe.as_ref().is_some_and(|probe| probe.exec.is_some() || probe.guest_agent_ping.is_some())
    };
    let probes = [&vmi.spec.liveness_probe, &vmi.spec.readiness_probe].map(asks);
    let passt = instance::interfaces(vmi).any(|interface| interface.passt_binding.is_some());
    mib(when(instance::has_tpm(vmi), TPM)
        + when(passt, PASST)
        + probes.map(|probe| when(probe, PROBE)).iter().sum::<i64>()
        + when(probes.contains(&true), PROBE_START))
}

fn page_tables(vmi: &VirtualMachineInstance) -> Amount {
    instance::guest_memory(vmi).checked_mul_ratio(1, PAGE_TABLES).unwrap_or_default()
}

/// What the VMI and the plugins of its interfaces ask for.
fn wishes(vmi: &VirtualMachineInstance, config: &ClusterConfig) -> Amount {
    let reserved = vmi.spec.domain.memory.as_ref().and_then(|memory| memory.reserved_overhead.as_ref());
    let reserved = reserved.and_then(|reserved| reserved.added_overhead.as_ref()?.amount().ok());
    let mut seen: Vec<&str> = Vec::new();
    let mut sum = reserved.unwrap_or_default();
    for interface in instance::interfaces(vmi) {
        let Some(binding) = interface.binding.as_ref().filter(|it| !seen.contains(&it.name.as_str())) else {
            continue;
        };
        seen.push(&binding.name);
        let plugin = networks::plugin(config, interface).ok().flatten();
        let cost = plugin.and_then(|plugin| plugin.compute_resource_overhead.as_ref());
        let memory = cost.and_then(|cost| cost.requests.as_ref()?.get("memory")?.amount().ok());
        sum = plus(sum, memory.unwrap_or_default());
    }
    sum
}

/// More by a ratio that the cluster chooses; admission accepts numbers only.
fn more(sum: Amount, ratio: Option<&str>) -> Amount {
    let ratio = ratio.and_then(|ratio| ratio.parse::<f64>().ok()).filter(|ratio| (1.0..1e6).contains(ratio));
    let Some(ratio) = ratio else { return sum };
    sum.checked_mul_ratio((ratio * 1000.0).ceil() as i64, 1000).unwrap_or(sum)
}
