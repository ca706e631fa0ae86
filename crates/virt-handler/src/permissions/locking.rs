//! How much memory a launcher and its QEMU may lock.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vmi::VirtualMachineInstance;

use crate::isolation::Place;
use crate::prepare::{PrepareError, failed};

/// For QEMU besides the guest's memory, where the status does not say it. A limit that is too high costs nothing.
const OVERHEAD: u64 = 1 << 30;

/// Lets the launcher, and with it the QEMU that it starts, lock as much memory as the machine needs.
pub(crate) fn allow_locking(vmi: &VirtualMachineInstance, place: &Place) -> Result<(), PrepareError> {
    let Some(bytes) = needed(vmi) else { return Ok(()) };
    let error =
        |error| failed(format_args!("{bytes} bytes of memory cannot be allowed to be locked: {error}"));
    place.launcher().allow_locking(bytes).map_err(error)?;
    if let Some(qemu) = place.qemu() {
        qemu.allow_locking(bytes).map_err(error)?;
    }
    Ok(())
}

/// Bytes that must be lockable, if any.
fn needed(vmi: &VirtualMachineInstance) -> Option<u64> {
    let domain = &vmi.spec.domain;
    let devices = &domain.devices;
    let sriov = devices.interfaces.iter().flatten().filter(|interface| interface.sriov.is_some()).count();
    let passed =
        devices.host_devices.iter().flatten().count() + devices.gpus.iter().flatten().count() + sriov;
    let realtime = domain.cpu.as_ref().is_some_and(|cpu| cpu.realtime.is_some());
    let amd = domain
        .launch_security
        .as_ref()
        .is_some_and(|security| security.sev.is_some() || security.snp.is_some());
    let overhead = domain.memory.as_ref().and_then(|memory| memory.reserved_overhead.as_ref());
    let required = overhead.is_some_and(|overhead| overhead.mem_lock.as_deref() == Some("Required"));
    if passed == 0 && !realtime && !amd && !required {
        return None;
    }
    // Behind a virtual IOMMU, each device has the guest's memory mapped for itself.
    let copies = u64::try_from(passed).unwrap_or(u64::MAX).max(1);
    Some(guest_memory(vmi).saturating_mul(copies).saturating_add(overhead_memory(vmi)))
}

fn guest_memory(vmi: &VirtualMachineInstance) -> u64 {
    let domain = &vmi.spec.domain;
    let memory = domain.memory.as_ref();
    let requests = domain.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let sizes = [
        memory.and_then(|memory| memory.max_guest.as_ref()),
        requests.and_then(|requests| requests.get("memory")),
        memory.and_then(|memory| memory.guest.as_ref()),
    ];
    // What is requested may be less than the guest has, where the cluster promises more than there is.
    sizes.into_iter().flatten().filter_map(bytes).max().unwrap_or(0)
}

fn overhead_memory(vmi: &VirtualMachineInstance) -> u64 {
    let status = vmi.status.as_ref();
    let known = status.and_then(|status| status.memory.as_ref()?.memory_overhead.as_ref());
    let target = status.and_then(|status| status.migration_state.as_ref()?.target_memory_overhead.as_ref());
    known.into_iter().chain(target).filter_map(bytes).max().unwrap_or(0).max(OVERHEAD)
}

fn bytes(quantity: &Quantity) -> Option<u64> {
    quantity.bytes().ok().and_then(|bytes| u64::try_from(bytes).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_some_machines_lock_memory() {
        const GIB: u64 = 1 << 30;
        let needed = |domain: Value| {
            let vmi = json!({"metadata": {"name": "web"}, "spec": {"domain": domain}});
            needed(&serde_json::from_value(vmi).unwrap())
        };
        let gpu = |name: &str| json!({"name": name, "deviceName": "x"});
        for (domain, expected) in [
            (json!({"devices": {}, "memory": {"guest": "2Gi"}}), None),
            (json!({"devices": {"gpus": [gpu("a")]}, "memory": {"guest": "2Gi"}}), Some(3 * GIB)),
            (json!({"devices": {"gpus": [gpu("a"), gpu("b")]}, "memory": {"guest": "2Gi"}}), Some(5 * GIB)),
            (
                json!({"devices": {"interfaces": [{"name": "a", "sriov": {}}]},
                "memory": {"guest": "2Gi", "maxGuest": "4Gi"}}),
                Some(5 * GIB),
            ),
            (json!({"devices": {}, "cpu": {"realtime": {}}, "memory": {"guest": "1Gi"}}), Some(2 * GIB)),
            (
                json!({"devices": {}, "launchSecurity": {"sev": {}},
                "resources": {"requests": {"memory": "1Gi"}}}),
                Some(2 * GIB),
            ),
            (
                json!({"devices": {}, "memory": {"guest": "1Gi", "reservedOverhead": {"memLock": "Required"}}}),
                Some(2 * GIB),
            ),
        ] {
            assert_eq!(needed(domain.clone()), expected, "{domain}");
        }
    }
}
