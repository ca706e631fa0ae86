//! Guest memory: how much, what backs it, and how it can grow.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::names::annotations;
use kubevirt_api::quantity::{Amount, QuantityExt};
use kubevirt_api::vmi::memory::Memory as MemorySpec;

use super::Conversion;
use crate::domain::Architecture;
use crate::domain::memory::{Memory, MemoryBacking, MemoryHotplug};
use crate::pci::Role;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Guest memory, without its NUMA nodes.
pub(super) fn convert(c: &mut Conversion<'_>) -> Memory {
    let spec = c.spec.memory.clone().unwrap_or_default();
    let size = guest_size(c, &spec);
    let backing = backing(c, &spec);
    if let Some(page) = backing.huge_page.filter(|page| !size.is_multiple_of(*page)) {
        c.unsupported(
            "spec.domain.memory.guest",
            format_args!("it is not a multiple of huge pages of {page} bytes"),
        );
    }
    let (size, hotplug) = grow(c, &spec, size, backing);
    Memory {
        size,
        backing,
        nodes: Vec::new(),
        hotplug,
        locked: c.is_realtime() && c.host.can_lock_memory,
        no_merge: c.is_realtime(),
    }
}

/// Whether another process must be able to map guest memory.
pub(super) fn is_shared(c: &Conversion<'_>) -> bool {
    let devices = &c.spec.devices;
    let passt = devices.interfaces.iter().flatten().any(|interface| interface.passt_binding.is_some());
    passt || devices.filesystems.iter().flatten().next().is_some()
}

fn guest_size(c: &mut Conversion<'_>, spec: &MemorySpec) -> u64 {
    let resources = c.spec.resources.as_ref();
    let request = resources.and_then(|resources| resources.requests.as_ref()?.get("memory"));
    let limit = resources.and_then(|resources| resources.limits.as_ref()?.get("memory"));
    let Some(quantity) = spec.guest.as_ref().or(request).or(limit) else {
        c.unsupported("spec.domain.memory.guest", "the machine has no memory");
        return 0;
    };
    let size = quantity.bytes().ok().and_then(|bytes| u64::try_from(bytes).ok()).filter(|bytes| *bytes > 0);
    let Some(size) = size.filter(|size| *size <= u64::MAX / 4) else {
        c.unsupported("spec.domain.memory.guest", format_args!("{:?} is no amount of memory", quantity.0));
        return 0;
    };
    size.next_multiple_of(MIB)
}

fn backing(c: &mut Conversion<'_>, spec: &MemorySpec) -> MemoryBacking {
    let shared = is_shared(c);
    let huge_page = spec.hugepages.as_ref().and_then(|pages| huge_page(c, pages.page_size.as_deref()));
    let wants_memfd = huge_page.is_some() && c.annotation(annotations::MEMFD) != Some("false");
    if huge_page.is_some() && !wants_memfd && !shared {
        c.unsupported("metadata.annotations", "huge pages without an anonymous file need a mounted folder");
    }
    MemoryBacking { memfd: wants_memfd || shared, huge_page, shared, preallocated: huge_page.is_some() }
}

fn huge_page(c: &mut Conversion<'_>, size: Option<&str>) -> Option<u64> {
    let text = size.unwrap_or("2Mi");
    let bytes =
        Amount::parse(text).ok().and_then(Amount::checked_value).and_then(|bytes| u64::try_from(bytes).ok());
    if bytes.is_none_or(|bytes| !bytes.is_power_of_two() || bytes < 4096) {
        c.unsupported("spec.domain.memory.hugepages.pageSize", format_args!("{text:?} is no size of a page"));
        return None;
    }
    bytes
}

/// How memory can grow; what it had at boot stays plain memory.
fn grow(
    c: &mut Conversion<'_>,
    spec: &MemorySpec,
    size: u64,
    backing: MemoryBacking,
) -> (u64, Option<MemoryHotplug>) {
    let bytes = |quantity: &Option<Quantity>| u64::try_from(quantity.as_ref()?.bytes().ok()?).ok();
    let Some(max) = bytes(&spec.max_guest) else { return (size, None) };
    let status = c.vmi.status.as_ref().and_then(|status| status.memory.as_ref());
    let boot =
        status.and_then(|status| bytes(&status.guest_at_boot)).filter(|boot| *boot > 0).unwrap_or(size);
    let boot = boot.next_multiple_of(MIB).min(size);
    if max <= boot {
        return (size, None);
    }
    let field = "spec.domain.memory.maxGuest";
    let block = backing.huge_page.filter(|page| *page >= GIB).map_or(2 * MIB, |_| GIB);
    if c.architecture != Architecture::Amd64 {
        c.unsupported(field, "memory can grow on amd64 only");
        return (size, None);
    }
    if !(max - boot).is_multiple_of(block) || !(size - boot).is_multiple_of(block) {
        c.unsupported(field, format_args!("memory grows in blocks of {block} bytes only"));
        return (size, None);
    }
    let address = c.place(field, Role::Memory);
    (boot, Some(MemoryHotplug { max, size: max - boot, requested: size - boot, block, address }))
}
