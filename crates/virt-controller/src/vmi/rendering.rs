//! How the pods of an instance are made: the seam to the renderer.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, PersistentVolumeClaimVolumeSource, Pod, PodSpec, Volume as PodVolume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use kubevirt_admission::ClusterConfig;
use kubevirt_api::names::{annotations, labels, values::app};
use kubevirt_api::vmi::VirtualMachineInstance;

use super::observe::Observed;
use super::plan::{NewPod, Trouble};
use super::{names, pods, state_claim};
use crate::context::{Context, claim_name};

/// The pod, as it is to be made.
pub async fn render(_: &Context, observed: &Observed, new: &NewPod) -> Result<Pod, Trouble> {
    Ok(match new {
        NewPod::Launcher(vmi) => launcher(observed, vmi, false),
        NewPod::Provisioner(vmi) => launcher(observed, vmi, true),
        NewPod::Attachment { launcher, volumes } => {
            let volumes = volumes.iter().map(|it| (it.name.as_str(), claim_name(it).unwrap_or_default()));
            holder(observed, launcher, &volumes.collect::<Vec<_>>(), false)
        }
        NewPod::Trigger { launcher, volume } => {
            holder(observed, launcher, &[(&volume.name, claim_name(volume).unwrap_or_default())], true)
        }
    })
}

/// The networks that Multus should attach, as its annotation lists them.
pub fn selection(_: &VirtualMachineInstance, _: &ClusterConfig) -> Option<String> {
    None
}

/// What has Velero still the guest's file systems; nothing if these annotations are not looked after.
pub fn backup_hooks(_: &VirtualMachineInstance, _: &ClusterConfig) -> Option<BTreeMap<String, String>> {
    None
}

fn launcher(observed: &Observed, vmi: &VirtualMachineInstance, temporary: bool) -> Pod {
    let uid = vmi.uid().unwrap_or_default();
    let marks = [(labels::APP, app::LAUNCHER), (labels::CREATED_BY, uid.as_str())];
    let suffix = names::hash(format!("{uid}/{temporary}").as_bytes());
    let mut pod = Pod {
        metadata: ObjectMeta {
            name: Some(format!("virt-launcher-{}-{suffix:x}", vmi.name_any())),
            namespace: vmi.namespace(),
            labels: Some(marks.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
            owner_references: Some(vec![state_claim::owner(vmi)]),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec { containers: vec![container(observed, pods::COMPUTE)], ..PodSpec::default() }),
        status: None,
    };
    if temporary {
        pod.annotations_mut().insert(annotations::EPHEMERAL_PROVISIONING.to_owned(), "true".to_owned());
    }
    pod
}

fn holder(observed: &Observed, launcher: &Pod, volumes: &[(&str, &str)], temporary: bool) -> Pod {
    let owner = OwnerReference {
        block_owner_deletion: Some(true),
        ..launcher.controller_owner_ref(&()).unwrap_or_default()
    };
    let claims = volumes.iter().map(|(name, claim)| PodVolume {
        name: (*name).to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: (*claim).to_owned(),
            read_only: None,
        }),
        ..PodVolume::default()
    });
    let suffix = names::hash(format!("{}/{volumes:?}/{temporary}", owner.uid).as_bytes());
    let mut pod = Pod {
        metadata: ObjectMeta {
            name: Some(format!("hp-volume-{suffix:x}")),
            namespace: launcher.namespace(),
            labels: Some([(labels::APP.to_owned(), app::HOTPLUG_DISK.to_owned())].into()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            containers: vec![container(observed, app::HOTPLUG_DISK)],
            volumes: Some(claims.collect()),
            ..PodSpec::default()
        }),
        status: None,
    };
    if temporary {
        pod.annotations_mut().insert(annotations::EPHEMERAL_PROVISIONING.to_owned(), "true".to_owned());
    }
    pod
}

fn container(observed: &Observed, name: &str) -> Container {
    let image = Some(observed.settings.launcher_image.clone());
    Container { name: name.to_owned(), image, ..Container::default() }
}
