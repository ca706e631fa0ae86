//! `completion`: lets a shell finish words.

use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::connect::Connect;
use crate::{Cli, dialect, output};

/// Generate the autocompletion script for the specified shell.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "  # In this shell, until it ends:
  source <({program} completion bash)

  # In every shell of this user:
  {program} completion bash > ~/.local/share/bash-completion/completions/virtctl
  {program} completion zsh > \"${fpath[1]}/_virtctl\"
  {program} completion fish > ~/.config/fish/completions/virtctl.fish
  {program} completion powershell >> $PROFILE"
)]
pub struct Arguments {
    #[command(subcommand)]
    shell: Which,
}

#[derive(Clone, Copy, Debug, clap::Subcommand)]
enum Which {
    /// Generate the autocompletion script for bash
    Bash,
    /// Generate the autocompletion script for fish
    Fish,
    /// Generate the autocompletion script for powershell
    Powershell,
    /// Generate the autocompletion script for zsh
    Zsh,
}

impl Arguments {
    /// Prints the script.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let shell = match self.shell {
            Which::Bash => Shell::Bash,
            Which::Fish => Shell::Fish,
            Which::Powershell => Shell::PowerShell,
            Which::Zsh => Shell::Zsh,
        };
        // A plugin's file is what a shell sees, whatever kubectl makes of it.
        let file = connect.program.name.replace(' ', "-");
        let mut command = dialect::adapt(Cli::command(), &connect.program).mut_args(|flag| flag.hide(false));
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, file, &mut script);
        output::bytes(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
