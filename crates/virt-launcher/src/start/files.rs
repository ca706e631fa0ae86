//! Files, folders and sockets that must be there before QEMU starts.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use kubevirt_domain::Domain;
use kubevirt_domain::domain::disk::Disk;
use kubevirt_domain::needs::{Need, needs};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::error::CommandError;

/// How long another container of the pod may take to listen on its socket.
const LISTENERS: Duration = Duration::from_secs(30);

/// How often a socket that is awaited is looked for; only while a machine starts.
const LOOK: Duration = Duration::from_millis(10);

/// Makes what a domain needs, and says what is missing. Images were made ready with the volumes.
pub(super) async fn prepare(domain: &Domain) -> Result<(), CommandError> {
    for need in needs(domain) {
        match need {
            Need::Folder(path) => folder(Path::new(&path))?,
            Need::File(file) => write(Path::new(&file.path), file.content.as_bytes())?,
            Need::Copy { from, to } => copy_once(Path::new(&from), Path::new(&to))?,
            Need::Tracker { path, data, .. } => track(Path::new(&path), data.path()).await?,
            Need::Readable(path) => readable(Path::new(&path))?,
            Need::Device(path) => device(Path::new(&path))?,
            Need::Image { .. } | Need::Overlay { .. } | Need::Socket(_) => {}
        }
    }
    Ok(())
}

/// Waits for the sockets that others listen on.
pub(super) async fn await_sockets(domain: &Domain) -> Result<(), CommandError> {
    let deadline = Instant::now() + LISTENERS;
    for need in needs(domain) {
        if let Need::Socket(path) = need {
            await_socket(Path::new(&path), deadline).await?;
        }
    }
    Ok(())
}

async fn await_socket(path: &Path, deadline: Instant) -> Result<(), CommandError> {
    while !path.exists() {
        if Instant::now() > deadline {
            let what = format!("nobody listens on {} after {LISTENERS:?}", path.display());
            return Err(CommandError::Unsupported(what));
        }
        sleep(LOOK).await;
    }
    Ok(())
}

fn folder(path: &Path) -> Result<(), CommandError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o750).create(path);
    made.map_err(CommandError::io(format!("cannot make {}", path.display())))
}

fn write(path: &Path, content: &[u8]) -> Result<(), CommandError> {
    fs::write(path, content).map_err(CommandError::io(format!("cannot write {}", path.display())))
}

fn readable(path: &Path) -> Result<(), CommandError> {
    fs::File::open(path).map(drop).map_err(CommandError::io(format!("cannot read {}", path.display())))
}

fn device(path: &Path) -> Result<(), CommandError> {
    if path.exists() {
        return Ok(());
    }
    Err(CommandError::Unsupported(format!("the pod has no {}", path.display())))
}

/// Copies a file unless the copy exists: a guest's UEFI variables outlive a restart.
fn copy_once(from: &Path, to: &Path) -> Result<(), CommandError> {
    if to.exists() {
        return Ok(());
    }
    // Under another name first, so that nobody ever finds half of it.
    let partial = to.with_extension("partial");
    let copied: io::Result<()> = fs::copy(from, &partial).and_then(|_| fs::rename(&partial, to));
    copied.map_err(CommandError::io(format!("cannot copy {} to {}", from.display(), to.display())))
}

/// Makes what disks need that come while the machine runs.
pub(crate) async fn prepare_disks(domain: &Domain) -> Result<(), CommandError> {
    for need in needs(domain) {
        if let Need::Tracker { path, data, .. } = need {
            track(Path::new(&path), data.path()).await?;
        }
    }
    Ok(())
}

/// Forgets which blocks of a disk changed: another one may come by its name.
pub(crate) fn forget_disk(disk: &Disk) {
    if let Some(image) = disk.image.as_ref().filter(|image| image.data.is_some())
        && let Err(error) = fs::remove_file(image.location.path())
    {
        tracing::warn!(%error, disk = disk.name, "what tracked its changes is left behind");
    }
}

/// Makes the image that tracks which blocks of another changed. Rare enough to leave to QEMU's own tool. That empties
/// the file that it is given for the data, so it is given another; QEMU itself is told of the right one.
async fn track(path: &Path, data: &str) -> Result<(), CommandError> {
    if path.exists() {
        return Ok(());
    }
    let failed = format!("cannot make {}", path.display());
    let size = fs::File::open(data).and_then(|mut file| io::Seek::seek(&mut file, io::SeekFrom::End(0)));
    let size = size.map_err(CommandError::io(format!("cannot read {data}")))?;
    let (partial, stand_in) = (path.with_extension("partial"), path.with_extension("data"));
    let options = format!("data_file={},data_file_raw=on,preallocation=metadata", stand_in.display());
    let mut command = Command::new("qemu-img");
    command.args(["create", "-q", "-f", "qcow2", "-o", &options]).arg(&partial).arg(size.to_string());
    let done = command.output().await;
    // It holds nothing, and is not there if nothing was made.
    let _ = fs::remove_file(&stand_in);
    let done = done.map_err(CommandError::io(failed.as_str()))?;
    if !done.status.success() {
        let words = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        return Err(CommandError::io(failed)(io::Error::other(words)));
    }
    fs::rename(&partial, path).map_err(CommandError::io(failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_disk_whose_changes_are_tracked_keeps_what_is_on_it() {
        let folder = std::env::temp_dir().join(format!("kubevirt-track-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let (data, tracker) = (folder.join("disk.img"), folder.join("root.qcow2"));
        let mut bytes = vec![0; 4 << 20];
        bytes[..512].fill(7);
        bytes[3 << 20..].fill(9);
        fs::write(&data, &bytes).unwrap();
        let names = |folder: &Path| fs::read_dir(folder).unwrap().count();
        for _ in 0..2 {
            track(&tracker, data.to_str().unwrap()).await.unwrap();
            assert!(fs::read(&data).unwrap() == bytes);
            assert_eq!(names(&folder), 2);
        }
        let image = format!(
            "driver=qcow2,file.driver=file,file.filename={},data-file.driver=file,data-file.filename={}",
            tracker.display(),
            data.display()
        );
        let seen = std::process::Command::new("qemu-io")
            .args(["-r", "--image-opts", &image, "-c", "read -P 7 0 512", "-c", "read -P 9 3M 1M"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&seen.stdout).into_owned();
        assert!(seen.status.success() && !said.contains("failed"), "{said}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
