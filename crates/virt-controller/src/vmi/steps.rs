//! What has to be done for an instance before its status can be told.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kubevirt_admission::Gate;
use kubevirt_api::names::finalizers;
use kubevirt_api::names::reasons::vmi as reasons;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use kubevirt_component::events::Kind;

use super::observe::Observed;
use super::plan::{Event, NewPod, Plan, Role, Step, Trouble};
use super::volumes::{self, Readiness};
use super::{hotplug, pods, state_claim, topology};

/// Decides what to do now, or what stands in the way.
pub fn decide(observed: &Observed, plan: &mut Plan) -> Result<(), Trouble> {
    if observed.pods.is_empty() && !observed.pods_confirmed && matters_if_gone(observed) {
        plan.steps.push(Step::LookForPods);
        return Ok(());
    }
    if observed.is_deleted() {
        delete_all(observed, plan);
        return Ok(());
    }
    if observed.is_final() {
        retire_attachments(observed, |_| true, plan);
        return Ok(());
    }
    retire_attachments(observed, pods::is_down, plan);
    let readiness = volumes::all(observed, plan)?;
    if observed.waits_for_sender() {
        return Ok(());
    }
    match observed.pod() {
        None => first_pod(observed, readiness, plan),
        Some(pod) => with_pod(observed, pod, readiness, plan),
    }
}

/// Whether it would be the end of something if there were no pod. A store may lag behind; then the API server is asked.
fn matters_if_gone(observed: &Observed) -> bool {
    let own = [finalizers::FOREGROUND_DELETE, finalizers::DEPRECATED_FOREGROUND_DELETE];
    let held = observed.vmi.metadata.finalizers.iter().flatten().any(|it| own.contains(&it.as_str()));
    let had_one = observed.status().active_pods.as_ref().is_some_and(|pods| !pods.is_empty());
    match observed.phase() {
        VmiPhase::Scheduling | VmiPhase::Scheduled | VmiPhase::Running => true,
        VmiPhase::Pending if had_one => true,
        VmiPhase::Succeeded | VmiPhase::Failed => held,
        _ => held && observed.is_deleted(),
    }
}

fn delete_all(observed: &Observed, plan: &mut Plan) {
    for pod in observed.pods.iter().filter(|pod| !pods::is_leaving(pod)) {
        let role = if pods::is_temporary(pod) { Role::Temporary } else { Role::Launcher };
        plan.steps.push(Step::DeletePod { pod: pod.clone(), role });
    }
}

fn retire_attachments(observed: &Observed, of: impl Fn(&Pod) -> bool, plan: &mut Plan) {
    for launcher in observed.pods.iter().filter(|pod| of(pod)) {
        for attachment in observed.attachments_of(launcher) {
            hotplug::delete(attachment, plan);
        }
    }
}

fn first_pod(observed: &Observed, readiness: Readiness, plan: &mut Plan) -> Result<(), Trouble> {
    // An instance has one life: once there was a pod, there is no second.
    if observed.phase() != VmiPhase::Pending
        || readiness == Readiness::NotReady
        || volumes::any_failed(observed)
    {
        return Ok(());
    }
    if observed.migrates {
        return Err(Trouble::waiting(reasons::FAILED_CREATE, "active migration exists"));
    }
    let hints = topology::hints(observed)?;
    check_container_paths(observed, plan)?;
    if !state_claim::decide(observed, plan)? {
        return Ok(());
    }
    let mut vmi = Box::new((*observed.vmi).clone());
    vmi.status.get_or_insert_default().topology_hints = hints;
    plan.steps.push(Step::CreatePod(match readiness {
        Readiness::WaitsForConsumer => NewPod::Provisioner(vmi),
        _ => NewPod::Launcher(vmi),
    }));
    Ok(())
}

fn with_pod(
    observed: &Observed,
    pod: &Arc<Pod>,
    readiness: Readiness,
    plan: &mut Plan,
) -> Result<(), Trouble> {
    if readiness != Readiness::WaitsForConsumer {
        retire_temporary(observed, plan);
    }
    if pods::is_temporary(pod) {
        return Ok(());
    }
    check_containers(observed, pod, plan)?;
    if pods::can_take_over(pod) {
        hotplug::decide(observed, pod, plan);
    }
    Ok(())
}

/// Deletes pods that have done, or will never do, what they were made for: to have volumes provisioned.
fn retire_temporary(observed: &Observed, plan: &mut Plan) {
    let temporary = observed.pods.iter().chain(&observed.attachments).filter(|pod| pods::is_temporary(pod));
    for pod in temporary {
        let done = matches!(pods::phase(pod), "Running" | "Succeeded" | "Failed");
        if done && !pods::is_leaving(pod) {
            plan.steps.push(Step::DeletePod { pod: pod.clone(), role: Role::Temporary });
        }
    }
}

/// Volumes that are folders of the launcher's container, shared with the guest.
fn container_paths(vmi: &VirtualMachineInstance) -> impl Iterator<Item = &str> {
    let filesystems = vmi.spec.domain.devices.filesystems.as_deref().unwrap_or_default();
    let volumes = vmi.spec.volumes.as_deref().unwrap_or_default();
    let paths = volumes.iter().filter(|volume| volume.container_path.is_some()).map(|it| it.name.as_str());
    paths.filter(|name| filesystems.iter().any(|it| it.name == *name))
}

fn check_container_paths(observed: &Observed, plan: &mut Plan) -> Result<(), Trouble> {
    let open = observed.config.enabled(Gate::ContainerPathVolumes);
    if open || container_paths(&observed.vmi).next().is_none() {
        return Ok(());
    }
    let message = "VMI has ContainerPath volumes but the ContainerPathVolumes feature gate is disabled";
    warn(plan, reasons::CONTAINER_PATH_VOLUMES_DISABLED, message)
}

fn check_containers(observed: &Observed, pod: &Pod, plan: &mut Plan) -> Result<(), Trouble> {
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let wanted = container_paths(&observed.vmi).map(|name| format!("virtiofs-{name}"));
    let missing: Vec<String> =
        wanted.filter(|name| !containers.iter().any(|container| container.name == *name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message =
        format!("pod is missing virtiofs containers for ContainerPath volumes: {}", missing.join(", "));
    warn(plan, reasons::MISSING_VIRTIOFS_CONTAINERS, &message)
}

fn warn(plan: &mut Plan, reason: &'static str, message: &str) -> Result<(), Trouble> {
    plan.events.push(Event { kind: Kind::Warning, reason, message: message.to_owned() });
    Err(Trouble::waiting(reason, message))
}
