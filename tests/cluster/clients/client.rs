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
        let mut command = match self {
            Self::Original => test.cluster().virtctl_command()?,
            Self::Ours => {
                let mut command = Command::new(&test_kit::system_images()?.program);
                command.arg("virtctl").env("KUBECONFIG", test.cluster().kubeconfig());
                command
            }
        };
        command.args(["--namespace", test.namespace()]).args(arguments).stdin(Stdio::null());
        Ok(command)
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
        let (ended, printed, complaint) = self.attempt(test, arguments)?;
        ensure!(ended, "{self:?} virtctl {arguments:?}: {printed}{complaint}");
        Ok(printed)
    }

    /// Runs what must fail, and returns what it says.
    pub fn fail(self, test: &Test, arguments: &[&str]) -> Result<String> {
        let (ended, printed, complaint) = self.attempt(test, arguments)?;
        if ended {
            bail!("{self:?} virtctl {arguments:?} should fail, but says: {printed}{complaint}");
        }
        Ok(printed + &complaint)
    }

    fn attempt(self, test: &Test, arguments: &[&str]) -> Result<(bool, String, String)> {
        let output = self.command(test, arguments)?.output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((output.status.success(), text(&output.stdout), text(&output.stderr)))
    }
}
