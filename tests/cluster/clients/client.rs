//! The two programs that users have.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use test_kit::Test;

/// A virtctl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// KubeVirt's.
    Original,
    /// Ours.
    Ours,
}

/// Both.
pub const CLIENTS: [Client; 2] = [Client::Original, Client::Ours];

impl Client {
    /// A word for names.
    pub fn word(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::Ours => "ours",
        }
    }

    /// A command in the namespace of the test, as the administrator.
    pub fn command(self, test: &Test, arguments: &[&str]) -> Result<Command> {
        let mut command = self.program(test)?;
        command.args(["--namespace", test.namespace()]).args(arguments).stdin(Stdio::null());
        Ok(command)
    }

    /// The program itself, as the administrator.
    fn program(self, test: &Test) -> Result<Command> {
        Ok(match self {
            Self::Original => test.cluster().virtctl_command()?,
            Self::Ours => {
                let mut command = Command::new(&test_kit::system_images()?.program);
                command.arg("virtctl").env("KUBECONFIG", test.cluster().kubeconfig());
                command
            }
        })
    }

    /// The same as one line for a shell.
    pub fn line(self, test: &Test, arguments: &[&str]) -> Result<String> {
        let command = self.command(test, arguments)?;
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words = words.map(|word| word.to_str().map(|word| format!("'{word}'")).context("not a text"));
        let kubeconfig = test.cluster().kubeconfig();
        Ok(format!("KUBECONFIG='{}' {}", kubeconfig.display(), words.collect::<Result<Vec<_>>>()?.join(" ")))
    }

    /// Runs it, and returns what it prints.
    pub fn run(self, test: &Test, arguments: &[&str]) -> Result<String> {
        let (ended, printed, complaint) = attempt(self.command(test, arguments)?)?;
        ensure!(ended, "{self:?} virtctl {arguments:?}: {printed}{complaint}");
        Ok(printed)
    }

    /// Runs it on the cluster as a whole, and returns what it prints.
    pub fn run_anywhere(self, test: &Test, arguments: &[&str]) -> Result<String> {
        let mut command = self.program(test)?;
        command.args(arguments).stdin(Stdio::null());
        let (ended, printed, complaint) = attempt(command)?;
        ensure!(ended, "{self:?} virtctl {arguments:?}: {printed}{complaint}");
        Ok(printed)
    }

    /// Runs what must fail, and returns what it says.
    pub fn fail(self, test: &Test, arguments: &[&str]) -> Result<String> {
        let (ended, printed, complaint) = attempt(self.command(test, arguments)?)?;
        if ended {
            bail!("{self:?} virtctl {arguments:?} should fail, but says: {printed}{complaint}");
        }
        Ok(printed + &complaint)
    }
}

/// Whether a command succeeds, and what it says and complains of.
pub fn attempt(mut command: Command) -> Result<(bool, String, String)> {
    let output = command.output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((output.status.success(), text(&output.stdout), text(&output.stderr)))
}
