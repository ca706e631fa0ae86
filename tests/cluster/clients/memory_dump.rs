//! The memory of a guest, on a claim.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::{MemoryDumpPhase, MemoryDumpRequest};
use test_kit::Test;

use super::client::{CLIENTS, Client, attempt};
use crate::machines::guest::{PATIENCE, machines};
use crate::machines::storage;

const CLAIM: &str = "dump";

fn request(vm: &VirtualMachine) -> Option<&MemoryDumpRequest> {
    vm.status.as_ref()?.memory_dump_request.as_ref()
}

/// What a claim must be like is said, and what a machine has nothing of.
fn what_cannot_be_is_told(test: &Test, client: Client) -> Result<()> {
    for (arguments, why) in [
        (&["get", "vm", "--claim-name=little"][..], "should be bigger"),
        (&["get", "vm", "--claim-name=missing"], "not found"),
        (&["get", "vm"], "claim name"),
        (&["remove", "vm"], "no association found"),
        (&["get", "missing", "--claim-name=dump"], "not found"),
    ] {
        let said = client.fail(test, &[&["memory-dump"], arguments].concat())?;
        ensure!(said.contains(why), "{client:?} {arguments:?}: {said}");
    }
    Ok(())
}

/// Waits until the dump is complete, and looks at it.
async fn is_complete(test: &Test, folder: &Path, before: Option<&str>) -> Result<String> {
    let complete = |vm: &VirtualMachine| {
        request(vm).is_some_and(|dump| {
            dump.phase == MemoryDumpPhase::Failed
                || dump.phase == MemoryDumpPhase::Completed && dump.file_name.as_deref() != before
        })
    };
    let vm = test.wait_within(PATIENCE, &machines(test), "vm", "has its memory dumped", complete).await?;
    let dump = request(&vm).context("no dump")?;
    ensure!(dump.phase == MemoryDumpPhase::Completed, "{:?}", dump.message);
    let file = dump.file_name.clone().context("a dump without a file")?;
    let mut start = [0; 4];
    let mut dumped = std::fs::File::open(folder.join(&file)).with_context(|| file.clone())?;
    dumped.read_exact(&mut start)?;
    ensure!(&start == b"\x7fELF", "{file} starts with {start:?}");
    let size = dumped.metadata()?.len();
    ensure!(size >= 192 << 20, "{file} has {size} bytes, less than the guest has memory");
    Ok(file)
}

/// The memory is dumped, twice to the same claim, and the claim is let go.
pub async fn is_taken(test: &Test) -> Result<()> {
    let folder = storage::claim_empty_folder(test, CLAIM, 512 << 20).await?;
    storage::claim_folder(test, "little", "").await?;
    for client in CLIENTS {
        what_cannot_be_is_told(test, client)?;
    }
    Client::Original.run(test, &["memory-dump", "get", "vm", "--claim-name=dump"])?;
    let first = is_complete(test, &folder, None).await.context("the first dump")?;
    // It takes its time to give up.
    let file =
        folder.join("download").into_os_string().into_string().ok().context("a path that is no text")?;
    let download = Client::Ours.command(test, &["memory-dump", "download", "vm", "--output", &file])?;
    let download = tokio::task::spawn_blocking(|| attempt(download));
    // The claim stays the machine's, and need not be named again.
    let said = Client::Original.fail(test, &["memory-dump", "get", "vm", "--claim-name=little"])?;
    ensure!(said.contains("still associated"), "another claim: {said}");
    Client::Ours.run(test, &["memory-dump", "get", "vm"])?;
    is_complete(test, &folder, Some(&first)).await.context("the second dump")?;
    Client::Ours.run(test, &["memory-dump", "remove", "vm"])?;
    let gone = |vm: &VirtualMachine| request(vm).is_none();
    let vm = test.wait_within(PATIENCE, &machines(test), "vm", "has let the claim go", gone).await?;
    let volumes = vm.spec.template.spec.and_then(|spec| spec.volumes).unwrap_or_default();
    ensure!(volumes.iter().all(|volume| volume.name != CLAIM), "the volume is still there");
    let (ended, printed, complaint) = download.await??;
    let clear = complaint.contains("Nobody in the cluster looks after exports");
    ensure!(!ended && clear, "download without exports: {printed}{complaint}");
    storage::release(test, &[CLAIM, "little"])
}
