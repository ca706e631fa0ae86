//! `permitted-devices`: the devices of hosts that machines may be given.

use std::process::ExitCode;

use anyhow::Result;
use kube::Api;
use kube::api::ListParams;
use kubevirt_api::kubevirt::KubeVirt;

use crate::connect::Connect;
use crate::failure::Failure;
use crate::output;

/// List the devices that virtual machine instances may be given.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Print the permitted devices:\n  {program} permitted-devices")]
pub struct Arguments {}

impl Arguments {
    /// Prints what the installation permits: the one of the namespace, or the only one there is.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let session = connect.session().await?;
        let mut found = session.api::<KubeVirt>(None).list(&ListParams::default()).await?.items;
        if found.is_empty() && connect.flags.namespace.is_none() {
            found = Api::<KubeVirt>::all(session.client.clone()).list(&ListParams::default()).await?.items;
        }
        let Some(kubevirt) = found.first() else {
            let what = format!("no KubeVirt resource in {:?} namespace", session.namespace);
            return Err(
                Failure::new(what, "Name its namespace with -n: see `kubectl get kubevirt -A`.").into()
            );
        };
        output::print(&listing(kubevirt))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn listing(kubevirt: &KubeVirt) -> String {
    let permitted = kubevirt
        .spec
        .configuration
        .as_ref()
        .and_then(|configuration| configuration.permitted_host_devices.as_ref());
    let pci = permitted.and_then(|permitted| permitted.pci_host_devices.as_ref());
    let mediated = permitted.and_then(|permitted| permitted.mediated_devices.as_ref());
    let hosts: Vec<&str> = pci.into_iter().flatten().map(|device| device.resource_name.as_str()).collect();
    let gpus: Vec<&str> =
        mediated.into_iter().flatten().map(|device| device.resource_name.as_str()).collect();
    format!(
        "Permitted Devices: \nHost Devices: \n{} \nGPU Devices: \n{}\n",
        hosts.join(", "),
        gpus.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_listed_by_their_kind() {
        let kubevirt: KubeVirt = serde_json::from_value(serde_json::json!({
            "apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"},
            "spec": {"configuration": {"permittedHostDevices": {
                "pciHostDevices": [
                    {"pciVendorSelector": "10DE:1", "resourceName": "a/b"},
                    {"pciVendorSelector": "10DE:2", "resourceName": "a/c"}],
                "mediatedDevices": [{"mdevNameSelector": "T4", "resourceName": "a/gpu"}]}}}
        }))
        .unwrap();
        assert_eq!(
            listing(&kubevirt),
            "Permitted Devices: \nHost Devices: \na/b, a/c \nGPU Devices: \na/gpu\n"
        );
        assert_eq!(
            listing(&KubeVirt::new("a", Default::default())),
            "Permitted Devices: \nHost Devices: \n \nGPU Devices: \n\n"
        );
    }
}
