//! `stop`: shuts a machine down.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use super::dry_run_body;
use crate::connect::Connect;
use crate::failure::Failure;
use crate::output::say;
use crate::subresource::Kind;

/// Stop a virtual machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Stop a virtual machine called 'myvm':\n  {program} stop myvm

  # Pull its plug:\n  {program} stop myvm --force --grace-period=0")]
pub struct Arguments {
    /// Its name
    #[arg(value_name = "VM")]
    name: String,
    #[command(flatten)]
    force: Force,
    /// Only check: nothing is changed
    #[arg(long)]
    dry_run: bool,
}

/// How much patience a guest is met with.
#[derive(Debug, Default, clap::Args)]
pub struct Force {
    /// Do not wait for the guest: it loses what it has not written. Needs --grace-period
    #[arg(long)]
    force: bool,
    /// Seconds that the guest is given to shut down. Needs --force, and 0 is what makes sense with it
    #[arg(long, value_name = "SECONDS")]
    grace_period: Option<i64>,
}

impl Force {
    /// The seconds that the guest is given, if the user says so; both flags must be there, or neither.
    pub fn seconds(&self) -> Result<Option<i64>> {
        if self.force != self.grace_period.is_some() {
            let next = "Give both to pull the plug, as in --force --grace-period=0, or neither.";
            return Err(Failure::new("Must both use --force=true and set --grace-period.", next).into());
        }
        Ok(self.grace_period)
    }
}

impl Arguments {
    /// Stops the machine.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let forced = self.force.seconds()?;
        let session = connect.session().await?;
        let mut body = dry_run_body(self.dry_run);
        if let Some(seconds) = forced {
            body["gracePeriod"] = seconds.into();
        }
        session.put(Kind::Vm, &session.namespace, &self.name, "stop", Some(&body)).await.context(
            match forced {
                Some(_) => "error force stopping VirtualMachine",
                None => "error stopping VirtualMachine",
            },
        )?;
        say!("VM {} was scheduled to stop", self.name);
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn force_and_grace_period_go_together() {
        for (force, grace_period, expected) in [
            (false, None, Some(None)),
            (true, Some(0), Some(Some(0))),
            (true, Some(-1), Some(Some(-1))),
            (true, None, None),
            (false, Some(0), None),
        ] {
            assert_eq!(Force { force, grace_period }.seconds().ok(), expected, "{force} {grace_period:?}");
        }
    }
}
