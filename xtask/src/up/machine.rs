//! A machine on the cluster, from its manifest to its login prompt.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kubevirt_api::names::labels;
use kubevirt_api::vm::VirtualMachine;

use super::Steps;
use crate::cluster::Cluster;

/// For a guest without KVM on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// What the guest says right before it asks for a login. The question itself is no whole line, so no log has it yet.
const WELCOME: &str = "Welcome to ";

/// Applies the manifest and waits for the login prompt; returns the machine's name.
pub(super) fn start(cluster: &Cluster, manifest: &Path, steps: &mut Steps) -> Result<String> {
    let what = || format!("read {}", manifest.display());
    let text = std::fs::read_to_string(manifest).with_context(what)?;
    let machine: VirtualMachine = serde_saphyr::from_str(&text).with_context(what)?;
    let name = machine.metadata.name.context("the machine has no name")?;
    cluster.kubectl_with_input(&["apply", "--filename", "-"], &text)?;
    steps.done(&format!("VirtualMachine {name} is accepted"));
    until_login(cluster, &name, steps).with_context(|| report(cluster, &name))?;
    Ok(name)
}

fn until_login(cluster: &Cluster, name: &str, steps: &mut Steps) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    let mut phase = String::new();
    let phases = ["get", "vmi", name, "--watch", "--output=jsonpath={.status.phase}{\"\\n\"}"];
    while phase != "Running" {
        // It may not be there yet, and a watch may end.
        let lines = Lines::of(&mut cluster.kubectl_command(&phases))?;
        while let Some(line) = lines.next(end)? {
            if !line.is_empty() && line != phase {
                steps.done(&format!("VirtualMachineInstance {name} is {line}"));
                phase = line;
            }
            match phase.as_str() {
                "Running" => break,
                "Failed" | "Succeeded" => bail!("the machine ended before it ran"),
                _ => {}
            }
        }
    }
    let selector = format!("--selector={}={name}", labels::VM_NAME);
    let logs = ["logs", "--follow", "--tail=-1", "--container=compute", selector.as_str()];
    loop {
        let lines = Lines::of(&mut cluster.kubectl_command(&logs))?;
        while let Some(line) = lines.next(end)? {
            if line.contains(WELCOME) {
                steps.done(&format!("the guest asks: {name} login:"));
                return Ok(());
            }
        }
    }
}

/// The lines of a command, which ends when this is dropped.
struct Lines {
    child: Child,
    lines: Receiver<String>,
}

impl Lines {
    fn of(command: &mut Command) -> Result<Self> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("run kubectl")?;
        let output = child.stdout.take().context("no output")?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let all = BufReader::new(output).split(b'\n').map_while(Result::ok);
            for line in all {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, lines })
    }

    /// The next line; none once the command has ended, and an error when it is too late.
    fn next(&self, end: Instant) -> Result<Option<String>> {
        match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => {
                bail!("there is no login prompt after {} s", PATIENCE.as_secs())
            }
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(Duration::from_millis(200));
                match Instant::now() < end {
                    true => Ok(None),
                    false => bail!("there is no login prompt after {} s", PATIENCE.as_secs()),
                }
            }
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What became of the machine, in words.
fn report(cluster: &Cluster, name: &str) -> String {
    let say = |arguments: &[&str]| cluster.kubectl(arguments).unwrap_or_else(|error| format!("{error}\n"));
    let selector = format!("--selector={}={name}", labels::VM_NAME);
    [
        say(&["get", "vm,vmi", name, "--output=wide"]),
        say(&["describe", "vmi", name]),
        say(&["get", "pods", "--output=wide", &selector]),
        say(&["events"]),
        say(&["logs", "--tail=20", "--all-containers", "--prefix", &selector]),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lines_until_the_end_or_too_late() {
        let lines = Lines::of(Command::new("sh").args(["-c", "echo one; echo two"])).unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        assert_eq!(lines.next(end).unwrap().as_deref(), Some("one"));
        assert_eq!(lines.next(end).unwrap().as_deref(), Some("two"));
        assert_eq!(lines.next(end).unwrap(), None);
        let lines = Lines::of(Command::new("sleep").arg("60")).unwrap();
        assert!(lines.next(Instant::now()).is_err());
    }
}
