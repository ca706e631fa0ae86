//! Gathers what shapes the pods of an instance and is not in it, and has them made.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod, ResourceQuota};
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kubevirt_admission::{ClusterConfig, Gate};
use kubevirt_api::names::external::multus;
use kubevirt_api::names::reasons::vmi as reasons;
use kubevirt_api::names::{annotations, groups, labels};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_component::{NamespacedName, patch};

use super::names;
use super::observe::Observed;
use super::plan::{NewPod, Trouble};
use super::pod::{self, Attachment, Claim, NamespaceFacts, NoPod, Purpose, Surroundings};
use crate::context::{Context, index};

/// The pod, as it is to be made, or why there can be none.
pub async fn render(context: &Context, observed: &Observed, new: &NewPod) -> Result<Pod, Trouble> {
    let mut around = surroundings(context, observed);
    let made = match new {
        NewPod::Launcher(vmi) => {
            around.network_resources = network_resources(context, vmi, &observed.config).await?;
            pod::launcher(vmi, &around)
        }
        NewPod::Provisioner(vmi) => {
            around.network_resources = network_resources(context, vmi, &observed.config).await?;
            pod::launcher(vmi, &Surroundings { purpose: Purpose::Provision, ..around })
        }
        NewPod::Attachment { launcher, volumes } => {
            let held: Vec<Attachment<'_>> = volumes.iter().filter_map(Attachment::of).collect();
            around.attempt = attempt("", volumes);
            pod::attachment(launcher, &observed.vmi, &held, &around)
        }
        NewPod::Trigger { launcher, volume } => {
            let volumes = std::slice::from_ref(&**volume);
            let held: Vec<Attachment<'_>> = volumes.iter().filter_map(Attachment::of).collect();
            around.attempt = attempt("trigger", volumes);
            pod::attachment(launcher, &observed.vmi, &held, &around).map(as_trigger)
        }
    };
    made.map_err(|no_pod| trouble(&no_pod))
}

/// Another claim behind the same name makes another pod.
fn attempt(purpose: &str, volumes: &[Volume]) -> u32 {
    let claims: Vec<&str> = volumes.iter().filter_map(crate::context::claim_name).collect();
    let number = names::hash(format!("{purpose}/{}", claims.join("/")).as_bytes());
    u32::try_from(number % u64::from(u32::MAX)).unwrap_or_default()
}

/// A pod that holds a volume only until it was scheduled.
fn as_trigger(mut pod: Pod) -> Pod {
    pod.annotations_mut().insert(annotations::EPHEMERAL_PROVISIONING.to_owned(), "true".to_owned());
    let spec = pod.spec.get_or_insert_default();
    spec.restart_policy = Some("Never".to_owned());
    for container in &mut spec.containers {
        container.command = Some([pod::CONTAINER_DISK, "--no-op"].map(str::to_owned).to_vec());
    }
    pod
}

fn trouble(no_pod: &NoPod) -> Trouble {
    let message = no_pod.to_string();
    match no_pod {
        // It is noticed when these come.
        NoPod::MissingClaim(_) => Trouble::waiting(reasons::FAILED_PVC_NOT_FOUND, message),
        NoPod::MissingStateClaim | NoPod::MissingSelinuxContext => {
            Trouble::waiting(reasons::FAILED_CREATE, message)
        }
        NoPod::MissingNetwork(_) | NoPod::Unsupported(_) => Trouble::passing(reasons::FAILED_CREATE, message),
    }
}

fn surroundings<'a>(context: &Context, observed: &'a Observed) -> Surroundings<'a> {
    let secret = &observed.settings.image_pull_secret;
    let claims = observed.claims.iter().map(|(name, claim)| (name.clone(), Claim::from(claim.as_ref())));
    let state = observed.storage.state.as_ref();
    Surroundings {
        timeout: observed.settings.launcher_qemu_timeout,
        group: observed.settings.launcher_subgid,
        pull_secrets: (!secret.is_empty()).then(|| secret.clone()).into_iter().collect(),
        claims: claims.collect(),
        state_claim: state.map(|claim| claim.name_any()),
        image_volumes: observed.config.enabled(Gate::ImageVolume) && all_mount_images(context),
        namespace: namespace_facts(context, &observed.vmi.namespace().unwrap_or_default()),
        ..Surroundings::new(&observed.config, &observed.settings.launcher_image)
    }
}

fn namespace_facts(context: &Context, name: &str) -> NamespaceFacts {
    let namespace = context.stores.namespaces.get(&NamespacedName::new("", name));
    let quotas = context.stores.quotas.by(index::NAMESPACE, name);
    let counts = |resource: &str| {
        let hard = |quota: &ResourceQuota| quota.spec.as_ref()?.hard.as_ref()?.get(resource).cloned();
        quotas.iter().any(|quota| hard(quota).is_some())
    };
    NamespaceFacts {
        labels: namespace.map(|namespace| namespace.labels().clone()).unwrap_or_default(),
        quota_of_cpu_limits: counts("limits.cpu"),
        quota_of_memory_limits: counts("limits.memory"),
    }
}

/// Whether every node that takes guests can mount images as volumes.
fn all_mount_images(context: &Context) -> bool {
    let nodes = context.stores.nodes.all();
    let takes_guests =
        |node: &Node| node.labels().get(labels::NODE_SCHEDULABLE).is_some_and(|it| it == "true");
    let mut takers = nodes.iter().filter(|node| takes_guests(node)).peekable();
    takers.peek().is_some() && takers.all(|node| mounts_images(node))
}

/// Kubelets do by default since 1.35, if their runtime does: containerd since 2.1, CRI-O since 1.33.
fn mounts_images(node: &Node) -> bool {
    let Some(info) = node.status.as_ref().and_then(|status| status.node_info.as_ref()) else { return false };
    let (runtime, version) = info.container_runtime_version.split_once("://").unwrap_or_default();
    let can = match runtime {
        "containerd" => at_least(version, (2, 1)),
        "cri-o" => at_least(version, (1, 33)),
        _ => false,
    };
    can && at_least(&info.kubelet_version, (1, 35))
}

fn at_least(version: &str, wanted: (u32, u32)) -> bool {
    let mut parts = version.trim_start_matches('v').split(['.', '-', '+']).map(str::parse::<u32>);
    matches!((parts.next(), parts.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= wanted)
}

/// The device resources that networks need. They are looked up only where nothing else adds them to pods.
async fn network_resources(
    context: &Context,
    vmi: &VirtualMachineInstance,
    config: &ClusterConfig,
) -> Result<BTreeMap<String, String>, Trouble> {
    let mut found = BTreeMap::new();
    if config.enabled(Gate::ExternalNetResourceInjection) {
        return Ok(found);
    }
    let kind = GroupVersionKind::gvk(groups::NETWORK_ATTACHMENT, "v1", "NetworkAttachmentDefinition");
    let kind = ApiResource::from_gvk_with_plural(&kind, "network-attachment-definitions");
    let own = vmi.namespace().unwrap_or_default();
    for network in vmi.spec.networks.iter().flatten() {
        let Some(multus) = &network.multus else { continue };
        let (namespace, name) = multus.network_name.split_once('/').unwrap_or((&own, &multus.network_name));
        let api: Api<DynamicObject> = Api::namespaced_with(context.client.clone(), namespace, &kind);
        match api.get(name).await {
            Ok(definition) => {
                let resource = definition.annotations().get(multus::RESOURCE_NAME).cloned();
                found.insert(network.name.clone(), resource.unwrap_or_default());
            }
            // The renderer says which is missing.
            Err(error) if patch::is_gone(&error) => {}
            Err(error) => return Err(Trouble::passing(reasons::FAILED_CREATE, error.to_string())),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn images_are_volumes_where_kubelet_and_runtime_are_new_enough() {
        let cases = [
            ("v1.36.4", "containerd://2.2.0", true),
            ("v1.35.0-rc.1", "containerd://2.1.0-beta.0", true),
            ("v1.34.9", "containerd://2.2.0", false),
            ("v1.36.4", "containerd://1.7.2", false),
            ("v1.36.4", "cri-o://1.33.1", true),
            ("v1.36.4", "docker://28.0", false),
            ("", "", false),
        ];
        for (kubelet, runtime, expected) in cases {
            let info = json!({
                "kubeletVersion": kubelet, "containerRuntimeVersion": runtime, "architecture": "", "bootID": "",
                "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "operatingSystem": "", "osImage": "",
                "systemUUID": "",
            });
            let node = serde_json::from_value(json!({"status": {"nodeInfo": info}})).unwrap();
            assert_eq!(mounts_images(&node), expected, "{kubelet} {runtime}");
        }
    }
}
