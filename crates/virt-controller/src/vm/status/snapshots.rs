//! Whether each volume can be part of a snapshot, as far as it can be told without the snapshots' own controller.

use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::VolumeSnapshotStatus;

use crate::vm::observe::Observed;
use crate::vm::view;

/// What is known of each volume. Of those that have a claim, what others found out is left as it is.
pub fn of(seen: &Observed, vm: &VirtualMachine) -> Option<Vec<VolumeSnapshotStatus>> {
    let known = seen.vm.status.as_ref().and_then(|status| status.volume_snapshot_statuses.as_deref());
    let known = known.unwrap_or_default();
    let of_volume = |volume: &kubevirt_api::vmi::volumes::Volume| match view::claim_name(volume) {
        Some(_) => known.iter().find(|status| status.name == volume.name).cloned(),
        None => Some(VolumeSnapshotStatus {
            name: volume.name.clone(),
            enabled: false,
            reason: Some(format!("Snapshot is not supported for this volumeSource type [{}]", volume.name)),
        }),
    };
    Some(view::volumes(vm).iter().filter_map(of_volume).collect())
}
