//! The pod that holds volumes on the node of a running machine, so that they can be plugged into it.

use std::collections::BTreeMap;

use k8s_openapi::Resource;
use k8s_openapi::api::core::v1::{
    Affinity, Container, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    PersistentVolumeClaimVolumeSource, Pod, PodSpec, SELinuxOptions, SeccompProfile, SecurityContext,
    Toleration, Volume, VolumeDevice,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kubevirt_api::kubevirt::configuration::SupportContainerType;
use kubevirt_api::names::external::kubernetes;
use kubevirt_api::names::{annotations, labels, values};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VolumePhase;
use kubevirt_api::vmi::volumes::{UtilityVolume, Volume as VmiVolume};

use super::command::CONTAINER_DISK;
use super::error::NoPod;
use super::surroundings::Surroundings;
use super::volumes::{HOTPLUG_DISKS, folder, followed, mount};
use super::{instance, name, security, some, support, text};

/// Where the pod sees the folder of plugged volumes.
const FOLDER: &str = "/path";

/// Troubles of a node that a plugged volume does not mind: the machine is there already.
const TOLERATED: [&str; 5] = [
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unschedulable",
];

/// A volume to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attachment<'a> {
    /// Its name in the VMI.
    pub volume: &'a str,
    /// Its claim.
    pub claim: &'a str,
}

impl<'a> Attachment<'a> {
    /// A volume of a VMI, if it is on a claim that can be plugged.
    pub fn of(volume: &'a VmiVolume) -> Option<Self> {
        let dump = volume.memory_dump.as_ref().map(|dump| dump.claim_name.as_str());
        let claim = instance::claim_of(volume).filter(|_| volume.ephemeral.is_none()).or(dump)?;
        Some(Self { volume: &volume.name, claim })
    }

    /// A volume that the guest does not see.
    pub fn of_utility(volume: &'a UtilityVolume) -> Self {
        Self { volume: &volume.name, claim: &volume.claim_name }
    }
}

/// The pod that holds these volumes for the machine in the pod `launcher`.
///
/// A claim that is not in the surroundings is waited for by the pod. `attempt` of the surroundings counts the pods that
/// were made for the same volumes.
pub fn attachment(
    launcher: &Pod,
    vmi: &VirtualMachineInstance,
    held: &[Attachment<'_>],
    around: &Surroundings<'_>,
) -> Result<Pod, NoPod> {
    let uid = launcher.metadata.uid.as_deref().unwrap_or_default();
    let node = launcher.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
    let name = name::attachment_name(uid, held.iter().map(|held| held.volume), around.attempt);
    let holder = holder(vmi, held, around)?;
    Ok(Pod {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: launcher.metadata.namespace.clone(),
            labels: Some([(labels::APP.to_owned(), values::app::HOTPLUG_DISK.to_owned())].into()),
            annotations: Some(whose(vmi)),
            owner_references: Some(vec![owner(launcher)]),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            containers: vec![holder],
            affinity: Some(on_node(node)),
            tolerations: Some(tolerations(launcher)),
            volumes: Some(volumes(held)),
            image_pull_secrets: some(
                around.pull_secrets.iter().map(|name| reference(name)).collect::<Vec<_>>(),
            ),
            termination_grace_period_seconds: Some(0),
            automount_service_account_token: Some(false),
            ..PodSpec::default()
        }),
        status: None,
    })
}

fn reference(name: &str) -> k8s_openapi::api::core::v1::LocalObjectReference {
    k8s_openapi::api::core::v1::LocalObjectReference { name: name.to_owned() }
}

/// The VMI that the volumes are for: the pod's owner is only its launcher.
fn whose(vmi: &VirtualMachineInstance) -> BTreeMap<String, String> {
    let metadata = &vmi.metadata;
    [(annotations::OWNER_VMI_NAME, &metadata.name), (annotations::OWNER_VMI_UID, &metadata.uid)]
        .map(|(name, value)| (name.to_owned(), value.clone().unwrap_or_default()))
        .into()
}

fn owner(launcher: &Pod) -> OwnerReference {
    OwnerReference {
        api_version: Pod::API_VERSION.to_owned(),
        kind: Pod::KIND.to_owned(),
        name: launcher.metadata.name.clone().unwrap_or_default(),
        uid: launcher.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The container that holds the volumes: it listens in a folder where the handler finds it, and waits.
fn holder(
    vmi: &VirtualMachineInstance,
    held: &[Attachment<'_>],
    around: &Surroundings<'_>,
) -> Result<Container, NoPod> {
    let mut mounts = vec![followed(HOTPLUG_DISKS, FOLDER)];
    let mut devices = Vec::new();
    for held in held {
        let Some(claim) = around.claims.get(held.claim) else { continue };
        if claim.block {
            let device_path = format!("{FOLDER}/{}/{}", held.volume, claim.uid);
            devices.push(VolumeDevice { name: held.volume.to_owned(), device_path });
        } else if !is_mounted(vmi, held.volume) {
            mounts.push(mount(held.volume, &format!("/{}", held.volume)));
        }
    }
    let config = around.config;
    let kind = SupportContainerType::HotplugDisk;
    Ok(Container {
        name: values::app::HOTPLUG_DISK.to_owned(),
        image: Some(around.launcher_image.to_owned()),
        image_pull_policy: config.configuration().image_pull_policy.clone(),
        command: Some([CONTAINER_DISK, "--copy-path", &format!("{FOLDER}/hp")].map(str::to_owned).to_vec()),
        resources: Some(support::resources(config, &kind, &support::HOTPLUG, false)),
        security_context: Some(SecurityContext {
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                localhost_profile: None,
            }),
            se_linux_options: Some(SELinuxOptions {
                type_: text(&config.configuration().selinux_launcher_type),
                level: Some(level(vmi)?),
                ..SELinuxOptions::default()
            }),
            ..security::powerless()
        }),
        volume_mounts: Some(mounts),
        volume_devices: some(devices),
        ..Container::default()
    })
}

/// What is in the launcher's pod already need not be mounted in this one again.
fn is_mounted(vmi: &VirtualMachineInstance, volume: &str) -> bool {
    let known = vmi.status.iter().flat_map(|status| status.volume_status.iter().flatten());
    let phase = known.into_iter().find(|known| known.name == volume && known.hotplug_volume.is_some());
    let phase = phase.and_then(|known| known.phase.as_ref());
    matches!(phase, Some(VolumePhase::Ready | VolumePhase::MountedToPod))
}

/// The SELinux level of the machine, which must be able to read what this pod mounts.
fn level(vmi: &VirtualMachineInstance) -> Result<String, NoPod> {
    let status = vmi.status.as_ref();
    let source = || {
        let state = status?.migration_state.as_ref()?.source_state.as_ref()?;
        text(&state.selinux_context)
    };
    let own = status.and_then(|status| text(&status.selinux_context));
    let context = own.or_else(source).ok_or(NoPod::MissingSelinuxContext)?;
    if context == "none" {
        return Ok("s0".to_owned());
    }
    let level = context.splitn(4, ':').nth(3).map(str::to_owned);
    level.ok_or_else(|| {
        NoPod::unsupported("status.selinuxContext", format!("{context:?} is no context of SELinux"))
    })
}

fn on_node(node: String) -> Affinity {
    let requirement = NodeSelectorRequirement {
        key: kubernetes::HOSTNAME.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node]),
    };
    let term = NodeSelectorTerm { match_expressions: Some(vec![requirement]), ..NodeSelectorTerm::default() };
    let required = NodeSelector { node_selector_terms: vec![term] };
    let nodes = NodeAffinity {
        required_during_scheduling_ignored_during_execution: Some(required),
        ..NodeAffinity::default()
    };
    Affinity { node_affinity: Some(nodes), ..Affinity::default() }
}

fn tolerations(launcher: &Pod) -> Vec<Toleration> {
    let tolerated = TOLERATED.map(|key| Toleration {
        key: Some(key.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some("NoSchedule".to_owned()),
        ..Toleration::default()
    });
    let own = launcher.spec.iter().flat_map(|spec| spec.tolerations.iter().flatten()).cloned();
    let mut all: Vec<Toleration> = tolerated.into_iter().chain(own).collect();
    all.sort_by(|one, other| one.key.cmp(&other.key));
    all.dedup();
    all
}

fn volumes(held: &[Attachment<'_>]) -> Vec<Volume> {
    let volume = |held: &Attachment<'_>| Volume {
        name: held.volume.to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: held.claim.to_owned(),
            read_only: None,
        }),
        ..Volume::default()
    };
    std::iter::once(folder(HOTPLUG_DISKS)).chain(held.iter().map(volume)).collect()
}
