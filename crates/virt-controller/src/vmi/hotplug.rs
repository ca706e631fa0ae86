//! Volumes that are plugged into a running guest: pods that hold them on its node.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{VolumePhase, VolumeStatus};
use kubevirt_api::vmi::volumes::{PersistentVolumeClaimVolumeSource, UtilityVolume, Volume};

use super::observe::Observed;
use super::plan::{NewPod, Plan, Role, Step};
use super::pods;
use super::volumes::{self, Readiness};
use crate::context::claim_name;

/// Volumes of the instance that are not in its launcher pod, and so must be plugged.
pub fn plugged(vmi: &VirtualMachineInstance, launcher: &Pod) -> Vec<Volume> {
    let in_pod: BTreeSet<&str> = claims(launcher).map(|(name, _)| name).collect();
    let is_outside = |name: &str| !in_pod.contains(name);
    let volumes = vmi.spec.volumes.as_deref().unwrap_or_default();
    let storage = volumes.iter().filter(|volume| {
        volume.persistent_volume_claim.is_some()
            || volume.data_volume.is_some()
            || volume.memory_dump.is_some()
    });
    let utility = vmi.spec.utility_volumes.as_deref().unwrap_or_default();
    let own = storage.filter(|volume| is_outside(&volume.name)).cloned();
    own.chain(utility.iter().filter(|volume| is_outside(&volume.name)).map(as_volume)).collect()
}

fn as_volume(utility: &UtilityVolume) -> Volume {
    let claim = PersistentVolumeClaimVolumeSource {
        hotpluggable: Some(true),
        claim_name: utility.claim_name.clone(),
        read_only: utility.read_only,
    };
    Volume { name: utility.name.clone(), persistent_volume_claim: Some(claim), ..Volume::default() }
}

/// The claims of a pod: names of volumes, and of the claims behind them.
fn claims(pod: &Pod) -> impl Iterator<Item = (&str, &str)> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    volumes.iter().filter_map(|volume| {
        Some((volume.name.as_str(), volume.persistent_volume_claim.as_ref()?.claim_name.as_str()))
    })
}

/// Whether the pod holds the volume of this name.
pub fn holds(pod: &Pod, volume: &str) -> bool {
    claims(pod).any(|(name, _)| name == volume)
}

/// Volumes that can be held, and those that first need a pod to be provisioned for.
#[derive(Default)]
struct Sorted {
    ready: Vec<Volume>,
    waiting_for_consumer: Vec<Volume>,
}

fn sort(observed: &Observed, launcher: &Pod) -> Sorted {
    let mut sorted = Sorted::default();
    for volume in plugged(&observed.vmi, launcher) {
        let claim = claim_name(&volume).unwrap_or_default();
        // A claim that is missing wakes the instance when it appears.
        match volumes::readiness(observed, claim) {
            Ok(_) if is_unfit(observed, &volume) => {}
            Ok(Readiness::Ready) => sorted.ready.push(volume),
            Ok(Readiness::WaitsForConsumer) => sorted.waiting_for_consumer.push(volume),
            Ok(Readiness::NotReady) | Err(_) => {}
        }
    }
    sorted
}

/// Utility volumes are written to as file systems.
pub fn is_unfit(observed: &Observed, volume: &Volume) -> bool {
    let utility = observed.vmi.spec.utility_volumes.as_deref().unwrap_or_default();
    let claim = claim_name(volume).and_then(|claim| observed.claims.get(claim));
    utility.iter().any(|utility| utility.name == volume.name) && claim.is_some_and(|claim| is_block(claim))
}

/// Whether the claim is a block device.
pub fn is_block(claim: &PersistentVolumeClaim) -> bool {
    claim.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref()) == Some("Block")
}

/// The pods that hold volumes for the launcher: the one that holds just what it should, and the others, newest first.
pub struct Attachments<'a> {
    /// Holds what can be held now.
    pub current: Option<&'a Arc<Pod>>,
    /// One that did so is still on its way out, and its successor would have its name.
    in_the_way: bool,
    /// Hold something else.
    pub old: Vec<&'a Arc<Pod>>,
}

/// Tells the pods apart that hold volumes for the launcher.
pub fn attachments<'a>(observed: &'a Observed, launcher: &Pod) -> Attachments<'a> {
    attachments_of(observed, launcher, &sort(observed, launcher).ready)
}

fn attachments_of<'a>(observed: &'a Observed, launcher: &Pod, ready: &[Volume]) -> Attachments<'a> {
    let wanted: BTreeSet<_> =
        ready.iter().map(|it| (it.name.as_str(), claim_name(it).unwrap_or_default())).collect();
    let held = observed.attachments_of(launcher).into_iter().filter(|pod| !pods::is_temporary(pod));
    let (fitting, mut old): (Vec<_>, Vec<_>) =
        held.partition(|pod| claims(pod).collect::<BTreeSet<_>>() == wanted && !wanted.is_empty());
    let (alive, dead): (Vec<_>, Vec<_>) =
        fitting.into_iter().partition(|pod| !pods::is_leaving(pod) && !pods::is_down(pod));
    let in_the_way = !dead.is_empty();
    old.extend(dead);
    old.sort_by(|a, b| b.metadata.creation_timestamp.cmp(&a.metadata.creation_timestamp));
    Attachments { current: alive.into_iter().next(), in_the_way, old }
}

/// Has the right pods hold the right volumes.
pub fn decide(observed: &Observed, launcher: &Arc<Pod>, plan: &mut Plan) {
    let sorted = sort(observed, launcher);
    for volume in &sorted.waiting_for_consumer {
        let triggered = |pod: &&Arc<Pod>| pods::is_temporary(pod) && holds(pod, &volume.name);
        if !observed.attachments_of(launcher).iter().any(triggered) {
            let volume = Box::new(volume.clone());
            plan.steps.push(Step::CreatePod(NewPod::Trigger { launcher: launcher.clone(), volume }));
        }
    }
    let found = attachments_of(observed, launcher, &sorted.ready);
    // One at a time: what has not started yet may soon hold what is needed, or make room for it.
    let pending = found.old.iter().any(|pod| !matches!(pods::phase(pod), "Running" | "Succeeded" | "Failed"));
    if found.current.is_none() && !found.in_the_way && !pending && !sorted.ready.is_empty() {
        let volumes = sorted.ready.clone();
        plan.steps.push(Step::CreatePod(NewPod::Attachment { launcher: launcher.clone(), volumes }));
    }
    retire(observed, &found, !sorted.ready.is_empty(), plan);
}

/// Deletes pods that hold what they should not. The newest stays until its successor runs, and each until the node
/// has let go of what it holds.
fn retire(observed: &Observed, found: &Attachments<'_>, any_ready: bool, plan: &mut Plan) {
    let wanted: BTreeSet<String> = {
        let volumes = observed.vmi.spec.volumes.as_deref().unwrap_or_default();
        let utility = observed.vmi.spec.utility_volumes.as_deref().unwrap_or_default();
        let volumes = volumes.iter().filter(|volume| volumes::is_pluggable(volume)).map(|it| it.name.clone());
        volumes.chain(utility.iter().map(|it| it.name.clone())).collect()
    };
    let statuses = observed.status().volume_status.as_deref().unwrap_or_default();
    let unplugged: Vec<&VolumeStatus> = statuses
        .iter()
        .filter(|status| status.hotplug_volume.is_some() && !wanted.contains(&status.name))
        .collect();
    let is_used = |name: &str| unplugged.iter().any(|status| status.name == name && is_in_use(status));
    let successor_runs = found.current.is_some_and(|pod| pods::phase(pod) == "Running");
    let mut kept_one = false;
    for pod in &found.old {
        let has_use = claims(pod).any(|(name, _)| wanted.contains(name) || is_used(name));
        let stands_in = pods::phase(pod) == "Running" && !pods::is_leaving(pod) && any_ready && has_use;
        if stands_in && !successor_runs && !kept_one {
            kept_one = true;
            continue;
        }
        if !claims(pod).any(|(name, _)| is_used(name)) {
            delete(pod, plan);
        }
    }
}

/// Whether the node has yet to let go of a volume that was unplugged.
fn is_in_use(status: &VolumeStatus) -> bool {
    matches!(status.phase, Some(VolumePhase::Ready | VolumePhase::MountedToPod))
}

/// Deletes a pod that holds volumes, unless that was done.
pub fn delete(pod: &Arc<Pod>, plan: &mut Plan) {
    if !pods::is_leaving(pod) {
        plan.steps.push(Step::DeletePod { pod: pod.clone(), role: Role::Attachment });
    }
}
