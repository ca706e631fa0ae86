//! What users do with a guest that runs.

use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kubevirt_api::vmi::status::VmiPhase;
use test_kit::{KUBEVIRT, Test};

use super::client::{CLIENTS, Client};
use super::screen::{Running, free_port, try_for};
use super::{console, screen, streams};
use crate::machines::guest::{Guest, PATIENCE, may_boot, wait_for_phase};
use crate::machines::key::key;
use crate::machines::manifest::{guest, machine};

const SOON: Duration = Duration::from_secs(60);

/// A port of this machine leads to the guest's ssh server.
async fn a_port_leads_there(test: &Test, client: Client, target: &str) -> Result<()> {
    let port = free_port()?;
    let arguments = ["port-forward", target, &format!("tcp/{port}:22")];
    let _forward = Running::start(client.command(test, &arguments)?)?;
    try_for(SOON, || {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut greeting = [0; 4];
        stream.read_exact(&mut greeting)?;
        ensure!(&greeting == b"SSH-", "{client:?}: {greeting:?} is not a greeting");
        Ok(())
    })
    .await
}

/// Runs ssh or scp as root of the guest, without a question.
fn secure_shell(test: &Test, client: Client, arguments: &[&str]) -> Result<String> {
    let key = key()?.private.to_str().context("a path that is no text")?.to_owned();
    let quiet = ["--local-ssh-opts", "-oStrictHostKeyChecking=no", "--known-hosts=/dev/null"];
    client.run(test, &[arguments, &["-i", &key, "--username=root"], &quiet].concat())
}

/// Copies a file from or to a guest.
pub fn copy_there(test: &Test, client: Client, from: &str, to: &str) -> Result<()> {
    secure_shell(test, client, &["scp", from, to]).map(drop)
}

/// A command runs in the guest by ssh, and a file gets there and back.
fn ssh_leads_there(test: &Test, client: Client) -> Result<()> {
    let said = secure_shell(test, client, &["ssh", "vmi/vm", "--command=hostname"])?;
    ensure!(said.contains("vm"), "{client:?}: {said}");
    let file = std::env::temp_dir().join(format!("kubevirt-copy-{}-{}", std::process::id(), client.word()));
    std::fs::write(&file, client.word())?;
    let (local, back) = (file.to_str().context("no text")?.to_owned(), file.with_extension("back"));
    let back = back.to_str().context("no text")?.to_owned();
    copy_there(test, client, &local, "vmi/vm:/tmp/copy")?;
    copy_there(test, client, "vmi/vm:/tmp/copy", &back)?;
    ensure!(std::fs::read_to_string(&back)? == client.word(), "{client:?}: the copy is another");
    std::fs::remove_file(local)?;
    std::fs::remove_file(back)?;
    Ok(())
}

/// The guest's agent tells of the guest.
async fn the_agent_tells(test: &Test, client: Client) -> Result<()> {
    let info = try_for(PATIENCE, || client.run(test, &["guestosinfo", "vm"])).await?;
    let info: serde_json::Value = serde_json::from_str(&info).context("guestosinfo")?;
    ensure!(info["hostname"] == "vm", "{client:?}: {info}");
    let disks: serde_json::Value = serde_json::from_str(&client.run(test, &["fslist", "vm"])?)?;
    ensure!(disks["items"].is_array(), "{client:?}: {disks}");
    let users: serde_json::Value = serde_json::from_str(&client.run(test, &["userlist", "vm"])?)?;
    ensure!(users.is_object(), "{client:?}: {users}");
    Ok(())
}

#[tokio::test]
async fn a_guest_is_reached_by_either_client() -> Result<()> {
    KUBEVIRT
        .run("reach", async |test| {
            let _leave = may_boot().await?;
            test.apply(&machine("vm", "Always", guest("vm")?)).await?;
            wait_for_phase(test, "vm", VmiPhase::Running).await?;
            let guest = Guest::wait(test, "vm").await?;
            for client in CLIENTS {
                for target in ["vm/vm", "vmi/vm"] {
                    a_port_leads_there(test, client, target).await.context(target)?;
                }
                ssh_leads_there(test, client)?;
                the_agent_tells(test, client).await?;
            }
            console::is_typed_on(test, "vm").await.context("console")?;
            screen::is_seen(test, "vm").await.context("screen")?;
            screen::is_left_to_its_viewer(test, "vm").await.context("a viewer")?;
            streams::the_console_changes_hands(test, "vm").await.context("many viewers")?;
            streams::ports_are_forwarded_at_once(test, "vm", &guest).await.context("many ports")?;
            Ok(())
        })
        .await
}
