//! What the launcher pod shows of its instance.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kubevirt_api::names::conditions::pod::VIRTUAL_MACHINE_UNPAUSED;
use kubevirt_api::names::conditions::vmi::PAUSED;
use kubevirt_api::names::external::{autoscaler, multus, velero};
use kubevirt_api::names::{annotations, labels, reasons};
use kubevirt_api::vmi::VirtualMachineInstance;

use super::observe::Observed;
use super::plan::{Plan, Step};
use super::{conditions, network, pod, pods};

type Marks = BTreeMap<String, String>;
type Changes = BTreeMap<String, Option<String>>;

/// Labels that follow from an instance to its pod.
const LABELS: [&str; 1] = [labels::OUTDATED_LAUNCHER_IMAGE];
/// Annotations that follow from an instance to its pod.
const ANNOTATIONS: [&str; 2] = [autoscaler::DESCHEDULER_EVICT, autoscaler::DESCHEDULER_PREFER_NO_EVICTION];
/// What has Velero still the guest's file systems.
const HOOKS: [&str; 5] = [
    velero::PRE_BACKUP_CONTAINER,
    velero::PRE_BACKUP_COMMAND,
    velero::PRE_BACKUP_TIMEOUT,
    velero::POST_BACKUP_CONTAINER,
    velero::POST_BACKUP_COMMAND,
];

/// Has the pod show what its instance now says, as soon as it has a node: what comes before its containers run costs the
/// node no further look at it, and it is ready with them.
pub fn decide(
    observed: &Observed,
    vmi: &VirtualMachineInstance,
    pod: &Arc<Pod>,
    now: Timestamp,
    plan: &mut Plan,
) {
    let node = pods::node(pod);
    if node.is_empty() || pods::is_down_or_leaving(pod) {
        return;
    }
    let mut labels = following(vmi.labels(), pod.labels(), &LABELS, &observed.settings.mirrored_labels);
    if pod.labels().get(labels::NODE_NAME).is_none_or(|known| known != node) {
        labels.insert(labels::NODE_NAME.to_owned(), Some(node.to_owned()));
    }
    let extra = &observed.settings.mirrored_annotations;
    let mut annotations = following(vmi.annotations(), pod.annotations(), &ANNOTATIONS, extra);
    set(&mut annotations, pod, autoscaler::DESCHEDULER_REQUEST_EVICT_ONLY, Some(String::new()));
    leaving(vmi, pod, &mut annotations);
    backup_hooks(observed, vmi, pod, &mut annotations);
    if let Some(selection) = network::selection(vmi, &observed.config) {
        set(&mut annotations, pod, multus::NETWORKS, Some(selection));
    }
    if let Some(devices) = network::device_info(vmi, pod, &observed.config) {
        set(&mut annotations, pod, annotations::NETWORK_INFO, Some(devices));
    }
    let before_the_guest = annotations.contains_key(annotations::NETWORK_INFO);
    let condition = unpaused(vmi, pod, now).map(Box::new);
    if !labels.is_empty() || !annotations.is_empty() || condition.is_some() {
        let step = Step::MarkPod { pod: pod.clone(), labels, annotations, condition };
        if before_the_guest { plan.steps.push(step) } else { plan.afterwards.push(step) }
    }
}

/// What has to change on the pod so that marks of these names are as on the instance. `prefix*` names many.
fn following(from: &Marks, to: &Marks, names: &[&str], more: &[String]) -> Changes {
    let prefixes = more.iter().filter_map(|name| name.strip_suffix('*')).filter(|prefix| !prefix.is_empty());
    let many =
        prefixes.flat_map(|prefix| from.keys().chain(to.keys()).filter(move |it| it.starts_with(prefix)));
    let single = more.iter().filter(|name| !name.is_empty() && !name.ends_with('*')).map(String::as_str);
    let names: BTreeSet<&str> = names.iter().copied().chain(single).chain(many.map(String::as_str)).collect();
    let changed = names.into_iter().filter(|name| from.get(*name) != to.get(*name));
    changed.map(|name| (name.to_owned(), from.get(name).cloned())).collect()
}

fn set(changes: &mut Changes, pod: &Pod, name: &str, value: Option<String>) {
    if pod.annotations().get(name) != value.as_ref() {
        changes.insert(name.to_owned(), value);
    }
}

/// Tells the descheduler that the pod is about to leave, or no longer is.
fn leaving(vmi: &VirtualMachineInstance, pod: &Pod, changes: &mut Changes) {
    let node = vmi.status.as_ref().and_then(|status| status.evacuation_node_name.as_deref());
    let is_leaving = node.is_some_and(|node| !node.is_empty());
    let is_marked = pod.annotations().contains_key(autoscaler::DESCHEDULER_EVICTION_IN_PROGRESS);
    if is_leaving != is_marked {
        let value = is_leaving.then(|| "true".to_owned());
        changes.insert(autoscaler::DESCHEDULER_EVICTION_IN_PROGRESS.to_owned(), value);
    }
}

fn backup_hooks(observed: &Observed, vmi: &VirtualMachineInstance, pod: &Pod, changes: &mut Changes) {
    let hooks = pod::backup_hooks(vmi, &observed.config);
    for name in HOOKS {
        set(changes, pod, name, hooks.get(name).cloned());
    }
}

/// The condition that the pod's readiness waits for: services shall not reach a paused guest.
fn unpaused(vmi: &VirtualMachineInstance, pod: &Pod, now: Timestamp) -> Option<PodCondition> {
    let paused = vmi.status.as_ref().is_some_and(|status| conditions::holds(status, PAUSED));
    let known = pods::condition(pod, VIRTUAL_MACHINE_UNPAUSED).map(|known| known.status.as_str());
    let (status, reason, message) = match paused {
        true => ("False", reasons::pod::PAUSED, "the virtual machine is paused"),
        false => ("True", reasons::pod::NOT_PAUSED, "the virtual machine is not paused"),
    };
    if known == Some(status) {
        return None;
    }
    Some(PodCondition {
        type_: VIRTUAL_MACHINE_UNPAUSED.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
        ..PodCondition::default()
    })
}
