//! What a pod says of itself.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod, PodCondition};
use kube::ResourceExt;
use kubevirt_api::names::annotations;
use kubevirt_api::names::reasons::vmi as reasons;
use kubevirt_api::vmi::VirtualMachineInstance;

/// The container that runs the guest.
pub const COMPUTE: &str = "compute";
/// The container of a service mesh, which is ready only when a service points to the pod.
const ISTIO_PROXY: &str = "istio-proxy";

/// The node's word for a pod whose containers are ready while something that others report on it is missing.
const READINESS_GATES_NOT_READY: &str = "ReadinessGatesNotReady";

/// The pod's phase, or nothing.
pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// The node the pod is on, or nothing.
pub fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// The class by which the node shares resources, if it is known.
pub fn qos_class(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.qos_class.as_deref().filter(|class| !class.is_empty())
}

/// The image that the guest runs in.
pub fn image(pod: &Pod) -> Option<&str> {
    let containers = pod.spec.as_ref()?.containers.iter();
    containers.filter(|container| container.name == COMPUTE).find_map(|container| container.image.as_deref())
}

/// The condition of this type.
pub fn condition<'a>(pod: &'a Pod, type_: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_deref()?;
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the pod is not ready for the only reason that its node has not yet looked at what was reported on it.
pub fn is_ready_soon(pod: &Pod) -> bool {
    let waits = |ready: &PodCondition| ready.reason.as_deref() == Some(READINESS_GATES_NOT_READY);
    let holds = |type_: &str| condition(pod, type_).is_some_and(|condition| condition.status == "True");
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_deref()).unwrap_or_default();
    condition(pod, "Ready").is_some_and(waits) && gates.iter().all(|gate| holds(&gate.condition_type))
}

/// Whether the pod only lives to have volumes provisioned.
pub fn is_temporary(pod: &Pod) -> bool {
    pod.annotations().contains_key(annotations::EPHEMERAL_PROVISIONING)
}

/// Whether the pod has been told to go.
pub fn is_leaving(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether the pod has ended.
pub fn is_down(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether the pod, or the guest's container in it, has ended or soon will.
pub fn is_down_or_leaving(pod: &Pod) -> bool {
    is_down(pod) || is_leaving(pod) || compute(pod).is_some_and(|compute| exit_code(compute).is_some())
}

/// Whether the pod, or the guest's container in it, has failed or soon goes.
pub fn has_failed_or_leaves(pod: &Pod) -> bool {
    let compute_failed = compute(pod).and_then(exit_code).is_some_and(|code| code != 0);
    phase(pod) == "Failed" || is_leaving(pod) || compute_failed
}

/// Whether the node can take over: all containers are ready. The guest's container need only have been started, since
/// its readiness may be that of the guest.
pub fn can_take_over(pod: &Pod) -> bool {
    let ready = |container: &ContainerStatus| match container.name.as_str() {
        COMPUTE | ISTIO_PROXY => container.state.as_ref().is_some_and(|state| state.running.is_some()),
        _ => container.ready,
    };
    phase(pod) == "Running" && !is_down_or_leaving(pod) && containers(pod).iter().all(ready)
}

/// Why an image of the pod cannot be had, as a reason and a message.
pub fn image_trouble(pod: &Pod) -> Option<(&str, &str)> {
    let status = pod.status.as_ref()?;
    let init = status.init_container_statuses.as_deref().unwrap_or_default();
    let waiting = init.iter().chain(containers(pod)).filter_map(|it| it.state.as_ref()?.waiting.as_ref());
    let mut troubles =
        waiting.filter_map(|it| Some((it.reason.as_deref()?, it.message.as_deref().unwrap_or_default())));
    troubles.find(|(reason, _)| matches!(*reason, reasons::ERR_IMAGE_PULL | reasons::IMAGE_PULL_BACK_OFF))
}

/// Why the pod failed, as a reason and a message: what it says itself, or the container that was the first to fail.
pub fn failure(pod: &Pod) -> Option<(String, String)> {
    let status = pod.status.as_ref()?;
    if let Some(reason) = status.reason.as_ref().filter(|reason| !reason.is_empty()) {
        return Some((reason.clone(), status.message.clone().unwrap_or_default()));
    }
    let init = status.init_container_statuses.as_deref().unwrap_or_default();
    let ended = init.iter().chain(containers(pod)).filter_map(|container| {
        let end = container.state.as_ref()?.terminated.as_ref()?;
        (end.exit_code != 0).then_some((container.name.as_str(), end))
    });
    // Containers that start one after the other come in that order; the others fall when the first has.
    let (name, end) = ended.min_by_key(|(_, end)| (end.finished_at.is_none(), end.finished_at.clone()))?;
    Some((reasons::CONTAINER_FAILED.to_owned(), told(name, end)))
}

fn told(container: &str, end: &ContainerStateTerminated) -> String {
    let mut text =
        format!("container {container} of the virt-launcher pod failed with exit code {}", end.exit_code);
    // Of most that fail the node says no more than that.
    if let Some(reason) = end.reason.as_deref().filter(|reason| !matches!(*reason, "" | "Error")) {
        text = format!("{text} ({reason})");
    }
    match end.message.as_deref().map(str::trim).filter(|message| !message.is_empty()) {
        Some(message) => format!("{text}: {message}"),
        None => text,
    }
}

/// The pod that stands for the instance now: the newest of those on its node, or of all while it is on none. What
/// else there is belongs to a migration.
pub fn current<'a>(
    vmi: &VirtualMachineInstance,
    pods: impl IntoIterator<Item = &'a Arc<Pod>>,
) -> Option<&'a Arc<Pod>> {
    let on = vmi.status.as_ref().and_then(|status| status.node_name.as_deref()).unwrap_or_default();
    let here = pods.into_iter().filter(|pod| on.is_empty() || node(pod) == on);
    here.max_by_key(|pod| (pod.metadata.creation_timestamp.clone(), std::cmp::Reverse(pod.name_any())))
}

fn containers(pod: &Pod) -> &[ContainerStatus] {
    pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default()
}

fn compute(pod: &Pod) -> Option<&ContainerStatus> {
    containers(pod).iter().find(|container| container.name == COMPUTE)
}

fn exit_code(container: &ContainerStatus) -> Option<i32> {
    Some(container.state.as_ref()?.terminated.as_ref()?.exit_code)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(phase: &str, containers: Value) -> Pod {
        let status = json!({"phase": phase, "containerStatuses": containers});
        serde_json::from_value(json!({"status": status})).unwrap()
    }

    fn container(name: &str, ready: bool, state: Value) -> Value {
        json!({"name": name, "ready": ready, "state": state, "image": "", "imageID": "", "restartCount": 0})
    }

    #[test]
    fn the_guests_container_need_not_be_ready_but_all_others() {
        let running = || json!({"running": {}});
        let waiting = || json!({"waiting": {"reason": "ContainerCreating"}});
        let cases = [
            ("Running", json!([container("compute", false, running())]), true),
            ("Running", json!([container("compute", false, waiting())]), false),
            ("Pending", json!([container("compute", true, running())]), false),
            (
                "Running",
                json!([container("compute", true, running()), container("log", false, running())]),
                false,
            ),
            (
                "Running",
                json!([container("compute", true, running()), container("log", true, running())]),
                true,
            ),
            (
                "Running",
                json!([container("compute", true, running()), container("istio-proxy", false, running())]),
                true,
            ),
            ("Running", json!([container("compute", false, json!({"terminated": {"exitCode": 0}}))]), false),
        ];
        for (phase, containers, expected) in cases {
            assert_eq!(can_take_over(&pod(phase, containers.clone())), expected, "{phase} {containers}");
        }
    }

    #[test]
    fn a_pod_is_ready_soon_if_only_its_node_has_to_look_again() {
        let cases = [
            ("ReadinessGatesNotReady", [("mine", "True"), ("other", "True")], true),
            ("ReadinessGatesNotReady", [("mine", "True"), ("other", "False")], false),
            ("ReadinessGatesNotReady", [("mine", "True"), ("unknown", "True")], false),
            ("ContainersNotReady", [("mine", "True"), ("other", "True")], false),
            // As the cluster says of a pod whose node is lost.
            ("", [("mine", "True"), ("other", "True")], false),
        ];
        for (reason, said, expected) in cases {
            let mut said = said.map(|(type_, status)| json!({"type": type_, "status": status})).to_vec();
            said.push(json!({"type": "Ready", "status": "False", "reason": reason}));
            let gates = json!([{"conditionType": "mine"}, {"conditionType": "other"}]);
            let pod =
                json!({"spec": {"containers": [], "readinessGates": gates}, "status": {"conditions": said}});
            assert_eq!(is_ready_soon(&serde_json::from_value(pod).unwrap()), expected, "{said:?}");
        }
    }

    #[test]
    fn a_container_that_ended_well_is_down_but_has_not_failed() {
        let ended = |code: i32| {
            pod("Running", json!([container("compute", false, json!({"terminated": {"exitCode": code}}))]))
        };
        assert!(is_down_or_leaving(&ended(0)) && !has_failed_or_leaves(&ended(0)));
        assert!(is_down_or_leaving(&ended(1)) && has_failed_or_leaves(&ended(1)));
    }

    #[test]
    fn a_failed_pod_says_why_or_its_first_container_that_failed() {
        let ended = |name: &str, end: Value| container(name, false, json!({"terminated": end}));
        let at = |code: i32, second: u32| json!({"exitCode": code, "reason": "Error", "finishedAt": format!("2026-01-01T12:00:{second:02}Z")});
        let init = |end: Value| json!({"initContainerStatuses": [ended("image-init", end)]});
        let both = |log: Value, compute: Value| json!({"containerStatuses": [ended("log", log), ended("compute", compute)]});
        let failed = |name: &str, how: &str| {
            let text = format!("container {name} of the virt-launcher pod failed with exit code {how}");
            Some(("ContainerFailed".to_owned(), text))
        };
        let said = |reason: &str, message: &str| Some((reason.to_owned(), message.to_owned()));
        let killed = json!({"exitCode": 137, "reason": "OOMKilled"});
        let words = json!({"exitCode": 2, "reason": "StartError", "message": "no such file\n"});
        for (status, expected) in [
            (json!({}), None),
            (init(json!({"exitCode": 0})), None),
            (init(json!({"exitCode": 1})), failed("image-init", "1")),
            (init(killed), failed("image-init", "137 (OOMKilled)")),
            (init(words), failed("image-init", "2 (StartError): no such file")),
            (both(at(137, 9), at(1, 5)), failed("compute", "1")),
            (both(at(2, 4), at(137, 5)), failed("log", "2")),
            (both(at(0, 4), at(3, 5)), failed("compute", "3")),
            (both(json!({"exitCode": 2}), at(3, 5)), failed("compute", "3")),
            (json!({"reason": "Evicted", "message": "low on memory"}), said("Evicted", "low on memory")),
            (json!({"reason": "Evicted"}), said("Evicted", "")),
            (json!({"reason": "", "message": "nothing"}), None),
        ] {
            let pod: Pod = serde_json::from_value(json!({"status": status})).unwrap();
            assert_eq!(failure(&pod), expected, "{status}");
        }
    }
}
