//! `credentials remove-ssh-key`: one key less for a user.

use anyhow::{Context as _, Result, bail};
use kube::api::{Patch, PatchParams};

use super::{Key, Machine, secrets};
use crate::connect::Connect;
use crate::output::say;

/// How often a secret that somebody else changes meanwhile is read again.
const ATTEMPTS: usize = 5;

/// Remove an SSH key from a virtual machine.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The virtual machine
    #[arg(value_name = "VM")]
    vm: String,
    /// Name of the user
    #[arg(long, short)]
    user: String,
    /// Name of the secret with SSH keys; all of the user's if left out
    #[arg(long)]
    secret: Option<String>,
    #[command(flatten)]
    key: Key,
    /// Change a secret even if it is not the VM's own
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "  # Remove a key
  {program} credentials remove-ssh-key --user fedora --file ~/.ssh/id_ed25519.pub myvm

  # Remove a key from a secret that several machines use
  {program} credentials remove-ssh-key --user fedora --value 'ssh-ed25519 AAAA...' --force myvm";

impl Arguments {
    pub(super) async fn run(self, connect: &Connect) -> Result<()> {
        let key = self.key.read()?;
        let machine = Machine::find(connect, &self.vm).await?;
        let mut all = secrets::with_keys_of(machine.credentials(), &self.user);
        if all.is_empty() {
            say!("No secrets associated with user {}", self.user);
            return Ok(());
        }
        if let Some(secret) = self.secret.as_deref().filter(|secret| !secret.is_empty()) {
            all.retain(|known| known == secret);
            if all.is_empty() {
                bail!("secret {secret} is not associated with user {}", self.user);
            }
        }
        for secret in &all {
            self.remove(&machine, secret, &key).await?;
        }
        Ok(())
    }

    async fn remove(&self, machine: &Machine, name: &str, key: &str) -> Result<()> {
        for attempt in 1.. {
            let read = machine.secrets.get_opt(name).await;
            let read = read.with_context(|| format!("error getting secret \"{name}\""))?;
            let Some(secret) = read else { return Ok(()) };
            machine.check_owner(&secret, self.force)?;
            let Some(patch) = secrets::without(&secret, key) else {
                say!("Secret \"{name}\" does not contain this SSH key.");
                return Ok(());
            };
            match machine.secrets.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
                Ok(_) => break,
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
                Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => {}
                Err(error) => return Err(error).with_context(|| format!("error patching secret \"{name}\"")),
            }
        }
        say!("Successfully removed the key from secret \"{name}\"");
        Ok(())
    }
}
