//! USB devices of users, as far as there is one to be had: QEMU greets whoever brings one.

use std::fs::File;
use std::io::Read;
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use test_kit::Test;

use super::client::Client;
use super::screen::{Running, try_for};
use crate::machines::storage;

const SOON: Duration = Duration::from_secs(60);
/// What a client prints before the address that it listens on.
const ADDRESS: &str = "User can connect usbredir client at: ";
/// The greeting: its head of 12 bytes, and who it is in 64.
const GREETING: usize = 12 + 64;

/// A client opens a way to the guest, at whose end QEMU speaks the protocol of USB redirection.
pub async fn is_brought(test: &Test, client: Client, name: &str) -> Result<()> {
    let file = storage::folder(test, "usb")?.join(client.word());
    let output = File::create(&file)?;
    let mut command = client.command(test, &["usbredir", "--no-launch", name])?;
    command.stdout(Stdio::from(output.try_clone()?)).stderr(Stdio::from(output));
    let _client = Running::of(command)?;
    let mut stream = try_for(SOON, || {
        let said = std::fs::read_to_string(&file)?;
        let (_, address) = said.split_once(ADDRESS).with_context(|| format!("{client:?}: {said}"))?;
        let address = address.split_whitespace().next().context("no address")?;
        // What is logged may be in quotes.
        Ok(TcpStream::connect(address.trim_matches(['"', ',']))?)
    })
    .await?;
    stream.set_read_timeout(Some(SOON))?;
    let mut greeting = [0; GREETING];
    stream.read_exact(&mut greeting).with_context(|| format!("{client:?}: no greeting"))?;
    let who = String::from_utf8_lossy(&greeting[12..]);
    ensure!(greeting[..4] == [0; 4] && who.starts_with("qemu usb-redir guest"), "{client:?}: {greeting:?}");
    Ok(())
}
