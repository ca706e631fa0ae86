//! What can be said from the pod of an instance.

use k8s_openapi::api::core::v1::{ContainerStatus, PodCondition};
use kubevirt_api::names::{conditions, reasons};
use kubevirt_api::vmi::status::VmiPhase;
use kubevirt_api::vmi::volumes::ContainerDiskSource;

use super::super::evidence::Evidence;
use super::super::explain::Explanation;
use super::super::scheduler;

/// What a container disk's container is called, before the name of its volume.
const DISK_CONTAINER: &str = "volume";

/// Why a container waits for an image.
const NO_IMAGE: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "RegistryUnavailable",
    "ImageInspectError",
];

/// What a kubelet says of an image that it could not pull, before its name.
const FAILED: &str = "Failed to pull image";

/// Whether the guest has not begun.
fn before_start(e: &Evidence) -> bool {
    matches!(
        e.phase(),
        None | Some(VmiPhase::Pending | VmiPhase::Scheduling | VmiPhase::Scheduled | VmiPhase::Other(_))
    )
}

/// The pod could not be made.
pub fn refused(e: &Evidence) -> Option<Explanation> {
    if e.pod.is_some() || e.vmi.is_none() {
        return None;
    }
    let synchronized = e.vmi_condition(conditions::vmi::SYNCHRONIZED).filter(|c| !c.is_true());
    let refusals = [reasons::vmi::FAILED_CREATE, reasons::vmi::FAILED_CREATE_VALIDATION];
    let said = synchronized.filter(|c| c.reason.as_deref().is_some_and(|reason| refusals.contains(&reason)));
    let message = said
        .and_then(|c| c.message.clone())
        .or_else(|| e.warning(&refusals).map(|event| event.message.clone()))?;
    let (what, next) = if message.contains("exceeded quota") {
        ("does not fit into the namespace's quota", "Make room, or ask for more: kubectl describe quota")
    } else if message.contains("PodSecurity") || message.contains("violates") {
        (
            "is refused by the namespace's security rules",
            "Ask an administrator which Pod security level the namespace has.",
        )
    } else {
        ("cannot be started: its pod could not be made", "Correct what the message names.")
    };
    Some(Explanation::new("pod-refused", what).because(message).next(next))
}

/// No node takes the pod.
pub fn unschedulable(e: &Evidence) -> Option<Explanation> {
    if !before_start(e) {
        return None;
    }
    let condition = pod_condition(e, "PodScheduled").filter(|c| c.status == "False");
    let copied = e.vmi_condition("PodScheduled").filter(|c| c.status == "False");
    let message = match (condition, copied) {
        (Some(condition), _) => condition.message.clone()?,
        (None, Some(copied)) if e.pod.is_none() => copied.message.clone()?,
        _ => return None,
    };
    let selector =
        e.pod.as_ref().and_then(|pod| pod.spec.as_ref()?.node_selector.clone()).unwrap_or_default();
    let hints = scheduler::hints(&message, &selector);
    let what = match hints.first() {
        Some(hint) => format!("cannot be placed: {}", hint.what),
        None => "cannot be placed: no node takes it".to_owned(),
    };
    let mut told = Explanation::new("unschedulable", what).because(format!("Scheduler: {message}"));
    for hint in hints.iter().skip(1) {
        told = told.because(format!("Also: {}.", hint.what));
    }
    for hint in hints {
        told = told.next(hint.next);
    }
    if told.next.is_empty() {
        told =
            told.next(format!("Look at the pod: kubectl describe pod {} -n {}", e.pod_name(), e.namespace));
    }
    Some(told)
}

/// An image cannot be pulled.
pub fn image(e: &Evidence) -> Option<Explanation> {
    let (image, message) = unpulled(e).filter(|_| before_start(e))?;
    let which = image.map(|image| format!("the image {image}")).unwrap_or_else(|| "an image".to_owned());
    let next = match message.as_str() {
        m if m.contains("not found") || m.contains("manifest unknown") => "Check the image's name and tag.",
        m if m.contains("unauthorized") || m.contains("denied") || m.contains("authentication") => {
            "Add a pull secret to the volume (imagePullSecret), or make the image public."
        }
        m if m.contains("x509") || m.contains("HTTP response to HTTPS") => {
            "Let the nodes' container runtime trust the registry."
        }
        m if m.contains("lookup") || m.contains("timeout") || m.contains("refused") => {
            "See whether the nodes reach the registry."
        }
        _ => "Check the image's name, the registry, and the credentials for it.",
    };
    Some(
        Explanation::new("image-pull", format!("waits for {which}, which cannot be pulled"))
            .because(message)
            .next(next),
    )
}

/// An image that could not be pulled, if it is known which, and what is said of it.
fn unpulled(e: &Evidence) -> Option<(Option<String>, String)> {
    let waiting = containers(e).into_iter().find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        NO_IMAGE.contains(&waiting.reason.as_deref()?).then_some((container, waiting))
    });
    let warnings: Vec<&str> =
        e.events.iter().rev().filter(|event| event.warning).map(|event| event.message.as_str()).collect();
    let told = |words: &str| warnings.iter().find(|said| said.contains(words)).copied();
    // Containers wait also for images that are volumes, whose names only events tell.
    let own = waiting.and_then(|(container, _)| told(&format!("{FAILED} \"{}\"", container.image)));
    let of_container = waiting.map(|(container, _)| image_of(container));
    let (image, attempt) = match (own, told(FAILED)) {
        (Some(own), _) => (of_container, Some(own)),
        (None, Some(other)) => (quoted(other).map(|image| with_disk(e, image)).or(of_container), Some(other)),
        (None, None) => (of_container, None),
    };
    // What was said of an attempt tells more than that it is tried again.
    let said = waiting.map(|(_, waiting)| waiting.message.as_deref().unwrap_or_default());
    let message = attempt.or(said).or_else(|| told("ImagePullBackOff"))?;
    Some((image, message.to_owned()))
}

/// The image of a container, and the disk that it brings.
fn image_of(container: &ContainerStatus) -> String {
    match container.name.strip_prefix(DISK_CONTAINER) {
        Some(volume) => {
            format!("{} (the disk {})", container.image, volume.trim_start_matches("containerdisk-"))
        }
        None => container.image.clone(),
    }
}

/// An image, and the disk that it brings.
fn with_disk(e: &Evidence, image: &str) -> String {
    let volumes = e.vmi.iter().flat_map(|vmi| vmi.spec.volumes.iter().flatten());
    let brings = |disk: &ContainerDiskSource| disk.image == image;
    match volumes.into_iter().find(|volume| volume.container_disk.as_ref().is_some_and(brings)) {
        Some(volume) => format!("{image} (the disk {})", volume.name),
        None => image.to_owned(),
    }
}

/// What is in the first quotes of a text.
fn quoted(text: &str) -> Option<&str> {
    text.split('"').nth(1)
}

/// A volume cannot be attached or mounted.
pub fn mount(e: &Evidence) -> Option<Explanation> {
    if !before_start(e) || containers(e).iter().any(|container| container.ready) {
        return None;
    }
    let event = e.warning(&["FailedMount", "FailedAttachVolume", "FailedMapVolume"])?;
    let multi = event.message.contains("Multi-Attach");
    let told = Explanation::new("mount", "waits for a volume that its node cannot mount")
        .because(event.message.clone());
    Some(if multi {
        told.next("The volume is in use on another node: stop what uses it, or use one that several nodes can mount.")
    } else {
        told.next("See whether the storage driver is well: kubectl get csidrivers,csinodes")
    })
}

/// A container of the pod does not start, or has ended.
pub fn container(e: &Evidence) -> Option<Explanation> {
    if !before_start(e) {
        return None;
    }
    for container in containers(e) {
        let state = container.state.as_ref()?;
        let last = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
        let waiting = state.waiting.as_ref().filter(|waiting| {
            !matches!(waiting.reason.as_deref(), Some("ContainerCreating" | "PodInitializing") | None)
        });
        let ended = state.terminated.as_ref().or(last).filter(|ended| ended.exit_code != 0);
        if waiting.is_none() && ended.is_none() {
            continue;
        }
        let reason = waiting.and_then(|waiting| waiting.reason.clone());
        let mut told = Explanation::new(
            "container",
            format!("cannot start: the container {} of its pod fails", container.name),
        )
        .because(reason.map(|reason| format!("It is in {reason}.")).unwrap_or_default())
        .because(waiting.and_then(|waiting| waiting.message.clone()).unwrap_or_default());
        if let Some(ended) = ended {
            let reason = ended.reason.clone().unwrap_or_default();
            told = told
                .because(format!("It ended with code {} {reason}", ended.exit_code).trim_end().to_owned());
        }
        for line in e.log.iter().rev().take(3).rev() {
            told = told.because(format!("Log: {line}"));
        }
        return Some(told.next(format!(
            "Read all of it: kubectl logs {} -n {} -c {}",
            e.pod_name(),
            e.namespace,
            container.name
        )));
    }
    None
}

fn pod_condition<'a>(e: &'a Evidence, type_: &str) -> Option<&'a PodCondition> {
    e.pod.as_ref()?.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == type_)
}

/// The containers of the pod, those first that run first.
fn containers(e: &Evidence) -> Vec<&ContainerStatus> {
    let Some(status) = e.pod.as_ref().and_then(|pod| pod.status.as_ref()) else { return Vec::new() };
    let first = status.init_container_statuses.iter().flatten();
    first.chain(status.container_statuses.iter().flatten()).collect()
}
