//! What the status says of each volume.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use kubevirt_api::names::events::objects;
use kubevirt_api::names::reasons::vmi as reasons;
use kubevirt_api::vmi::status::{
    DomainMemoryDumpInfo, PersistentVolumeClaimInfo, VirtualMachineInstanceStatus, VolumePhase, VolumeStatus,
};
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_component::events::Kind;

use super::hotplug::{self, Attachments};
use super::observe::Observed;
use super::plan::{Event, Plan};
use super::{pods, state_claim};
use crate::context::claim_name;

/// Brings the status of all volumes up to date. What the node reports of a volume stays.
pub fn update(
    observed: &Observed,
    launcher: &Pod,
    status: &mut VirtualMachineInstanceStatus,
    plan: &mut Plan,
) {
    let old = status.volume_status.take().unwrap_or_default();
    let mut old: BTreeMap<String, VolumeStatus> = old.into_iter().map(|it| (it.name.clone(), it)).collect();
    let mut new: Vec<VolumeStatus> = old.remove(state_claim::VOLUME).into_iter().collect();

    let attachments = hotplug::attachments(observed, launcher);
    let plugged = hotplug::plugged(&observed.vmi, launcher);
    let volumes = observed.vmi.spec.volumes.as_deref().unwrap_or_default();
    let utility = plugged.iter().filter(|volume| !volumes.iter().any(|own| own.name == volume.name));
    for volume in volumes.iter().chain(utility) {
        let name = volume.name.clone();
        let mut one = old.remove(&name).unwrap_or_else(|| VolumeStatus { name, ..VolumeStatus::default() });
        if volume.memory_dump.is_some() && one.memory_dump_volume.is_none() {
            let claim_name = Some(volume.name.clone());
            one.memory_dump_volume = Some(DomainMemoryDumpInfo { claim_name, ..Default::default() });
        }
        if plugged.iter().any(|plugged| plugged.name == volume.name) {
            plug(observed, volume, &attachments, &mut one, plan);
        }
        describe_claim(observed, volume, &mut one);
        new.push(one);
    }
    new.extend(old.into_values().filter_map(|gone| unplug(observed, launcher, gone, plan)));
    new.sort_by(|a, b| a.name.cmp(&b.name));
    status.volume_status = (!new.is_empty()).then_some(new);
}

/// What becomes of a volume that is to be plugged, as far as the controller sees it: it is bound, then on the node.
fn plug(
    observed: &Observed,
    volume: &Volume,
    found: &Attachments<'_>,
    one: &mut VolumeStatus,
    plan: &mut Plan,
) {
    let was_detaching = one.phase == Some(VolumePhase::Detaching);
    let holder = found.current.filter(|pod| hotplug::holds(pod, &volume.name));
    let hotplug = one.hotplug_volume.get_or_insert_default();
    let Some(holder) = holder else {
        if one.phase != Some(VolumePhase::Ready) {
            hotplug.attach_pod_uid = None;
            from_claim(observed, volume, one);
        }
        return;
    };
    hotplug.attach_pod_name = Some(holder.name_any());
    hotplug.attach_pod_uid = is_ready(holder).then(|| holder.uid()).flatten();
    let is_new = one.phase.as_ref().is_none_or(VolumePhase::is_empty);
    if is_new || matches!(one.phase, Some(VolumePhase::Bound | VolumePhase::Pending)) {
        one.phase = Some(VolumePhase::AttachedToNode);
        one.reason = Some(objects::SUCCESSFUL_CREATE.to_owned());
        let message =
            format!("Created hotplug attachment pod {}, for volume {}", holder.name_any(), volume.name);
        plan.events.push(told(objects::SUCCESSFUL_CREATE, &message));
        one.message = Some(message);
    }
    // Plugged again before it was gone: it starts over.
    if was_detaching {
        from_claim(observed, volume, one);
    }
}

/// What becomes of a volume that is no longer wanted: it stays in the status while a pod holds it.
fn unplug(
    observed: &Observed,
    launcher: &Pod,
    mut gone: VolumeStatus,
    plan: &mut Plan,
) -> Option<VolumeStatus> {
    let holders = observed.attachments_of(launcher);
    let holder: &Arc<Pod> = holders.into_iter().find(|pod| hotplug::holds(pod, &gone.name))?;
    let hotplug = gone.hotplug_volume.get_or_insert_default();
    hotplug.attach_pod_name = Some(holder.name_any());
    hotplug.attach_pod_uid = holder.uid();
    // The node has to let go of it first.
    if !matches!(gone.phase, Some(VolumePhase::Ready | VolumePhase::MountedToPod)) {
        gone.phase = Some(VolumePhase::Detaching);
        if pods::is_leaving(holder) && gone.reason.as_deref() != Some(objects::SUCCESSFUL_DELETE) {
            let message =
                format!("Deleted hotplug attachment pod {}, for volume {}", holder.name_any(), gone.name);
            plan.events.push(told(objects::SUCCESSFUL_DELETE, &message));
            gone.reason = Some(objects::SUCCESSFUL_DELETE.to_owned());
            gone.message = Some(message);
        }
    }
    Some(gone)
}

fn told(reason: &'static str, message: &str) -> Event {
    Event { kind: Kind::Normal, reason, message: message.to_owned() }
}

fn is_ready(pod: &Pod) -> bool {
    let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
    matches!(containers, Some([only]) if only.ready)
}

/// The phase of a volume that is on no node follows from its claim.
fn from_claim(observed: &Observed, volume: &Volume, one: &mut VolumeStatus) {
    let name = claim_name(volume).unwrap_or_default();
    let claim = observed.claims.get(name);
    let phase = claim.and_then(|claim| claim.status.as_ref()?.phase.as_deref());
    let (phase, reason, message) = match (claim, phase) {
        (None, _) => (VolumePhase::Pending, reasons::FAILED_PVC_NOT_FOUND, format!("PVC {name} not found")),
        (_, Some("Bound")) => (VolumePhase::Bound, reasons::PVC_NOT_READY, "PVC is in phase Bound".into()),
        (_, Some("Lost")) => (VolumePhase::Pending, reasons::PVC_NOT_READY, "PVC is in phase Lost".into()),
        _ => (VolumePhase::Pending, reasons::PVC_NOT_READY, "PVC is in phase ClaimPending".into()),
    };
    one.phase = Some(phase);
    one.reason = Some(reason.to_owned());
    one.message = Some(message);
}

/// Copies what the node needs to know of the claim, which it may not read itself.
fn describe_claim(observed: &Observed, volume: &Volume, one: &mut VolumeStatus) {
    // Throwaway layers over a claim are not described.
    let named = claim_name(volume).filter(|_| volume.ephemeral.is_none());
    let Some(claim) = named.and_then(|name| observed.claims.get(name)) else { return };
    if hotplug::is_unfit(observed, volume) {
        one.phase = Some(VolumePhase::Pending);
        one.reason = Some(reasons::PVC_NOT_READY.to_owned());
        let message =
            format!("Utility volume PVC {} must be filesystem mode, not block mode", claim.name_any());
        one.message = Some(message);
        return;
    }
    one.persistent_volume_claim_info = Some(info(observed, claim));
}

fn info(observed: &Observed, claim: &PersistentVolumeClaim) -> PersistentVolumeClaimInfo {
    let spec = claim.spec.as_ref();
    PersistentVolumeClaimInfo {
        claim_name: Some(claim.name_any()),
        access_modes: spec.and_then(|spec| spec.access_modes.clone()),
        volume_mode: spec.and_then(|spec| spec.volume_mode.clone()),
        capacity: claim.status.as_ref().and_then(|status| status.capacity.clone()),
        requests: spec.and_then(|spec| spec.resources.as_ref()?.requests.clone()),
        preallocated: is_preallocated(claim).then_some(true),
        filesystem_overhead: Some(observed.storage.overhead.of(claim)),
    }
}

fn is_preallocated(claim: &PersistentVolumeClaim) -> bool {
    let says_so =
        |name: &str| name.contains("/storage.preallocation") || name.contains("/storage.thick-provisioned");
    claim.annotations().iter().any(|(name, value)| value == "true" && says_so(name))
}
