//! `ssh`: a shell in a machine, through the cluster.

mod client;

use std::process::ExitCode;

use anyhow::Result;

pub use self::client::{Flags, run_client};
use crate::connect::Connect;
use crate::target::Target;

/// Open an SSH connection to a virtual machine instance.
///
/// Runs the ssh of this machine, which reaches the guest through the cluster: the guest needs no address that can be
/// reached from here.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Connect to 'testvmi':
  {program} ssh jdoe@vmi/testvmi --identity-file=~/.ssh/id_ed25519

  # Connect to 'testvm' in the namespace 'mynamespace' and run a command:
  {program} ssh jdoe@vm/testvm/mynamespace --command='uname -a'")]
pub struct Arguments {
    /// Where to
    #[arg(value_name = "[USER@]TYPE/NAME[/NAMESPACE]")]
    target: String,
    #[command(flatten)]
    flags: Flags,
    /// A command to run in the guest, instead of a shell
    #[arg(long, short = 'c')]
    command: Option<String>,
}

impl Arguments {
    /// Runs ssh and ends as it does.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let (user, target) = Target::parse_with_user(&self.target)?;
        let namespace = match &target.namespace {
            Some(namespace) => namespace.clone(),
            None => connect.namespace().await?,
        };
        let mut last = vec![self.flags.host(user.as_deref(), &target, &namespace)];
        last.extend(self.command.filter(|command| !command.is_empty()));
        run_client("ssh", connect, &self.flags, &target, &namespace, last).await
    }
}
