//! Requests that must lead nowhere.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use http::Method;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::{Value, json};
use test_kit::{KUBEVIRT, Test};

use super::ask::refused;
use crate::machines::guest::wait_for_phase;
use crate::machines::manifest::{idle, instance};

/// The path of a subresource of an instance.
fn path(test: &Test, subresource: &str) -> String {
    let namespace = test.namespace();
    format!(
        "/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances/vmi/{subresource}"
    )
}

/// What a node hears from virt-api itself, past the API server.
fn ask_directly(test: &Test, path: &str, more: &[&str]) -> Result<String> {
    let address = "--output=jsonpath={.spec.clusterIP}";
    let address = test.cluster().kubectl(&["get", "service", "virt-api", "-n", "kubevirt", address])?;
    let enter = test.cluster().enter_node("node01")?;
    let mut curl = Command::new(&enter[0]);
    curl.args(&enter[1..]).args(["curl", "-sk", "--max-time", "30", "-w", " %{http_code}"]).args(more);
    let output = curl.arg(format!("https://{address}{path}")).output().context("run curl")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[tokio::test]
async fn who_may_not_gets_nowhere() -> Result<()> {
    KUBEVIRT
        .run("refusals", async |test| {
            test.apply(&instance("vmi", idle())).await?;
            wait_for_phase(test, "vmi", VmiPhase::Running).await?;
            let info = path(test, "guestosinfo");

            let stranger = ["--as=stranger", "--as-group=system:authenticated", "get", "--raw", &info];
            let told = test.kubectl(&stranger).expect_err("a stranger").to_string();
            ensure!(told.contains("orbidden"), "{told}");

            let forged = ["-H", "X-Remote-User: admin", "-H", "X-Remote-Group: system:masters"];
            let told = ask_directly(test, &info, &forged)?;
            ensure!(told.ends_with(" 401"), "forged headers: {told}");
            let told = ask_directly(test, &info, &[])?;
            ensure!(told.ends_with(" 401"), "nobody: {told}");

            // A token of the cluster is not a certificate of its aggregator.
            let token = test.kubectl(&["create", "token", "default"])?;
            let bearer = format!("Authorization: Bearer {}", token.trim());
            let told = ask_directly(test, &info, &["-H", &bearer])?;
            ensure!(told.ends_with(" 401"), "a token: {told}");

            // Everybody may ask what there is, and the version.
            ensure!(
                ask_directly(test, "/apis/subresources.kubevirt.io/v1/healthz", &[])?.ends_with(" 200"),
                "health"
            );
            without_an_agent(test).await?;
            of_the_installation(test)
        })
        .await
}

/// A guest without an agent cannot hold its file systems still, and clients know the words.
async fn without_an_agent(test: &Test) -> Result<()> {
    let words = |command: &str| format!("command {command} failed: the QEMU guest agent is not connected");
    let of = |what: &str| format!("virtualmachineinstances/vmi/{what}");
    let time = json!({"unfreezeTimeout": "0s"});
    refused(test, (Method::PUT, &of("freeze"), time), 500, &words("Freeze")).await?;
    refused(test, (Method::PUT, &of("unfreeze"), Value::Null), 500, &words("Unfreeze")).await
}

/// What is told of the installation, and what is not.
fn of_the_installation(test: &Test) -> Result<()> {
    let get = |what: &str| {
        test.cluster().kubectl(&["get", "--raw", &format!("/apis/subresources.kubevirt.io/v1/{what}")])
    };
    let version = get("version")?;
    ensure!(version.contains("gitVersion"), "{version}");
    let said = get("guestfs").unwrap_or_else(|error| format!("{error:#}"));
    ensure!(said.contains("guestfs"), "{said}");
    Ok(())
}
