//! What users do with an instance whose guest runs.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::Method;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};
use test_kit::{KUBEVIRT, Test, conditions};

use super::ask::{granted, refused};
use super::client::{CLIENTS, Client};
use super::lifecycle::wait_for_pause;
use super::screen::try_for;
use super::{datagrams, usb, volumes};
use crate::machines::gates;
use crate::machines::guest::{Guest, PATIENCE, instances, may_boot};
use crate::machines::manifest::{guest, instance};

const SOON: Duration = Duration::from_secs(60);

/// The path of a subresource of the instance.
fn of(subresource: &str) -> String {
    format!("virtualmachineinstances/vmi/{subresource}")
}

/// A paused guest is reached by nobody, and goes on where it was.
async fn is_paused(test: &Test, shell: &Guest<'_>, client: Client) -> Result<()> {
    client.run(test, &["pause", "vmi", "vmi"])?;
    wait_for_pause(test, "vmi", true).await?;
    for (method, subresource) in [(Method::PUT, "softreboot"), (Method::GET, "portforward/22")] {
        refused(test, (method, &of(subresource), Value::Null), 409, "VMI is paused").await?;
    }
    client.run(test, &["unpause", "vmi", "vmi"])?;
    wait_for_pause(test, "vmi", false).await?;
    shell.run("true").map(drop)
}

/// What is written to a frozen file system waits until that goes on.
async fn is_frozen(test: &Test, shell: &Guest<'_>) -> Result<()> {
    let put = |subresource: &str, body: Value| granted_put(test, of(subresource), body);
    let stands_still = |vmi: &VirtualMachineInstance, still: bool| {
        let status = vmi.status.as_ref().and_then(|status| status.fs_freeze_status.as_deref());
        (status == Some("frozen")) == still
    };
    refused(test, (Method::PUT, &of("freeze"), json!({})), 400, "timeout").await?;
    put("freeze", json!({"unfreezeTimeout": "5m0s"})).await?;
    test.wait(&instances(test), "vmi", "is frozen", |vmi| stands_still(vmi, true)).await?;
    shell.start("echo word >/data/word");
    tokio::time::sleep(Duration::from_secs(2)).await;
    ensure!(shell.run("ls /data")?.lines().all(|name| name != "word"), "it was written while frozen");
    put("unfreeze", Value::Null).await?;
    test.wait(&instances(test), "vmi", "is not frozen", |vmi| stands_still(vmi, false)).await?;
    try_for(SOON, || {
        ensure!(shell.run("cat /data/word")?.trim() == "word", "it is not written");
        Ok(())
    })
    .await
}

async fn granted_put(test: &Test, rest: String, body: Value) -> Result<()> {
    granted(test, Method::PUT, &rest, body).await.map(drop)
}

/// What this guest has not, and what no guest has here, is said.
async fn what_cannot_be_is_told(test: &Test) -> Result<()> {
    {
        let _usual = gates::USUAL.read().await;
        gates::open(test)?;
    }
    let secret = json!({"header": "aGVhZA==", "secret": "c2VjcmV0"});
    let session = json!({"session": "c2Vzc2lvbg==", "dhCert": "a2V5"});
    let checkpoint = json!({"name": "one"});
    let backup = json!({"cmd": "Start", "backupName": "one"});
    let cases = [
        (Method::GET, "sev/fetchcertchain", Value::Null, 409, "Attestation not requested"),
        (Method::GET, "sev/querylaunchmeasurement", Value::Null, 409, "Attestation not requested"),
        (Method::PUT, "sev/injectlaunchsecret", secret, 409, "Attestation not requested"),
        (Method::PUT, "sev/setupsession", session, 409, "not in Scheduled phase"),
        (Method::GET, "vsock?port=1", Value::Null, 400, "VSOCK is not attached"),
        (Method::PUT, "redefine-checkpoint", checkpoint, 409, "ChangedBlockTracking is not enabled"),
        (Method::PUT, "backup", backup, 500, "backup"),
        (Method::GET, "portforward/99999", Value::Null, 400, "99999"),
        (Method::GET, "portforward/22/sctp", Value::Null, 400, "sctp"),
        (Method::GET, "console", Value::Null, 400, "WebSocket"),
    ];
    for (method, subresource, body, code, words) in cases {
        let begin = Instant::now();
        // It takes a moment until all have heard of a gate.
        while let Err(error) =
            refused(test, (method.clone(), &of(subresource), body.clone()), code, words).await
        {
            let gate = format!("{error:#}").contains("feature gate");
            ensure!(gate && begin.elapsed() < SOON, "{error:#}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
    Ok(())
}

/// A client has the guest boot again.
async fn boots_again(test: &Test, shell: &Guest<'_>, client: Client, command: &str) -> Result<()> {
    let boot = || shell.boot();
    let before = boot()?;
    client.run(test, &[command, "vmi"])?;
    try_for(PATIENCE, || {
        ensure!(boot()? != before, "{client:?}: the guest goes on after {command}");
        Ok(())
    })
    .await
}

/// One guest, and all that can be asked of its instance.
#[tokio::test]
async fn an_instance_is_commanded_while_it_runs() -> Result<()> {
    KUBEVIRT
        .run("instance", async |test| {
            let mut spec = guest("vmi")?;
            spec["domain"]["devices"]["clientPassthrough"] = json!({});
            let _leave = may_boot().await?;
            test.apply(&instance("vmi", spec)).await?;
            let shell = Guest::wait(test, "vmi").await?;
            let agent = conditions::has::<VirtualMachineInstance>("AgentConnected");
            test.wait_within(PATIENCE, &instances(test), "vmi", "has its agent", agent).await?;

            what_cannot_be_is_told(test).await.context("refusals")?;
            datagrams::are_echoed(test, &shell, "vmi").context("echo")?;
            for client in CLIENTS {
                is_paused(test, &shell, client).await.context("pause")?;
                usb::is_brought(test, client, "vmi").await.context("USB")?;
                datagrams::come_back(test, client, "vmi").await.context("datagrams")?;
            }
            is_frozen(test, &shell).await.context("freeze")?;
            volumes::come_and_go(test, &shell, "vmi", &[]).await.context("volumes")?;
            boots_again(test, &shell, Client::Original, "soft-reboot").await.context("soft-reboot")?;
            boots_again(test, &shell, Client::Ours, "reset").await.context("reset")
        })
        .await
}
