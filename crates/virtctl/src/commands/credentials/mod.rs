//! `credentials`: keys and passwords that the guest agent puts into a machine.

mod add_ssh_key;
mod remove_ssh_key;
mod secrets;
mod set_password;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::access_credentials::AccessCredential;

use crate::connect::{Connect, Session};

/// Put SSH keys and passwords into the secrets of a virtual machine.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    AddSshKey(add_ssh_key::Arguments),
    RemoveSshKey(remove_ssh_key::Arguments),
    SetPassword(set_password::Arguments),
}

impl Arguments {
    /// Changes the secret that the flags mean.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        match self.action {
            Action::AddSshKey(arguments) => arguments.run(connect).await?,
            Action::RemoveSshKey(arguments) => arguments.run(connect).await?,
            Action::SetPassword(arguments) => arguments.run(connect).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The key, as a file or as text.
#[derive(Debug, clap::Args)]
struct Key {
    /// File with the public key
    #[arg(long, short, value_name = "FILE", conflicts_with = "value")]
    file: Option<PathBuf>,
    /// The public key itself
    #[arg(long, value_name = "KEY")]
    value: Option<String>,
}

impl Key {
    /// The key without space around it.
    fn read(&self) -> Result<String> {
        let text = match (&self.value, &self.file) {
            (Some(value), _) if !value.is_empty() => value.clone(),
            (_, Some(path)) => std::fs::read_to_string(path)
                .with_context(|| format!("error getting ssh key: {}", path.display()))?,
            _ => bail!("error getting ssh key: one of --file, or --value must be specified"),
        };
        let key = text.trim();
        if key.is_empty() {
            bail!("error getting ssh key: there is no key in it");
        }
        Ok(key.to_owned())
    }
}

/// A machine and the secrets beside it.
struct Machine {
    vm: VirtualMachine,
    secrets: Api<Secret>,
    session: Session,
}

impl Machine {
    async fn find(connect: &Connect, name: &str) -> Result<Self> {
        let session = connect.session().await?.clone();
        let vm =
            session.api::<VirtualMachine>(None).get(name).await.context("error getting virtual machine")?;
        Ok(Self { vm, secrets: session.api(None), session })
    }

    fn name(&self) -> &str {
        self.vm.metadata.name.as_deref().unwrap_or_default()
    }

    fn credentials(&self) -> &[AccessCredential] {
        let spec = self.vm.spec.template.spec.as_ref();
        spec.and_then(|spec| spec.access_credentials.as_deref()).unwrap_or_default()
    }

    async fn secret(&self, name: &str) -> Result<Secret> {
        self.secrets.get(name).await.with_context(|| format!("error getting secret \"{name}\""))
    }

    /// Refuses a secret that may be that of other machines too, unless the user insists.
    fn check_owner(&self, secret: &Secret, force: bool) -> Result<()> {
        if force || secrets::is_owned(&secret.metadata, &self.vm.metadata) {
            return Ok(());
        }
        let name = secret.metadata.name.as_deref().unwrap_or_default();
        bail!(
            "secret {name} does not have an owner reference pointing to VM {}; --force changes it all the same",
            self.name()
        )
    }

    async fn set(&self, secret: &str, key: &str, value: &str) -> Result<()> {
        let patch = secrets::entry(key, value);
        let set = self.secrets.patch(secret, &PatchParams::default(), &Patch::Merge(&patch)).await;
        set.with_context(|| format!("error patching secret \"{secret}\"")).map(drop)
    }
}
