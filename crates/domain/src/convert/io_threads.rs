//! Which IO thread serves which disk.

use std::collections::BTreeMap;

use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vmi::disks::{DiskBus, IoThreadsPolicy};

use super::{Conversion, disks};

/// IO threads and the disks they serve.
#[derive(Debug, Default)]
pub(super) struct IoThreads {
    /// How many there are.
    pub(super) count: u32,
    /// How many have host CPUs of their own when CPUs are dedicated.
    pub(super) supplemental: u32,
    /// Threads of each virtio disk, by its name.
    pub(super) disks: BTreeMap<String, Vec<u32>>,
    /// Thread of the SCSI controller.
    pub(super) scsi: Option<u32>,
}

/// Most IO threads that a machine gets.
const MAX_THREADS: u32 = 1024;

/// Spreads disks over IO threads by the VMI's policy.
pub(super) fn assign(c: &mut Conversion<'_>) -> IoThreads {
    let all = c.spec.devices.disks.as_deref().unwrap_or_default();
    let dedicated = all.iter().filter(|disk| disk.dedicated_io_thread == Some(true)).count() as u32;
    let limit = match c.spec.io_threads_policy.clone() {
        None if dedicated == 0 => return IoThreads::default(),
        None | Some(IoThreadsPolicy::Shared) => 1,
        Some(IoThreadsPolicy::Auto) => auto_limit(c),
        Some(IoThreadsPolicy::SupplementalPool) => return supplemental(c),
        Some(IoThreadsPolicy::Other(other)) if other.is_empty() => 1,
        Some(IoThreadsPolicy::Other(other)) => {
            c.unsupported("spec.domain.ioThreadsPolicy", format_args!("{other:?} is not known"));
            return IoThreads::default();
        }
    };
    let shared = all.len() as u32 - dedicated;
    let shared = if shared + dedicated > limit { limit.saturating_sub(dedicated).max(1) } else { shared };
    let mut threads = IoThreads { count: shared + dedicated, ..IoThreads::default() };
    let (mut next_shared, mut next_dedicated) = (0, shared);
    for disk in all {
        let is_dedicated = disk.dedicated_io_thread == Some(true);
        match disks::bus(c, disk) {
            DiskBus::Virtio if is_dedicated => {
                next_dedicated += 1;
                threads.disks.insert(disk.name.clone(), vec![next_dedicated]);
            }
            DiskBus::Virtio if shared > 0 => {
                threads.disks.insert(disk.name.clone(), vec![next_shared % shared + 1]);
                next_shared += 1;
            }
            DiskBus::Scsi if is_dedicated => {
                next_dedicated += 1;
                threads.scsi.get_or_insert(next_dedicated);
            }
            _ => {}
        }
    }
    threads
}

/// A pool that all virtio disks use; before QEMU could map queues, each disk uses one thread of it.
fn supplemental(c: &mut Conversion<'_>) -> IoThreads {
    let asked = c.spec.io_threads.as_ref().and_then(|threads| threads.supplemental_pool_thread_count);
    let count =
        asked.and_then(|count| u32::try_from(count).ok()).filter(|count| (1..=MAX_THREADS).contains(count));
    let Some(count) = count else {
        let reason = format_args!("it must be 1 to {MAX_THREADS}");
        c.unsupported("spec.domain.ioThreads.supplementalPoolThreadCount", reason);
        return IoThreads::default();
    };
    let all = c.spec.devices.disks.as_deref().unwrap_or_default();
    let virtio: Vec<_> = all.iter().filter(|disk| disks::bus(c, disk) == DiskBus::Virtio).collect();
    let maps_queues = c.qemu_at_least(9, 0);
    let of_disk = |index: u32| if maps_queues { (1..=count).collect() } else { vec![index % count + 1] };
    let disks = virtio.iter().zip(0..).map(|(disk, index)| (disk.name.clone(), of_disk(index))).collect();
    IoThreads { count, supplemental: count, disks, scsi: None }
}

/// Twice the CPUs of the pod, unless the main thread's own CPU serves them all.
fn auto_limit(c: &Conversion<'_>) -> u32 {
    if c.isolates_emulator() {
        return 1;
    }
    let resources = c.spec.resources.as_ref();
    let request = resources.and_then(|resources| resources.requests.as_ref()?.get("cpu"));
    let limit = resources.and_then(|resources| resources.limits.as_ref()?.get("cpu"));
    let cpus = request.or(limit).and_then(|cpus| cpus.bytes().ok()).unwrap_or(1);
    u32::try_from(cpus).unwrap_or(1).clamp(1, MAX_THREADS / 2) * 2
}
