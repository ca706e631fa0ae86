//! Datagrams to a guest and back.

use std::net::UdpSocket;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use test_kit::Test;
use xtask::image::compile_program;

use super::client::Client;
use super::guest::copy_there;
use super::screen::{Running, free_port, try_for};
use crate::machines::guest::Guest;
use crate::machines::storage;

/// The port in the guest.
pub const PORT: u16 = 7;

/// Starts a program in the guest that sends datagrams back, and what comes over connections.
pub fn are_echoed(test: &Test, shell: &Guest<'_>, name: &str) -> Result<()> {
    let folder = storage::folder(test, "programs")?;
    compile_program("probe", include_str!("../programs/probe.rs"), &folder, &folder)?;
    let program = folder.join("probe").into_os_string().into_string().ok().context("no text")?;
    copy_there(test, Client::Ours, &program, &format!("vmi/{name}:/tmp/probe"))?;
    shell.run("chmod 755 /tmp/probe")?;
    shell.start(&format!("/tmp/probe echo {PORT}"));
    Ok(())
}

/// Each datagram comes back as it was, through a port of this machine.
pub async fn come_back(test: &Test, client: Client, name: &str) -> Result<()> {
    let port = free_port()?;
    let arguments = ["port-forward", &format!("vmi/{name}"), &format!("udp/{port}:{PORT}")];
    let _forward = Running::start(client.command(test, &arguments)?)?;
    try_for(Duration::from_secs(60), || {
        let socket = UdpSocket::bind(("127.0.0.1", 0))?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        socket.connect(("127.0.0.1", port))?;
        for length in [1, 17, 1200] {
            let sent = vec![length as u8; length];
            socket.send(&sent)?;
            let mut back = [0; 2000];
            let received = socket.recv(&mut back).with_context(|| format!("{client:?}: {length} bytes"))?;
            ensure!(back[..received] == sent, "{client:?}: {received} bytes of {length}");
        }
        Ok(())
    })
    .await
}
