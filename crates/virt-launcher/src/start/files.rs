//! Files, folders and sockets that must be there before QEMU starts.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use kubevirt_domain::Domain;
use kubevirt_domain::domain::disk::Disk;
use kubevirt_domain::needs::{Need, needs};
use tokio::time::{Instant, sleep};

use super::Way;
use super::tracker::{Use, track};
use crate::error::CommandError;

/// How long another container of the pod may take to listen on its socket.
const LISTENERS: Duration = Duration::from_secs(30);

/// How often a socket that is awaited is looked for; only while a machine starts.
const LOOK: Duration = Duration::from_millis(10);

/// Makes what a domain needs, and says what is missing. Images were made ready with the volumes.
pub(super) async fn prepare(domain: &Domain, way: Way) -> Result<(), CommandError> {
    let disks = match way {
        Way::Fresh => Use::Free,
        Way::Incoming => Use::Taken,
    };
    for need in needs(domain) {
        match need {
            Need::Folder(path) => folder(Path::new(&path))?,
            Need::File(file) => write(Path::new(&file.path), file.content.as_bytes())?,
            Need::Copy { from, to } => copy_once(Path::new(&from), Path::new(&to))?,
            Need::Tracker { path, data, .. } => track(Path::new(&path), data.path(), disks).await?,
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
pub(crate) async fn prepare_disks(running: &Domain, wanted: &Domain) -> Result<(), CommandError> {
    for need in needs(wanted) {
        if let Need::Tracker { disk, path, data } = need {
            let has_it = running.disks.iter().any(|known| known.name == disk);
            let disk = if has_it { Use::Taken } else { Use::Free };
            track(Path::new(&path), data.path(), disk).await?;
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
