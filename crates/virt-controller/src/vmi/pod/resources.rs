//! CPU, memory, devices and claims of the container that runs the machine.
//!
//! Requests and limits of the VMI count for the guest; what the machine costs beside it comes on top. What is computed
//! here gives way to what the VMI says.

use k8s_openapi::api::core::v1::{ResourceClaim, ResourceRequirements};
use kube::core::{Selector, SelectorExt};
use kubevirt_admission::{ClusterConfig, Gate};
use kubevirt_api::names::{annotations, labels, resources};
use kubevirt_api::quantity::{Amount, Format, QuantityExt, format_of};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::host_devices::{Gpu, HostDevice};

use super::error::NoPod;
use super::quantities::{self, List};
use super::surroundings::Surroundings;
use super::{MEMORY, instance, networks, some};

/// Disk space for the launcher's own files.
const EPHEMERAL_STORAGE: Amount = Amount::from_int(50_000_000);

/// How many times its request a memory limit is that a quota makes necessary.
const LIMIT_RATIO: (i64, i64) = (2, 1);

/// Requests and limits in the making.
#[derive(Default)]
struct Tally {
    /// What the VMI says, with the costs on top.
    own: Lists,
    /// What holds where the VMI says nothing.
    usual: Lists,
    claims: Vec<ResourceClaim>,
}

#[derive(Default)]
struct Lists {
    requests: List,
    limits: List,
}

impl Lists {
    /// One more of a device: requests and limits of devices are the same.
    fn one_more(&mut self, device: &str) {
        for list in [&mut self.requests, &mut self.limits] {
            quantities::add(list, device, Amount::from_int(1), Format::DecimalSi);
        }
    }
}

/// Whether machines may run without KVM.
pub(super) fn may_emulate(config: &ClusterConfig) -> bool {
    let developer = config.configuration().developer_configuration.as_ref();
    developer.and_then(|developer| developer.use_emulation) == Some(true)
}

/// Resources of the container that runs the machine, with this much memory beside the guest's.
pub(super) fn compute(
    vmi: &VirtualMachineInstance,
    around: &Surroundings<'_>,
    overhead: Amount,
) -> Result<ResourceRequirements, NoPod> {
    let own = vmi.spec.domain.resources.clone().unwrap_or_default();
    let mut tally = Tally {
        own: Lists { requests: own.requests.unwrap_or_default(), limits: own.limits.unwrap_or_default() },
        ..Tally::default()
    };
    let overhead_on_top = own.overcommit_guest_overhead != Some(true);
    storage(&mut tally);
    memory_request(vmi, around.config, &mut tally);
    cpu(vmi, around, &mut tally);
    match vmi.spec.domain.memory.as_ref().and_then(|memory| memory.hugepages.as_ref()) {
        Some(pages) => {
            huge_pages(vmi, pages.page_size.as_deref().unwrap_or_default(), overhead, &mut tally);
        }
        None => add_overhead(overhead, overhead_on_top, &mut tally),
    }
    memory_limit(around, &mut tally);
    for device in devices(vmi, around)? {
        tally.usual.one_more(&device);
    }
    claims(vmi, around.config, &mut tally);
    Ok(tally.finish())
}

impl Tally {
    fn finish(self) -> ResourceRequirements {
        let over = |mut usual: List, own: List| {
            usual.extend(own);
            usual
        };
        ResourceRequirements {
            requests: Some(over(self.usual.requests, self.own.requests)).filter(|list| !list.is_empty()),
            limits: Some(over(self.usual.limits, self.own.limits)).filter(|list| !list.is_empty()),
            claims: some(self.claims),
        }
    }
}

fn storage(tally: &mut Tally) {
    const NAME: &str = "ephemeral-storage";
    quantities::add(&mut tally.own.requests, NAME, EPHEMERAL_STORAGE, Format::DecimalSi);
    if tally.own.limits.contains_key(NAME) {
        quantities::add(&mut tally.own.limits, NAME, EPHEMERAL_STORAGE, Format::DecimalSi);
    }
}

/// Memory that is requested for the guest where the VMI requests none: its limit, or what the guest sees, less what the
/// cluster hopes that guests do not use.
fn memory_request(vmi: &VirtualMachineInstance, config: &ClusterConfig, tally: &mut Tally) {
    if quantities::amount(&tally.own.requests, "memory").is_some() {
        return;
    }
    if quantities::amount(&tally.own.limits, "memory").is_some() {
        let limit = tally.own.limits["memory"].clone();
        tally.own.requests.insert("memory".to_owned(), limit);
        return;
    }
    let memory = vmi.spec.domain.memory.as_ref();
    let guest = memory.and_then(|memory| memory.guest.clone());
    let page = || {
        let pages = memory.and_then(|memory| memory.hugepages.as_ref());
        Some(quantities::quantity(pages?.page_size.as_deref()?))
    };
    let Some(guest) = guest.or_else(page) else { return };
    let Ok(amount) = guest.amount() else { return };
    let hoped = match config.memory_overcommit() {
        100 => Some(amount),
        percent => Amount::from_int(amount.value()).checked_mul_ratio(100, percent).map(floor),
    };
    if let Some(hoped) = hoped.filter(|amount| !amount.is_zero() && !amount.is_negative()) {
        quantities::set(&mut tally.own.requests, "memory", hoped, format_of(&guest.0));
    }
}

/// Whole bytes; less than one is not worth a word.
fn floor(amount: Amount) -> Amount {
    let whole = amount.nanos() / 1_000_000_000;
    Amount::from_int(i64::try_from(whole).unwrap_or(i64::MAX))
}

fn cpu(vmi: &VirtualMachineInstance, around: &Surroundings<'_>, tally: &mut Tally) {
    let vcpus = instance::vcpus(vmi);
    let threads = vcpus.saturating_add(instance::pool_threads(vmi));
    if instance::dedicated(vmi) {
        dedicated_cpus(vmi, vcpus, tally);
        return;
    }
    let developer = around.config.configuration().developer_configuration.as_ref();
    let ratio = developer.and_then(|developer| developer.cpu_allocation_ratio).unwrap_or(10);
    if threads == 0 || ratio <= 0 {
        return;
    }
    if let Some(share) = Amount::from_int(threads).checked_mul_ratio(1, ratio) {
        // Kubernetes knows nothing finer than a thousandth.
        let share = Amount::from_milli(share.milli_value());
        quantities::set(&mut tally.usual.requests, "cpu", share, Format::DecimalSi);
    }
    if needs_cpu_limit(around, tally) {
        quantities::set(&mut tally.usual.limits, "cpu", Amount::from_int(threads), Format::DecimalSi);
    }
}

/// Where a quota counts CPU limits, or the cluster says so for this namespace, pods get one.
fn needs_cpu_limit(around: &Surroundings<'_>, tally: &Tally) -> bool {
    let namespace = &around.namespace;
    let selector = around.config.configuration().auto_cpu_limit_namespace_label_selector.as_ref();
    let selector = selector.and_then(|selector| Selector::try_from(selector.clone()).ok());
    let chosen = selector.is_some_and(|selector| selector.matches(&namespace.labels));
    !tally.own.limits.contains_key("cpu") && (namespace.quota_of_cpu_limits || chosen)
}

/// Whole CPUs for the machine alone: one for each virtual CPU and thread, and for QEMU's own threads if asked for.
fn dedicated_cpus(vmi: &VirtualMachineInstance, vcpus: i64, tally: &mut Tally) {
    let pool = instance::pool_threads(vmi);
    let whole = Format::DecimalSi;
    for list in [&mut tally.own.limits, &mut tally.own.requests] {
        if vcpus != 0 {
            quantities::set(list, "cpu", Amount::from_int(vcpus.saturating_add(pool)), whole);
        } else if list.contains_key("cpu") {
            quantities::add(list, "cpu", Amount::from_int(pool), whole);
        }
    }
    let cpu = vmi.spec.domain.cpu.as_ref();
    if cpu.and_then(|cpu| cpu.isolate_emulator_thread) == Some(true) {
        let so_far = quantities::amount(&tally.own.limits, "cpu").unwrap_or_default().value();
        let even = instance::annotation(vmi, annotations::EMULATOR_THREAD_EVEN_PARITY).is_some();
        // A pool is counted twice here, as KubeVirt does: it decides which totals come out even.
        let more = if even && (so_far.saturating_add(pool)) % 2 == 0 { 2 } else { 1 };
        quantities::add(&mut tally.own.limits, "cpu", Amount::from_int(more), whole);
        if tally.own.requests.contains_key("cpu") {
            quantities::add(&mut tally.own.requests, "cpu", Amount::from_int(more), whole);
        }
    }
    if let Some(memory) = tally.own.requests.get("memory").cloned() {
        tally.own.limits.insert("memory".to_owned(), memory);
    }
}

/// Guest memory of huge pages: only what is beside the guest is memory of the usual kind.
fn huge_pages(vmi: &VirtualMachineInstance, page: &str, overhead: Amount, tally: &mut Tally) {
    let name = format!("hugepages-{page}");
    let guest = vmi.spec.domain.memory.as_ref().and_then(|memory| memory.guest.as_ref());
    let requested = tally.own.requests.get("memory").cloned().unwrap_or_default();
    let guest_amount = guest.and_then(|guest| guest.amount().ok());
    let less = |list: &List| {
        let amount = quantities::amount(list, "memory").unwrap_or_default();
        guest_amount.and_then(|guest| amount.checked_sub(guest)).filter(|rest| !rest.is_negative())
    };
    let pages = match guest {
        Some(guest) if less(&tally.own.requests).is_some_and(|rest| !rest.is_zero()) => guest.clone(),
        _ => requested,
    };
    tally.usual.requests.insert(name.clone(), pages.clone());
    tally.usual.limits.insert(name, pages);
    for list in [&mut tally.own.requests, &mut tally.own.limits] {
        let rest = less(list).unwrap_or_default();
        if list.contains_key("memory") {
            quantities::set(list, "memory", rest.checked_add(overhead).unwrap_or(overhead), MEMORY);
        }
    }
    tally.own.requests.entry("memory".to_owned()).or_insert_with(|| overhead.to_quantity(MEMORY));
}

fn add_overhead(overhead: Amount, to_requests: bool, tally: &mut Tally) {
    if to_requests {
        quantities::add(&mut tally.own.requests, "memory", overhead, MEMORY);
    }
    if tally.own.limits.contains_key("memory") {
        quantities::add(&mut tally.own.limits, "memory", overhead, MEMORY);
    }
}

/// Where a quota counts memory limits, pods get one: a multiple of the request that the namespace can choose.
fn memory_limit(around: &Surroundings<'_>, tally: &mut Tally) {
    let namespace = &around.namespace;
    if !namespace.quota_of_memory_limits || tally.own.limits.contains_key("memory") {
        return;
    }
    let Some(request) = tally.own.requests.get("memory") else { return };
    let told = namespace.labels.get(labels::AUTO_MEMORY_LIMITS_RATIO);
    let told = told.and_then(|text| text.parse::<f64>().ok()).filter(|ratio| (1.0..1e6).contains(ratio));
    // Thousandths are exact enough, and never below the ratio that was asked for.
    let (times, parts) = told.map_or(LIMIT_RATIO, |ratio| ((ratio * 1000.0).ceil() as i64, 1000));
    let limit = request.amount().ok().and_then(|amount| amount.checked_mul_ratio(times, parts)).map(floor);
    if let Some(limit) = limit {
        let format = format_of(&request.0);
        quantities::set(&mut tally.usual.limits, "memory", limit, format);
    }
}

/// The devices of device plugins that the machine needs, one entry a device.
fn devices(vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> Result<Vec<String>, NoPod> {
    let devices = &vmi.spec.domain.devices;
    let config = around.config;
    let mut all: Vec<String> = networks::resources(vmi, around)?;
    let mut add = |needed: bool, name: &str| all.extend(needed.then(|| name.to_owned()));
    let emulated = may_emulate(config);
    let no_interface =
        instance::interfaces(vmi).next().is_none() && devices.autoattach_pod_interface == Some(false);
    let virtio = |model: &Option<String>| model.as_deref().is_none_or(|it| it.is_empty() || it == "virtio");
    let virtio = instance::interfaces(vmi).any(|interface| virtio(&interface.model));
    let security = instance::launch_security(vmi);
    let reserves = devices
        .disks
        .iter()
        .flatten()
        .any(|disk| disk.lun.as_ref().and_then(|lun| lun.reservation) == Some(true));
    add(!no_interface, resources::TUN);
    add(virtio && !emulated, resources::VHOST_NET);
    add(!emulated, resources::KVM);
    add(devices.autoattach_vsock == Some(true), resources::VHOST_VSOCK);
    add(security.is_some_and(|it| it.sev.is_some() || it.snp.is_some()), resources::SEV);
    add(security.is_some_and(|it| it.tdx.is_some()), resources::TDX);
    add(reserves, resources::PR_HELPER);
    add(config.enabled(Gate::Iommufd), resources::IOMMUFD);
    let plugged = |name: &Option<String>, claim: &Option<String>| {
        name.clone().filter(|name| !name.is_empty() && claim.is_none())
    };
    let gpu = |gpu: &Gpu| plugged(&gpu.device_name, &gpu.claim_name);
    let other = |device: &HostDevice| plugged(&device.device_name, &device.claim_name);
    all.extend(devices.gpus.iter().flatten().filter_map(gpu));
    all.extend(devices.host_devices.iter().flatten().filter_map(other));
    Ok(all)
}

/// Devices that are claimed instead of counted.
fn claims(vmi: &VirtualMachineInstance, config: &ClusterConfig, tally: &mut Tally) {
    let devices = &vmi.spec.domain.devices;
    let mut add = |on: bool, name: &Option<String>, request: &Option<String>| {
        if let Some(name) = name.clone().filter(|name| on && !name.is_empty()) {
            tally.claims.push(ResourceClaim { name, request: request.clone() });
        }
    };
    for gpu in devices.gpus.iter().flatten() {
        add(config.enabled(Gate::GpusWithDra), &gpu.claim_name, &gpu.request_name);
    }
    for device in devices.host_devices.iter().flatten() {
        add(config.enabled(Gate::HostDevicesWithDra), &device.claim_name, &device.request_name);
    }
    for network in networks::claimed(vmi) {
        let Some(claim) = &network.resource_claim else { continue };
        add(config.enabled(Gate::NetworkDevicesWithDra), &claim.claim_name, &claim.request_name);
    }
}
