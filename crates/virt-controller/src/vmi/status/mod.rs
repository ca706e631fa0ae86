//! The instance as it should be written: phase, status, labels and finalizers.

mod ended;
mod handed_over;
mod pending;
mod scheduling;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kubevirt_admission::Gate;
use kubevirt_api::names::{annotations, finalizers, labels};
use kubevirt_api::quantity::{Amount, Format};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{PhaseTransition, VirtualMachineInstanceStatus, VmiPhase};

use super::observe::Observed;
use super::plan::Plan;
use super::{conditions, pods, state_claim};

/// The version of the API that instances are written in.
const API_VERSION: &str = "v1";

/// The instance as it should be. An instance in a phase that is not ours stays as it is.
pub fn decide(observed: &Observed, plan: &mut Plan, now: Timestamp) -> VirtualMachineInstance {
    let mut vmi = (*observed.vmi).clone();
    let phase = observed.phase();
    if matches!(phase, VmiPhase::Unknown | VmiPhase::Other(_)) {
        return vmi;
    }
    note_api_version(&mut vmi);
    rename_finalizer(&mut vmi);
    vmi.status.get_or_insert_default();
    observe_pods(observed, &mut vmi, now);
    match phase {
        VmiPhase::Pending => pending::update(observed, &mut vmi, plan, now),
        VmiPhase::Scheduling => scheduling::update(observed, &mut vmi, plan, now),
        VmiPhase::Scheduled => handed_over::update_scheduled(observed, &mut vmi, plan, now),
        VmiPhase::Running => handed_over::update_running(observed, &mut vmi, plan, now),
        VmiPhase::WaitingForSync => ended::update_waiting(observed, &mut vmi),
        _ => {}
    }
    let status = vmi.status.get_or_insert_default();
    conditions::eviction(status, now);
    if matches!(phase, VmiPhase::Pending | VmiPhase::Scheduling) {
        conditions::synchronized(plan.trouble.as_ref(), &mut status.conditions, now);
    }
    note_phase(status, &phase, now);
    if matches!(status.phase, Some(VmiPhase::Succeeded | VmiPhase::Failed)) {
        ended::let_go(observed, &mut vmi);
    }
    vmi
}

fn note_api_version(vmi: &mut VirtualMachineInstance) {
    let notes = vmi.metadata.annotations.get_or_insert_default();
    for name in [annotations::LATEST_OBSERVED_API_VERSION, annotations::STORAGE_OBSERVED_API_VERSION] {
        notes.insert(name.to_owned(), API_VERSION.to_owned());
    }
}

/// Older releases wrote a finalizer that the API server warns of.
fn rename_finalizer(vmi: &mut VirtualMachineInstance) {
    for finalizer in vmi.metadata.finalizers.iter_mut().flatten() {
        if finalizer == finalizers::DEPRECATED_FOREGROUND_DELETE {
            *finalizer = finalizers::FOREGROUND_DELETE.to_owned();
        }
    }
}

/// What the pods say, whatever the phase.
fn observe_pods(observed: &Observed, vmi: &mut VirtualMachineInstance, now: Timestamp) {
    let image = observed.launcher().map(|pod| pods::image(pod).unwrap_or_default().to_owned());
    if let Some(image) = &image {
        note_outdated(vmi, !image.is_empty() && *image != observed.settings.launcher_image);
    }
    let status = vmi.status.get_or_insert_default();
    let active: BTreeMap<String, String> =
        observed.pods.iter().map(|pod| (pod.uid().unwrap_or_default(), pods::node(pod).to_owned())).collect();
    status.active_pods = (!active.is_empty()).then_some(active);
    conditions::ready(observed, &mut status.conditions, now);
    conditions::data_volumes(observed, &mut status.conditions, now);
    if let Some(claim) = &observed.storage.state {
        state_claim::report(claim, &mut status.volume_status);
    }
    if let Some(image) = image {
        status.launcher_container_image_version = Some(image).filter(|image| !image.is_empty());
    }
    if let Some(pod) = observed.launcher().filter(|_| observed.config.enabled(Gate::VmiMemoryOverheadReport))
    {
        note_overhead(pod, status);
    }
}

fn note_outdated(vmi: &mut VirtualMachineInstance, is_outdated: bool) {
    if is_outdated {
        vmi.labels_mut().insert(labels::OUTDATED_LAUNCHER_IMAGE.to_owned(), String::new());
    } else if let Some(labels) = &mut vmi.metadata.labels {
        labels.remove(labels::OUTDATED_LAUNCHER_IMAGE);
    }
}

/// The memory that was counted on top of the guest's, as the pod was made with it.
fn note_overhead(pod: &Pod, status: &mut VirtualMachineInstanceStatus) {
    let bytes = pod.annotations().get(annotations::MEMORY_OVERHEAD_BYTES);
    let Some(bytes) = bytes.and_then(|bytes| bytes.parse().ok()) else { return };
    let amount = Amount::from_int(bytes);
    let memory = status.memory.get_or_insert_default();
    let known = memory.memory_overhead.as_ref().and_then(|known| Amount::of(known).ok());
    if known != Some(amount) {
        memory.memory_overhead = Some(amount.to_quantity(Format::BinarySi));
    }
}

/// Notes when a phase was first entered.
fn note_phase(status: &mut VirtualMachineInstanceStatus, before: &VmiPhase, now: Timestamp) {
    let Some(phase) = status.phase.clone() else { return };
    let transitions = status.phase_transition_timestamps.get_or_insert_default();
    let is_new = phase != *before || transitions.is_empty();
    if is_new && !transitions.iter().any(|transition| transition.phase.as_ref() == Some(&phase)) {
        transitions.push(PhaseTransition { phase: Some(phase), phase_transition_timestamp: Some(Time(now)) });
    }
}
