//! `evacuate-cancel`: lets a machine stay on a node that is being drained.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use kubevirt_api::vmi::VirtualMachineInstance;

use super::dry_run_body;
use crate::connect::{Connect, Session};
use crate::output::say;
use crate::subresource::Kind;
use crate::target;

/// Cancel the evacuation of a virtual machine or instance.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Cancel the evacuation of a virtual machine:\n  {program} evacuate-cancel vm myvm

  # Cancel the evacuation of a virtual machine instance:\n  {program} evacuate-cancel vmi myvmi")]
pub struct Arguments {
    /// vm or vmi
    #[arg(value_name = "vm|vmi")]
    kind: String,
    /// Its name
    name: String,
    /// Only check: nothing is changed
    #[arg(long)]
    dry_run: bool,
}

impl Arguments {
    /// Takes the mark of the evacuation away.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let kind = target::kind(&self.kind)?;
        let session = connect.session().await?;
        let mut body = dry_run_body(self.dry_run);
        // KubeVirt's own server calls off only the evacuation whose node is named.
        if let Some(node) = leaves(session, &self.name).await {
            body["evacuationNodeName"] = node.into();
        }
        let word = match kind {
            Kind::Vm => "VM",
            Kind::Vmi => "VMI",
        };
        let of = format!("{word} {}/{}", session.namespace, self.name);
        session
            .put(kind, &session.namespace, &self.name, "evacuate/cancel", Some(&body))
            .await
            .with_context(|| format!("error canceling evacuation for {of}"))?;
        say!("{of} was canceled evacuation");
        Ok(ExitCode::SUCCESS)
    }
}

/// The node that an instance is to leave, if it is and may be looked at.
async fn leaves(session: &Session, name: &str) -> Option<String> {
    let vmi = session.api::<VirtualMachineInstance>(None).get_opt(name).await.ok()??;
    vmi.status?.evacuation_node_name
}
