//! `removevolume`: pulls a disk out of a running machine.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use super::{addvolume, dry_run_body};
use crate::connect::Connect;
use crate::output::say;

/// Remove a volume from a running virtual machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Detach a volume that was attached while the machine ran:
  {program} removevolume fedora --volume-name=example-dv")]
pub struct Arguments {
    /// The name of the machine
    #[arg(value_name = "VMI")]
    name: String,
    /// The volume to detach
    #[arg(long, value_name = "NAME")]
    volume_name: String,
    /// Has no effect any more: a volume is gone for good
    #[arg(long)]
    persist: bool,
    /// Only check: nothing is changed
    #[arg(long)]
    dry_run: bool,
}

impl Arguments {
    /// Asks for the volume to be unplugged.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let session = connect.session().await?;
        let mut body = dry_run_body(self.dry_run);
        body["name"] = self.volume_name.as_str().into();
        addvolume::ask(session, &self.name, "removevolume", &body).await.context("error removing volume")?;
        say!(
            "Successfully submitted remove volume request to VM {} for volume {}",
            self.name,
            self.volume_name
        );
        Ok(ExitCode::SUCCESS)
    }
}
