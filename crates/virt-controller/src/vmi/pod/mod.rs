//! The pod that a VMI runs in, and the pods that hold its plugged volumes: pure functions, one topic per module.
//!
//! [`launcher`] makes the pod of a VMI from the VMI and its [`Surroundings`]; nothing is looked up. A pod has as many
//! containers as it needs: one, plus what a cluster without image volumes, a shared directory or a wish for a separate
//! console log adds.

mod affinity;
mod annotations;
mod attachment;
mod command;
mod environment;
mod error;
mod instance;
mod labels;
mod name;
mod networks;
mod nodes;
mod overhead;
mod probes;
mod quantities;
mod resources;
mod security;
mod sidecars;
mod support;
mod surroundings;
#[cfg(test)]
mod tests;
mod unsupported;
mod volumes;

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, LocalObjectReference, Pod, PodReadinessGate, PodResourceClaim, PodSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;
use kubevirt_api::names::conditions;
use kubevirt_api::quantity::Format;
use kubevirt_api::vmi::VirtualMachineInstance;

pub(in crate::vmi) use annotations::backup_hooks;
pub use attachment::{Attachment, attachment};
pub(in crate::vmi) use command::CONTAINER_DISK;
pub use command::{SHARED, TIMEOUT};
pub use error::NoPod;
pub use instance::claims;
pub use name::{attachment_name, launcher_name};
pub(in crate::vmi) use networks::selection;
pub use overhead::overhead;
pub use surroundings::{Claim, NamespaceFacts, Purpose, Surroundings};

use volumes::Volumes;

/// The container that runs the machine.
pub const COMPUTE: &str = "compute";

/// The user that launchers and QEMU run as.
pub const USER: i64 = 107;

/// The pod of a VMI, or why there can be none.
pub fn launcher(vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> Result<Pod, NoPod> {
    unsupported::check(vmi, around)?;
    let memory_overhead = overhead(vmi, around.config);
    let resources = resources::compute(vmi, around, memory_overhead)?;
    let volumes = volumes::of(vmi, around)?;
    let mut affinity = affinity::of(vmi, around.config);
    let reserved = labels::reservations(vmi, around);
    affinity::keep_apart(&mut affinity, reserved.keys());

    let sidecars = sidecars::of(vmi, around);
    let compute = Container { resources: Some(resources), ..compute(vmi, around, &volumes) };
    let mut labels = labels::of(vmi);
    labels.extend(reserved);
    let mut annotations = annotations::of(vmi, around);
    annotations::note_overhead(&mut annotations, around.config, memory_overhead);
    let spec = PodSpec {
        containers: std::iter::once(compute).chain(sidecars.beside).collect(),
        init_containers: some(sidecars.before),
        volumes: some(volumes.volumes),
        affinity,
        ..spec(vmi, around)
    };
    let mut pod = Pod {
        metadata: ObjectMeta {
            name: Some(name::of(vmi, around)),
            namespace: vmi.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: Some(vec![owner(vmi)]),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    };
    security::confine(&mut pod, around.config);
    Ok(pod)
}

/// What of the pod is neither a container nor a volume.
fn spec(vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> PodSpec {
    let own = &vmi.spec;
    let account = instance::volume_account(vmi);
    PodSpec {
        hostname: Some(vmi.hostname()),
        subdomain: text(&own.subdomain),
        security_context: Some(security::pod(vmi, around)),
        termination_grace_period_seconds: Some(command::grace_period(vmi) + command::GRACE_MARGIN),
        restart_policy: Some("Never".to_owned()),
        node_selector: Some(nodes::selector(vmi, around.config)),
        image_pull_secrets: some(pull_secrets(vmi, around)),
        dns_config: own.dns_config.clone(),
        dns_policy: text(&own.dns_policy),
        readiness_gates: Some(vec![PodReadinessGate {
            condition_type: conditions::pod::VIRTUAL_MACHINE_UNPAUSED.to_owned(),
        }]),
        enable_service_links: Some(false),
        scheduler_name: text(&own.scheduler_name),
        tolerations: own.tolerations.clone(),
        topology_spread_constraints: own.topology_spread_constraints.clone(),
        resource_claims: own.resource_claims.as_ref().map(|claims| claims.iter().map(claim).collect()),
        runtime_class_name: text(&around.config.configuration().default_runtime_class),
        priority_class_name: text(&own.priority_class_name),
        service_account_name: text(&own.service_account_name).or(account.clone()),
        automount_service_account_token: Some(account.is_some() || labels::gets_a_proxy(vmi)),
        ..PodSpec::default()
    }
}

fn compute(vmi: &VirtualMachineInstance, around: &Surroundings<'_>, volumes: &Volumes) -> Container {
    Container {
        name: COMPUTE.to_owned(),
        image: Some(around.launcher_image.to_owned()),
        image_pull_policy: around.config.configuration().image_pull_policy.clone(),
        command: Some(command::of(vmi, around)),
        env: Some(environment::of(vmi, around.config)),
        volume_mounts: Some(volumes.mounts.clone()),
        volume_devices: some(volumes.devices.clone()),
        ports: some(ports(vmi)),
        readiness_probe: probes::of(vmi, vmi.spec.readiness_probe.as_ref()),
        liveness_probe: probes::of(vmi, vmi.spec.liveness_probe.as_ref()),
        security_context: Some(security::compute(vmi)),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..Container::default()
    }
}

fn owner(vmi: &VirtualMachineInstance) -> OwnerReference {
    OwnerReference {
        api_version: VirtualMachineInstance::api_version(&()).into_owned(),
        kind: VirtualMachineInstance::kind(&()).into_owned(),
        name: vmi.metadata.name.clone().unwrap_or_default(),
        uid: vmi.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

fn ports(vmi: &VirtualMachineInstance) -> Vec<ContainerPort> {
    let ports = instance::interfaces(vmi).flat_map(|interface| interface.ports.iter().flatten());
    let port = |port: &kubevirt_api::vmi::network::Port| ContainerPort {
        name: text(&port.name),
        protocol: Some(text(&port.protocol).unwrap_or_else(|| "TCP".to_owned())),
        container_port: port.port,
        ..ContainerPort::default()
    };
    ports.map(port).collect()
}

fn pull_secrets(vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> Vec<LocalObjectReference> {
    let disks = instance::volumes(vmi).filter_map(|volume| volume.container_disk.as_ref());
    let disks = disks.filter_map(|disk| text(&disk.image_pull_secret));
    let kernel = instance::kernel_container(vmi).and_then(|kernel| text(&kernel.image_pull_secret));
    let mut names: Vec<String> = Vec::new();
    for name in disks.chain(kernel).chain(around.pull_secrets.iter().cloned()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.into_iter().map(|name| LocalObjectReference { name }).collect()
}

fn claim(claim: &kubevirt_api::vmi::host_devices::ResourceClaim) -> PodResourceClaim {
    PodResourceClaim {
        name: claim.name.clone(),
        resource_claim_name: claim.resource_claim_name.clone(),
        resource_claim_template_name: claim.resource_claim_template_name.clone(),
    }
}

/// The format of memory that nobody wrote.
const MEMORY: Format = Format::BinarySi;

/// A text that says something.
fn text(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.is_empty())
}

/// A list that holds something.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}
