//! Questions about a VMI that several topics ask.

use std::collections::BTreeSet;

use kubevirt_api::names::annotations;
use kubevirt_api::quantity::{Amount, QuantityExt};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::firmware::KernelBootContainer;
use kubevirt_api::vmi::launch_security::LaunchSecurity;
use kubevirt_api::vmi::network::{Interface, InterfaceState, Network};
use kubevirt_api::vmi::volumes::Volume;

use super::text;

/// The VMI's volumes.
pub(super) fn volumes(vmi: &VirtualMachineInstance) -> impl Iterator<Item = &Volume> {
    vmi.spec.volumes.iter().flatten()
}

/// The VMI's interfaces.
pub(super) fn interfaces(vmi: &VirtualMachineInstance) -> impl Iterator<Item = &Interface> {
    vmi.spec.domain.devices.interfaces.iter().flatten()
}

/// Each interface that is to be there, with its network.
pub(super) fn connections(vmi: &VirtualMachineInstance) -> impl Iterator<Item = (&Interface, &Network)> {
    let present = |name: &str| {
        interfaces(vmi)
            .find(|interface| interface.name == name)
            .filter(|interface| interface.state != Some(InterfaceState::Absent))
    };
    vmi.spec
        .networks
        .iter()
        .flatten()
        .filter_map(move |network| present(&network.name).map(|interface| (interface, network)))
}

/// Names of the claims that the VMI's launcher pod mounts, which must be there before it is made.
pub fn claims(vmi: &VirtualMachineInstance) -> Vec<&str> {
    let plugged = plugged(vmi);
    let fixed = volumes(vmi).filter(|volume| !plugged.contains(volume.name.as_str()));
    fixed.filter_map(claim_of).collect()
}

/// Name of the claim of a volume.
pub(super) fn claim_of(volume: &Volume) -> Option<&str> {
    let claim = volume.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.as_str());
    let data = volume.data_volume.as_ref().map(|data| data.name.as_str());
    let base = volume.ephemeral.as_ref().and_then(|ephemeral| ephemeral.persistent_volume_claim.as_ref());
    claim.or(data).or(base.map(|claim| claim.claim_name.as_str()))
}

/// Names of the volumes that come and go while the machine runs; an attachment pod holds them.
pub(super) fn plugged(vmi: &VirtualMachineInstance) -> BTreeSet<&str> {
    let known = vmi.status.iter().flat_map(|status| status.volume_status.iter().flatten());
    let known = known.filter(|volume| volume.hotplug_volume.is_some()).map(|volume| volume.name.as_str());
    let hotpluggable = |volume: &&Volume| {
        let claim = volume.persistent_volume_claim.as_ref().and_then(|claim| claim.hotpluggable);
        claim.or(volume.data_volume.as_ref().and_then(|data| data.hotpluggable)) == Some(true)
    };
    known.chain(volumes(vmi).filter(hotpluggable).map(|volume| volume.name.as_str())).collect()
}

/// The image that the machine's kernel comes in.
pub(super) fn kernel_container(vmi: &VirtualMachineInstance) -> Option<&KernelBootContainer> {
    vmi.spec.domain.firmware.as_ref()?.kernel_boot.as_ref()?.container.as_ref()
}

/// The service account whose token the guest sees.
pub(super) fn volume_account(vmi: &VirtualMachineInstance) -> Option<String> {
    volumes(vmi).find_map(|volume| text(&volume.service_account.as_ref()?.service_account_name))
}

/// CPUs that belong to the machine alone.
pub(super) fn dedicated(vmi: &VirtualMachineInstance) -> bool {
    vmi.spec.domain.cpu.as_ref().and_then(|cpu| cpu.dedicated_cpu_placement) == Some(true)
}

/// Whether limits and requests are the same, which asks for a pod of the class Guaranteed.
pub(super) fn guaranteed(vmi: &VirtualMachineInstance) -> bool {
    let amount = |name: &str, limits: bool| {
        let resources = vmi.spec.domain.resources.as_ref()?;
        let list = if limits { resources.limits.as_ref() } else { resources.requests.as_ref() };
        list?.get(name)?.amount().ok().filter(|amount| !amount.is_zero())
    };
    let memory = match (amount("memory", false), amount("memory", true)) {
        (None, limit) => limit.is_some(),
        (request, limit) => request == limit,
    };
    let cpu = amount("cpu", false).is_some() && amount("cpu", false) == amount("cpu", true);
    memory && cpu
}

/// Whether pods of this VMI must have the same limits as requests, each container of them.
pub(super) fn bounded(vmi: &VirtualMachineInstance) -> bool {
    dedicated(vmi) || guaranteed(vmi)
}

/// Whether the kernel ends the machine when it takes more memory than was counted.
pub(super) fn memory_limited(vmi: &VirtualMachineInstance) -> bool {
    let limits = vmi.spec.domain.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    let limit = limits.and_then(|limits| limits.get("memory")?.amount().ok());
    bounded(vmi) || limit.is_some_and(|limit| !limit.is_zero())
}

/// Number of virtual CPUs; 0 if the topology is left open.
pub(super) fn vcpus(vmi: &VirtualMachineInstance) -> i64 {
    let Some(cpu) = &vmi.spec.domain.cpu else { return 1 };
    let set = [cpu.sockets, cpu.cores, cpu.threads].into_iter().flatten().filter(|count| *count > 0);
    set.map(i64::from)
        .fold(0, |product, count| if product == 0 { count } else { product.saturating_mul(count) })
}

/// Number of further threads that serve disks.
pub(super) fn pool_threads(vmi: &VirtualMachineInstance) -> i64 {
    let threads = vmi.spec.domain.io_threads.as_ref();
    threads.and_then(|threads| threads.supplemental_pool_thread_count).map_or(0, i64::from).max(0)
}

/// Memory that the guest sees.
pub(super) fn guest_memory(vmi: &VirtualMachineInstance) -> Amount {
    let domain = &vmi.spec.domain;
    let guest = domain.memory.as_ref().and_then(|memory| memory.guest.as_ref());
    let resources = domain.resources.as_ref();
    let request = resources.and_then(|resources| resources.requests.as_ref()?.get("memory"));
    let limit = resources.and_then(|resources| resources.limits.as_ref()?.get("memory"));
    let amounts = [guest, request, limit].into_iter().flatten().filter_map(|quantity| quantity.amount().ok());
    amounts.into_iter().find(|amount| !amount.is_zero()).unwrap_or_default()
}

/// Whether the guest has a TPM.
pub(super) fn has_tpm(vmi: &VirtualMachineInstance) -> bool {
    vmi.spec.domain.devices.tpm.as_ref().is_some_and(|tpm| tpm.enabled != Some(false))
}

/// Whether the TPM's state outlives the VMI.
pub(super) fn keeps_tpm(vmi: &VirtualMachineInstance) -> bool {
    has_tpm(vmi) && vmi.spec.domain.devices.tpm.as_ref().and_then(|tpm| tpm.persistent) == Some(true)
}

/// Whether the firmware's variables outlive the VMI.
pub(super) fn keeps_firmware(vmi: &VirtualMachineInstance) -> bool {
    let firmware = vmi.spec.domain.firmware.as_ref();
    let efi = firmware.and_then(|firmware| firmware.bootloader.as_ref()?.efi.as_ref());
    efi.and_then(|efi| efi.persistent) == Some(true)
}

/// Whether the VMI has state that a claim must hold.
pub(super) fn keeps_state(vmi: &VirtualMachineInstance) -> bool {
    keeps_tpm(vmi) || keeps_firmware(vmi) || vmi.tracks_blocks()
}

/// Whether devices of the host are given to the guest.
pub(super) fn has_host_devices(vmi: &VirtualMachineInstance) -> bool {
    let devices = &vmi.spec.domain.devices;
    devices.host_devices.iter().flatten().next().is_some()
        || devices.gpus.iter().flatten().next().is_some()
        || interfaces(vmi).any(|interface| interface.sriov.is_some())
}

/// How the guest's memory is kept from its host.
pub(super) fn launch_security(vmi: &VirtualMachineInstance) -> Option<&LaunchSecurity> {
    vmi.spec.domain.launch_security.as_ref()
}

/// Whether the launcher runs as root, which only a VMI of an old release or of a special cluster does.
pub(super) fn as_root(vmi: &VirtualMachineInstance) -> bool {
    let user = vmi.status.as_ref().and_then(|status| status.runtime_user);
    user == Some(0) && annotation(vmi, annotations::DEPRECATED_NON_ROOT).is_none()
}

/// An annotation of the VMI.
pub(super) fn annotation<'a>(vmi: &'a VirtualMachineInstance, name: &str) -> Option<&'a str> {
    vmi.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// A label of the VMI.
pub(super) fn label<'a>(vmi: &'a VirtualMachineInstance, name: &str) -> Option<&'a str> {
    vmi.metadata.labels.as_ref()?.get(name).map(String::as_str)
}
