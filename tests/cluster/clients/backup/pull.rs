//! A backup that is read from the machine, for as long as somebody wants it.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use http::Method;
use kube::ResourceExt;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde::Deserialize;
use serde_json::json;
use test_kit::Test;

use super::super::ask::refused;
use super::{
    PLACES, PLUGGED_IN, TARGET, abort_of, ask, backup_status, begin, end, of, options, words_of_raw, write,
};
use crate::machines::guest::{Guest, PATIENCE, instances, launcher};

/// Where it is offered.
const SOCKET: &str = "/var/run/kubevirt/sockets/backup-nbd-sock";

/// A part of a disk. Where a bitmap is asked for, one without data is one that the bitmap marks.
#[derive(Debug, Deserialize)]
struct Extent {
    start: u64,
    length: u64,
    data: bool,
}

/// Runs QEMU's tool for images next to the machine, where the socket is.
async fn qemu_img(test: &Test, arguments: &[&str]) -> Result<String> {
    let pod = launcher(test, &instances(test).get("vm").await?).await?.name_any();
    test.kubectl(&[&["exec", &pod, "--container=compute", "--", "qemu-img"], arguments].concat())
}

/// Begins one of what changed since a checkpoint, reads it while the guest writes, and ends it; the checkpoint that it
/// leaves is told.
pub async fn is_read(test: &Test, folder: &Path, shell: &Guest<'_>, since: &str) -> Result<String> {
    write(shell, "early", PLACES[0])?;
    let mut wish = options("pulled", "Start");
    (wish["mode"], wish["incremental"]) = (json!("Pull"), json!(since));
    begin(test, &wish).await?;
    let told = |vmi: &VirtualMachineInstance| {
        backup_status(vmi).is_some_and(|told| told.quiesce_status.is_some() && told.checkpoint_name.is_some())
    };
    let vmi = test.wait_within(PATIENCE, &instances(test), "vm", "offers a backup", told).await?;
    let told = backup_status(&vmi).context("no backup")?;
    ensure!(told.completed != Some(true) && told.end_timestamp.is_none(), "{told:?}");
    let checkpoint = told.checkpoint_name.clone().context("no checkpoint")?;

    // Whatever the guest writes now, a backup is of one point in time.
    write(shell, "later", PLACES[0])?;
    let export = format!("nbd+unix:///data?socket={SOCKET}");
    let file = format!("{PLUGGED_IN}/{TARGET}/pulled.raw");
    qemu_img(test, &["convert", "-O", "raw", &export, &file]).await?;
    let found = words_of_raw(&folder.join("pulled.raw"))?;
    ensure!(found == ["early", "first", "second", ""], "{found:?}");
    let changed = changed(test, &checkpoint).await?;
    ensure!(changed == [(0, 64 << 10)], "{changed:?}");
    refused(test, (Method::PUT, &of("backup"), options("other", "Start")), 500, "another backup").await?;

    ask(test, "backup", abort_of("pulled")).await?;
    let told = end(test).await?;
    ensure!(told.failed != Some(true) && told.backup_msg.is_none(), "{told:?}");
    ensure!(qemu_img(test, &["info", &export]).await.is_err(), "it is still offered");
    ensure!(!folder.join("vm").join(&checkpoint).exists(), "its scratch space is left");
    Ok(checkpoint)
}

/// Where the disk changed, by what comes with the backup.
async fn changed(test: &Test, checkpoint: &str) -> Result<Vec<(u64, u64)>> {
    let image = json!({
        "driver": "nbd", "server": {"type": "unix", "path": SOCKET}, "export": "data",
        "x-dirty-bitmap": format!("qemu:dirty-bitmap:{checkpoint}"),
    });
    let map = qemu_img(test, &["map", "--output=json", &format!("json:{image}")]).await?;
    let map: Vec<Extent> = serde_json::from_str(&map).with_context(|| map.clone())?;
    let changed = map.iter().filter(|extent| !extent.data);
    Ok(changed.map(|extent| (extent.start, extent.length)).collect())
}
