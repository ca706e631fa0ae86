//! `objectgraph`: everything that a machine depends on.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use http::Method;
use serde_json::{Value, json};

use crate::connect::Connect;
use crate::flags;
use crate::output::{self, Format};
use crate::subresource::{Kind, path};

/// Show the objects that a virtual machine or an instance depends on.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Name of the virtual machine or instance
    #[arg(value_name = "NAME")]
    name: String,
    /// Of an instance instead of a virtual machine
    #[arg(long)]
    vmi: bool,
    /// Leave out what the machine can do without
    #[arg(long)]
    exclude_optional: bool,
    /// Only objects with these labels, as in KEY=VALUE; several with commas
    #[arg(long, value_name = "LABELS", value_parser = flags::pairs)]
    selector: Vec<BTreeMap<String, String>>,
    /// Format: json or yaml
    #[arg(long, short, default_value = "json")]
    output: String,
}

const EXAMPLES: &str = "  # All that a virtual machine depends on
  {program} objectgraph myvm

  # Only its storage, and only what an instance cannot do without
  {program} objectgraph --vmi myvm --exclude-optional --selector kubevirt.io/dependency-type=storage";

impl Arguments {
    /// Prints the graph.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let format = Format::parse(&self.output)?;
        let (kind, what) =
            if self.vmi { (Kind::Vmi, "VirtualMachineInstance") } else { (Kind::Vm, "VirtualMachine") };
        let session = connect.session().await?;
        let path = path(kind, &session.namespace, &self.name, "objectgraph");
        let options = options(!self.exclude_optional, self.selector);
        let answer = session
            .call(Method::GET, &path, Some(&options))
            .await
            .with_context(|| format!("error listing object graph of {what} {}", self.name))?;
        let graph: Value = serde_json::from_slice(&answer).context("the answer cannot be understood")?;
        output::print(&format.render(&graph)?)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What is asked for.
fn options(include_optional: bool, selectors: Vec<BTreeMap<String, String>>) -> Value {
    let labels: BTreeMap<_, _> = selectors.into_iter().flatten().collect();
    let mut options = json!({ "includeOptionalNodes": include_optional });
    if !labels.is_empty() {
        options["labelSelector"] = json!({ "matchLabels": labels });
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_add_up() {
        assert_eq!(options(true, vec![]), json!({ "includeOptionalNodes": true }));
        let selectors = vec![flags::pairs("a=b").unwrap(), flags::pairs("c=d,e=f").unwrap()];
        let expected = json!({
            "includeOptionalNodes": false,
            "labelSelector": { "matchLabels": { "a": "b", "c": "d", "e": "f" } },
        });
        assert_eq!(options(false, selectors), expected);
    }
}
