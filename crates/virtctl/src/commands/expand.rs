//! `expand`: a machine with all that its instance type and preference add to it.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use http::Method;
use kubevirt_api::names::groups;
use serde_json::Value;

use crate::connect::Connect;
use crate::manifest;
use crate::output::{self, Format};
use crate::subresource::{Kind, escaped, path};

/// Show a virtual machine with its instance type and preference expanded.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Name of the virtual machine in the cluster
    #[arg(long, conflicts_with = "file", required_unless_present = "file")]
    vm: Option<String>,
    /// File with the virtual machine, or - for standard input
    #[arg(long, short)]
    file: Option<String>,
    /// Format: yaml or json
    #[arg(long, short, default_value = "yaml")]
    output: String,
}

const EXAMPLES: &str = "  # A machine of the cluster
  {program} expand --vm myvm

  # A machine that is still to be made
  {program} expand --file myvm.yaml
  {program} create vm --instancetype u1.small | {program} expand --file - --output json";

impl Arguments {
    /// Prints the expanded machine.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let format = Format::parse(&self.output)?;
        // A manifest that cannot be read needs no cluster.
        let given = self.file.as_deref().filter(|_| self.vm.is_none()).map(machine).transpose()?;
        let session = connect.session().await?;
        let namespace = &session.namespace;
        let (method, path, name) = match &given {
            None => {
                let name = self.vm.unwrap_or_default();
                (Method::GET, path(Kind::Vm, namespace, &name, "expand-spec"), name)
            }
            Some(machine) => {
                let name = machine["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                (Method::PUT, expand_vm_spec(namespace), name)
            }
        };
        let answer = session
            .call(method, &path, given.as_ref())
            .await
            .with_context(|| format!("error expanding VirtualMachine - {name} in namespace - {namespace}"))?;
        let mut machine: Value =
            serde_json::from_slice(&answer).context("the answer cannot be understood")?;
        // Older servers leave out what it is.
        machine["apiVersion"] = groups::KUBEVIRT_V1.into();
        machine["kind"] = "VirtualMachine".into();
        output::print(&format.render(&machine)?)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn machine(path: &str) -> Result<Value> {
    let object = manifest::read(path)?;
    manifest::expect(&object, "VirtualMachine")?;
    Ok(object)
}

/// The path that expands any machine.
fn expand_vm_spec(namespace: &str) -> String {
    format!("/apis/{}/v1/namespaces/{}/expand-vm-spec", groups::SUBRESOURCES, escaped(namespace))
}
