//! `usbredir`: a USB device of this machine in a guest.

use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::net::TcpListener;

use super::vnc::ended;
use crate::connect::Connect;
use crate::failure::Failure;
use crate::farewell;
use crate::output::say;
use crate::subresource::Kind;

/// The program that hands a device on.
const CLIENT: &str = "usbredirect";

/// How much later than its connection a client may end.
const MOMENT: Duration = Duration::from_secs(1);

/// Redirect a USB device to a virtual machine instance.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Find the device that you want to redirect (on Linux):
  lsusb | grep Kingston
  Bus 002 Device 003: ID 0951:1666 Kingston Technology DataTraveler 100 G3/G4/SE9 G2/50

  # Redirect it to 'testvmi' by its vendor and product:
  {program} usbredir 0951:1666 testvmi

  # Redirect it by its bus and device:
  {program} usbredir 02-03 testvmi

  # Start the client yourself:
  {program} usbredir testvmi --no-launch")]
pub struct Arguments {
    /// The device (VENDOR:PRODUCT or BUS-DEVICE; not with --no-launch), then the name of the instance
    #[arg(value_name = "[DEVICE] VMI", num_args = 1..=2, required = true)]
    words: Vec<String>,
    /// Start no client: print the address where one can connect
    #[arg(long)]
    no_launch: bool,
}

impl Arguments {
    /// The device, unless the user starts the client, and the instance.
    fn understood(&self) -> Result<(Option<&str>, &str)> {
        match (&self.words[..], self.no_launch) {
            ([name], true) => Ok((None, name)),
            ([device, name], false) => Ok((Some(device), name)),
            ([_], false) => {
                let next = "Name the device and the instance, as in 0951:1666 testvmi; lsusb lists devices.";
                Err(Failure::new("Missing argument", next).into())
            }
            _ => {
                let next = "With --no-launch, name the instance only.";
                Err(Failure::new("Too many arguments", next).into())
            }
        }
    }

    /// Opens the guest's side first, then waits for the client.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let (device, name) = self.understood()?;
        let session = connect.session().await?;
        let mut stream = session
            .stream(Kind::Vmi, &session.namespace, name, "usbredir", &[])
            .await
            .with_context(|| format!("Can't access VMI {name}"))?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("Can't create usbredir client")?;
        let address = listener.local_addr()?.to_string();
        let mut client = match device {
            Some(device) => Some(launch(device, &address)?),
            None => {
                say!("User can connect usbredir client at: {address}");
                None
            }
        };
        let (mut connection, _) = tokio::select! {
            accepted = listener.accept() => accepted.context("no client could connect")?,
            status = ended(&mut client) => return Err(client_ended(&status).into()),
            _ = tokio::signal::ctrl_c() => return Ok(ExitCode::SUCCESS),
        };
        drop(listener);
        connection.set_nodelay(true)?;
        let carried = tokio::select! {
            carried = kubevirt_streams::join(&mut connection, &mut stream) => Some(carried),
            _ = ended(&mut client) => None,
            _ = tokio::signal::ctrl_c() => return Ok(ExitCode::SUCCESS),
        };
        if stream.farewell().is_none()
            && let Some(status) = failure_of(client.as_mut()).await
        {
            return Err(client_ended(&status).into());
        }
        farewell::tell_carried(session, name, carried, stream.farewell()).await
    }
}

/// How a client has failed that we have started, if it has.
async fn failure_of(client: Option<&mut tokio::process::Child>) -> Option<String> {
    let status = tokio::time::timeout(MOMENT, client?.wait()).await.ok()?.ok()?;
    (!status.success()).then(|| status.to_string())
}

fn client_ended(status: &str) -> Failure {
    let next = "Does the device exist, and may you use it? It often takes root: try with sudo.";
    Failure::new(format!("{CLIENT} ended: {status}"), next)
}

fn launch(device: &str, address: &str) -> Result<tokio::process::Child> {
    tokio::process::Command::new(CLIENT)
        .args(["--device", device, "--to", address])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            let next = "Install usbredir's tools, or start a client yourself with --no-launch.";
            Failure::new(format!("Error on finding {CLIENT} in $PATH: {error}"), next).into()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_client_that_failed_is_a_failure() {
        for (script, expected) in [("exit 0", None), ("exit 3", Some("exit status: 3")), ("sleep 5", None)] {
            let mut client =
                tokio::process::Command::new("sh").args(["-c", script]).kill_on_drop(true).spawn().unwrap();
            assert_eq!(failure_of(Some(&mut client)).await.as_deref(), expected, "{script}");
        }
        assert_eq!(failure_of(None).await, None);
    }

    #[test]
    fn a_device_is_named_unless_the_user_starts_the_client() {
        for (words, no_launch, expected) in [
            (vec!["02-03", "a"], false, Some((Some("02-03"), "a"))),
            (vec!["a"], true, Some((None, "a"))),
            (vec!["a"], false, None),
            (vec!["02-03", "a"], true, None),
        ] {
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            let arguments = Arguments { words, no_launch };
            assert_eq!(arguments.understood().ok(), expected);
        }
    }
}
