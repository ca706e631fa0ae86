//! Our virtctl as a plugin of kubectl, which finds it by its name.

use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Result, ensure};
use kubevirt_api::vmi::status::VmiPhase;
use test_kit::{KUBEVIRT, Test};

use super::client::attempt;
use crate::machines::guest::{instances, wait_for_phase};
use crate::machines::manifest::{idle, machine};
use crate::machines::storage;

/// What `kubectl virt` prints, if kubectl looks for plugins in the folder.
fn virt(test: &Test, folder: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = test.cluster().kubectl_command(&[&["virt"], arguments].concat());
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", folder.display()));
    let (ended, printed, complaint) = attempt(command)?;
    ensure!(ended, "kubectl virt {arguments:?}: {printed}{complaint}");
    Ok(printed)
}

#[tokio::test]
async fn kubectl_finds_our_commands() -> Result<()> {
    KUBEVIRT
        .run("plugin", async |test| {
            let folder = storage::folder(test, "plugin")?;
            symlink(&test_kit::system_images()?.program, folder.join("kubectl-virt"))?;
            let within = format!("--namespace={}", test.namespace());
            let help = virt(test, &folder, &["start", "--help"])?;
            ensure!(help.contains("kubectl virt start myvm"), "{help}");
            let version = virt(test, &folder, &["version"])?;
            ensure!(version.contains("Server Version: version.Info{GitVersion:\"v"), "{version}");

            test.apply(&machine("vm", "Manual", idle())).await?;
            virt(test, &folder, &["start", "vm", &within])?;
            wait_for_phase(test, "vm", VmiPhase::Running).await?;
            virt(test, &folder, &["stop", "vm", "--force", "--grace-period=0", &within])?;
            test.wait_until_gone(&instances(test), "vm").await
        })
        .await
}
