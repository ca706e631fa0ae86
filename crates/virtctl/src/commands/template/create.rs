//! `template create`: asks the cluster to make a template of a machine.

use anyhow::{Context as _, Result};
use http::Method;
use kubevirt_api::names::groups;
use serde_json::{Value, json};

use super::{VERSION, path};
use crate::connect::Connect;
use crate::output::say;

/// Make a template of a virtual machine in the cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Name of the virtual machine
    #[arg(long, value_name = "NAME")]
    vm_name: String,
    /// Namespace of the virtual machine, if it is not that of the template
    #[arg(long, value_name = "NAMESPACE")]
    vm_namespace: Option<String>,
    /// Name of the template; that of the request if left out, which is a random one
    #[arg(long)]
    name: Option<String>,
}

const EXAMPLES: &str = "  # A template of a virtual machine, and a look at how it comes along
  {program} template create --vm-name myvm --name mytemplate
  kubectl get vmtr -w

  # Of a virtual machine in another namespace
  {program} template create --vm-name myvm --vm-namespace production";

impl Arguments {
    pub(super) async fn run(self, connect: &Connect) -> Result<()> {
        let session = connect.session().await?;
        let request = self.request(&session.namespace);
        let path = path("virtualmachinetemplaterequests", &session.namespace);
        let answer = session
            .call(Method::POST, &path, Some(&request))
            .await
            .context("error creating VirtualMachineTemplateRequest")?;
        let created: Value = serde_json::from_slice(&answer).context("the answer cannot be understood")?;
        let name = created["metadata"]["name"].as_str().unwrap_or_default();
        say!("virtualmachinetemplaterequest.{}/{name} created", groups::TEMPLATE);
        Ok(())
    }

    fn request(&self, namespace: &str) -> Value {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let mut spec = json!({
            "virtualMachineRef": {
                "namespace": given(&self.vm_namespace).unwrap_or_else(|| namespace.to_owned()),
                "name": self.vm_name,
            },
        });
        if let Some(name) = given(&self.name) {
            spec["templateName"] = name.into();
        }
        json!({
            "apiVersion": format!("{}/{VERSION}", groups::TEMPLATE),
            "kind": "VirtualMachineTemplateRequest",
            "metadata": { "generateName": format!("{}-", self.vm_name), "namespace": namespace },
            "spec": spec,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_machine_and_template() {
        let arguments = Arguments { vm_name: "vm".into(), vm_namespace: None, name: None };
        let request = arguments.request("here");
        assert_eq!(request["metadata"], json!({ "generateName": "vm-", "namespace": "here" }));
        assert_eq!(request["spec"], json!({ "virtualMachineRef": { "namespace": "here", "name": "vm" } }));
        let arguments = Arguments { vm_namespace: Some("there".into()), name: Some("t".into()), ..arguments };
        let expected =
            json!({ "virtualMachineRef": { "namespace": "there", "name": "vm" }, "templateName": "t" });
        assert_eq!(arguments.request("here")["spec"], expected);
    }
}
