//! What is taken to be around a machine where nothing was given.

use kubevirt_admission::{Gate, Objects};
use kubevirt_api::names::external::multus;
use kubevirt_api::names::labels;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_virt_controller::vmi::pod::{self, Claim, Surroundings};

use super::Arguments;
use super::machines::Cluster;

/// The surroundings of a machine: what was given, and usual things for the rest.
pub fn of<'a>(
    vmi: &VirtualMachineInstance,
    cluster: &'a Cluster,
    arguments: &'a Arguments,
) -> Surroundings<'a> {
    let mut around = Surroundings::new(&cluster.config, &arguments.launcher_image);
    let namespace = vmi.metadata.namespace.as_deref().unwrap_or_default();
    let name = vmi.metadata.name.as_deref().unwrap_or_default();
    around.image_volumes = arguments.image_volumes && cluster.config.enabled(Gate::ImageVolume);
    around.state_claim = Some(format!("{}-{name}", labels::PERSISTENT_STATE_FOR));
    for claim in pod::claims(vmi) {
        around.claims.insert(claim.to_owned(), known(cluster, namespace, claim));
    }
    for network in vmi.spec.networks.iter().flatten() {
        let Some(multus) = &network.multus else { continue };
        let resource = network_resource(cluster, namespace, &multus.network_name);
        around.network_resources.insert(network.name.clone(), resource);
    }
    if let Some(namespace) = cluster.objects.namespace("", namespace) {
        around.namespace.labels = namespace.metadata.labels.clone().unwrap_or_default();
    }
    around
}

/// What is known of a claim; one that was not given is a file system.
pub fn known(cluster: &Cluster, namespace: &str, claim: &str) -> Claim {
    cluster.objects.claim(namespace, claim).map(|claim| Claim::from(&*claim)).unwrap_or_default()
}

/// The resource that a network's definition names; one that was not given needs none.
fn network_resource(cluster: &Cluster, namespace: &str, name: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap_or((namespace, name));
    let objects: &dyn Objects = &cluster.objects;
    let definition = objects.untyped("NetworkAttachmentDefinition", namespace, name);
    let resource = definition.as_ref().and_then(|definition| {
        definition["metadata"]["annotations"][multus::RESOURCE_NAME].as_str().map(str::to_owned)
    });
    resource.unwrap_or_default()
}
