//! A backup that is ended before it is whole.

use std::path::Path;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use test_kit::Test;

use super::{abort_of, ask, begin, end, options};
use crate::machines::groups::in_group;
use crate::machines::guest::{instances, launcher};
use crate::machines::storage::Device;

/// So slow, in bytes a second, that a backup takes minutes.
const SLOW: u64 = 64 << 10;

/// Lets a machine read a device so fast, or as fast as it can.
fn limit(test: &Test, pod: &Pod, device: &str, speed: Option<u64>) -> Result<()> {
    let (first, second) = match speed {
        Some(speed) => (format!("{device} {speed}"), format!("{device} rbps={speed}")),
        None => (format!("{device} 0"), format!("{device} rbps=max")),
    };
    let limit = |file: &str, line: &str| in_group(test, pod, file, &format!("echo {line} >{file}"));
    // Control groups of the first version, or of the second.
    limit("blkio.throttle.read_bps_device", &first).or_else(|_| limit("io.max", &second)).map(drop)
}

/// Begins a backup of a machine with this disk, and ends it while it surely runs: the disk can hardly be read.
pub async fn ends_it(test: &Test, folder: &Path, disk: &Device) -> Result<()> {
    let pod = launcher(test, &instances(test).get("vm").await?).await?;
    let disk = disk.numbers()?;
    limit(test, &pod, &disk, Some(SLOW))?;
    begin(test, &options("broken", "Start")).await?;
    ask(test, "backup", abort_of("broken")).await?;
    limit(test, &pod, &disk, None)?;
    let told = end(test).await?;
    ensure!(told.failed == Some(true), "{told:?}");
    ensure!(told.backup_msg.as_deref() == Some("backup aborted"), "{told:?}");
    let mut left = folder.join("vm").read_dir()?.flatten().map(|entry| entry.file_name());
    ensure!(!left.any(|name| name.to_string_lossy().starts_with("broken")), "a part of it is left");
    Ok(())
}
