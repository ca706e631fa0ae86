//! `credentials set-password`: the password of a user.

use anyhow::Result;

use super::{Machine, secrets};
use crate::connect::Connect;
use crate::failure::Failure;
use crate::output::say;

/// Set the password of a user.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The virtual machine
    #[arg(value_name = "VM")]
    vm: String,
    /// Name of the user
    #[arg(long, short)]
    user: String,
    /// Name of the secret with passwords
    #[arg(long)]
    secret: Option<String>,
    /// Password for the user
    #[arg(long, short)]
    password: String,
    /// Change a secret even if it is not the VM's own
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "  # Set a password
  {program} credentials set-password --user fedora --password secret myvm

  # Set a password in a secret that several machines use
  {program} credentials set-password --user fedora --password secret --force myvm";

impl Arguments {
    pub(super) async fn run(self, connect: &Connect) -> Result<()> {
        let machine = Machine::find(connect, &self.vm).await?;
        let known = secrets::with_passwords(machine.credentials());
        if known.is_empty() {
            let what = "no secrets assigned to UserPassword AccessCredentials";
            let next = "`virtctl create vm --access-cred type:password,src:SECRET` makes a VM with one.";
            return Err(Failure::new(what, next).into());
        }
        let name = secrets::chosen(self.secret.as_deref(), &known)?;
        if !self.force {
            machine.check_owner(&machine.secret(&name).await?, false)?;
        }
        machine.set(&name, &self.user, &self.password).await?;
        say!("Successfully set password in secret \"{name}\"");
        Ok(())
    }
}
