//! `credentials add-ssh-key`: one more key for a user.

use anyhow::{Context as _, Result, bail};
use kube::api::{Patch, PatchParams, PostParams};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;

use super::{Key, Machine, secrets};
use crate::connect::Connect;
use crate::names;
use crate::output::say;

/// Add an SSH key to a virtual machine.
///
/// The key goes into a secret that the guest agent reads for the user; without one, a new secret is made, which a
/// running machine sees after its next start.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The virtual machine
    #[arg(value_name = "VM")]
    vm: String,
    /// Name of the user
    #[arg(long, short)]
    user: String,
    /// Name of the secret with SSH keys
    #[arg(long)]
    secret: Option<String>,
    #[command(flatten)]
    key: Key,
    /// Make a new secret for the key, even if there is one
    #[arg(long, conflicts_with = "update_secret")]
    create_secret: bool,
    /// Add the key to a secret that is there
    #[arg(long)]
    update_secret: bool,
    /// Change a secret that is not the VM's own, or give a running VM a new one
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "  # Add a key from a file
  {program} credentials add-ssh-key --user fedora --file ~/.ssh/id_ed25519.pub myvm

  # Add a key to a secret that several machines use
  {program} credentials add-ssh-key --user fedora --value 'ssh-ed25519 AAAA...' --secret shared --force myvm

  # Make a secret for a machine that runs; it takes effect after a restart
  {program} credentials add-ssh-key --create-secret --user fedora --file ~/.ssh/id_ed25519.pub --force myvm";

impl Arguments {
    pub(super) async fn run(self, connect: &Connect) -> Result<()> {
        let key = self.key.read()?;
        let machine = Machine::find(connect, &self.vm).await?;
        let known = secrets::with_keys_of(machine.credentials(), &self.user);
        if self.create_secret || (!self.update_secret && known.is_empty()) {
            return self.create(&machine, &key).await;
        }
        if known.is_empty() {
            bail!("no secrets specified for user: {}; without --update-secret a new one is made", self.user);
        }
        self.update(&machine, &key, &known).await
    }

    async fn create(&self, machine: &Machine, key: &str) -> Result<()> {
        let running = machine.session.api::<VirtualMachineInstance>(None).get_opt(machine.name()).await;
        if !self.force && running.context("error when getting virtual machine instance")?.is_some() {
            bail!(
                "virtual machine {} is running. Use --force flag to update a running VM, it will take effect after \
                 restart",
                machine.name()
            );
        }
        let secret = secrets::new(&machine.vm.metadata, &entry(), key);
        let secret = machine.secrets.create(&PostParams::default(), &secret).await;
        let secret = secret.context("error creating secret")?.metadata.name.unwrap_or_default();
        let credential = secrets::credential(&secret, &self.user);
        let known =
            machine.vm.spec.template.spec.as_ref().is_some_and(|spec| spec.access_credentials.is_some());
        let patch = serde_json::from_value(secrets::add_credential(known, &credential))?;
        let vms = machine.session.api::<VirtualMachine>(None);
        vms.patch(machine.name(), &PatchParams::default(), &Patch::Json::<()>(patch)).await.with_context(
            || format!("error patching virtual machine; the new secret {secret} is not used by it"),
        )?;
        say!("Successfully added secret \"{secret}\" with the key to virtual machine {}", machine.name());
        Ok(())
    }

    async fn update(&self, machine: &Machine, key: &str, known: &[String]) -> Result<()> {
        let name = secrets::chosen(self.secret.as_deref(), known)?;
        let secret = machine.secret(&name).await?;
        if secrets::contains(&secret, key) {
            say!("Secret \"{name}\" already contains this SSH key.");
            return Ok(());
        }
        machine.check_owner(&secret, self.force)?;
        machine.set(&name, &entry(), key).await?;
        say!("Successfully added the key to secret \"{name}\"");
        Ok(())
    }
}

/// The name of a new key in a secret.
fn entry() -> String {
    format!("ssh-key-{}", names::suffix(6))
}
