//! kubectl as the cluster's administrator.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The command line client together with a kubeconfig.
#[derive(Clone, Debug)]
pub struct Kubectl {
    /// The program.
    pub program: PathBuf,
    /// The kubeconfig.
    pub kubeconfig: PathBuf,
    /// Where it keeps what it learnt of the API.
    pub cache: PathBuf,
}

impl Kubectl {
    /// A command for these arguments, without proxies: the cluster is on this machine.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig).env("KUBECACHEDIR", &self.cache);
        for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            command.env_remove(proxy);
        }
        command
    }

    /// What kubectl answers; an error when it fails.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        self.run_with_input(arguments, "")
    }

    /// What kubectl answers when it reads `input`; an error when it fails.
    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("run kubectl")?;
        let mut pipe = child.stdin.take().context("no input")?;
        let output = std::thread::scope(|scope| {
            // It may write before it has read everything, or end without reading at all.
            scope.spawn(move || {
                let _ = pipe.write_all(input.as_bytes());
            });
            child.wait_with_output()
        })?;
        ensure!(
            output.status.success(),
            "kubectl {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
