//! What the processes of a pod may do: nothing that needs privileges.

use k8s_openapi::api::core::v1::{
    Capabilities, Container, Pod, PodSecurityContext, SELinuxOptions, SeccompProfile, SecurityContext,
};
use kubevirt_admission::{ClusterConfig, Gate};
use kubevirt_api::vmi::VirtualMachineInstance;

use super::{COMPUTE, Surroundings, USER, instance, text};

/// Answers DHCP requests of the guest, on a low port.
const BIND_SERVICE: &str = "NET_BIND_SERVICE";

/// Pins threads of other users; needed as root only, where QEMU may be another user.
const NICE: &str = "SYS_NICE";

/// What holds for all containers of a VMI's pod.
pub(super) fn pod(vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> PodSecurityContext {
    let root = instance::as_root(vmi);
    PodSecurityContext {
        // Volumes belong to the user that serves shared directories even if the machine runs as root.
        fs_group: Some(around.group),
        run_as_user: Some(if root { 0 } else { USER }),
        run_as_group: (!root).then_some(USER),
        run_as_non_root: (!root).then_some(true),
        seccomp_profile: seccomp(around.config),
        ..PodSecurityContext::default()
    }
}

/// The filter of system calls that the cluster chooses for machines.
fn seccomp(config: &ClusterConfig) -> Option<SeccompProfile> {
    let profile = config.configuration().seccomp_configuration.as_ref()?;
    let custom = profile.virtual_machine_instance_profile.as_ref()?.custom_profile.as_ref()?;
    let kind = |kind: &str| SeccompProfile { type_: kind.to_owned(), localhost_profile: None };
    match &custom.localhost_profile {
        Some(file) => Some(SeccompProfile { localhost_profile: Some(file.clone()), ..kind("Localhost") }),
        None if custom.runtime_default_profile == Some(true) => Some(kind("RuntimeDefault")),
        None => None,
    }
}

/// The container that runs the machine.
pub(super) fn compute(vmi: &VirtualMachineInstance) -> SecurityContext {
    let add = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    if instance::as_root(vmi) {
        return SecurityContext {
            run_as_user: Some(0),
            run_as_non_root: Some(false),
            capabilities: Some(Capabilities { add: add(&[BIND_SERVICE, NICE]), drop: None }),
            ..SecurityContext::default()
        };
    }
    SecurityContext {
        run_as_group: Some(USER),
        capabilities: Some(Capabilities { add: add(&[BIND_SERVICE]), drop: add(&["ALL"]) }),
        ..powerless()
    }
}

/// Any other container: no privileges at all.
pub(super) fn powerless() -> SecurityContext {
    SecurityContext {
        run_as_user: Some(USER),
        run_as_non_root: Some(true),
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities { add: None, drop: Some(vec!["ALL".to_owned()]) }),
        ..SecurityContext::default()
    }
}

/// Sets the SELinux types that the cluster chooses.
pub(super) fn confine(pod: &mut Pod, config: &ClusterConfig) {
    let kind = text(&config.configuration().selinux_launcher_type);
    let Some(spec) = &mut pod.spec else { return };
    if kind.is_some() {
        let options = SELinuxOptions { type_: kind.clone(), ..SELinuxOptions::default() };
        spec.security_context.get_or_insert_default().se_linux_options = Some(options);
    }
    if config.enabled(Gate::DockerSelinuxMcsWorkaround) {
        // With categories of their own, the other containers could not share files with the machine.
        for container in spec.containers.iter_mut().filter(|container| container.name != COMPUTE) {
            share(container, kind.clone());
        }
    }
}

fn share(container: &mut Container, kind: Option<String>) {
    let options = container.security_context.get_or_insert_default().se_linux_options.get_or_insert_default();
    options.type_ = kind;
    options.level = Some("s0".to_owned());
}
