//! Files and folders of elsewhere, mounted into an empty folder of a pod.
//!
//! The mount is made on the node, under the kubelet's path of the folder, and reaches the pod because the pod asked
//! for mounts of the node to appear there. A mount is written down before it is made.

use std::io;

use kubevirt_host::inside::{Inside, Kind};
use kubevirt_host::mounts::{Detached, MountNs, unmount_all};

use crate::isolation::{Folders, Place};
use crate::prepare::{Ledger, Mounted, PrepareError, failed};

/// What is to be mounted, and how.
pub(crate) struct Source {
    /// The file or folder.
    pub file: Inside,
    /// The mount namespace that it is in.
    pub namespace: MountNs,
    /// Whether the pod may only read it.
    pub read_only: bool,
}

/// Mounts a source if nothing is mounted there yet. `seen_at` is where the launcher must find it.
pub(crate) fn bind(
    place: &Place,
    ledger: &mut Ledger,
    target: &Mounted,
    seen_at: &str,
    source: impl FnOnce() -> Result<Source, PrepareError>,
) -> Result<(), PrepareError> {
    let error = |error: io::Error| failed(format_args!("cannot mount {}: {error}", target.name));
    let base = place.empty_dir(&target.volume).map_err(error)?;
    let folder = match &target.folder {
        Some(folder) => base.make_folder(folder, 0o755).map_err(error)?,
        None => base,
    };
    if is_mounted(&folder, &target.name).map_err(error)? {
        return Ok(());
    }
    let source = source()?;
    ledger.change(|record| {
        if !record.mounts.contains(target) {
            record.mounts.push(target.clone());
        }
    })?;
    let onto = match source.file.kind().map_err(error)? {
        Kind::Folder => folder.make_folder(&target.name, 0o750),
        Kind::File => folder.make_file(&target.name, 0o640),
        kind => Err(io::Error::other(format!("{} is no file: {kind:?}", source.file.shown().display()))),
    };
    let copy = Detached::copy(&source.file, &source.namespace, source.read_only).map_err(error)?;
    copy.attach(&onto.map_err(error)?).map_err(error)?;
    check_arrival(place, seen_at, &source.file)
}

/// Whether something is mounted on a name in a folder.
pub(crate) fn is_mounted(folder: &Inside, name: &str) -> io::Result<bool> {
    match folder.beneath(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        there => there?.is_mount_point(),
    }
}

/// A mount that does not reach the pod is of no use, and would lead to an error that nobody understands.
fn check_arrival(place: &Place, seen_at: &str, source: &Inside) -> Result<(), PrepareError> {
    let identity = |file: &Inside| file.identity().ok();
    let seen = place.root().in_root(seen_at).ok();
    if seen.as_ref().and_then(identity) == identity(source) {
        return Ok(());
    }
    Err(failed(format_args!(
        "what is mounted in {} does not reach the pod: virt-handler needs that folder with the mount propagation \
         Bidirectional, and the launcher its volume with HostToContainer",
        place.folders().pods.display()
    )))
}

/// Takes a mount away, and the file or folder that it was on. The pod may be gone, and so may the mount.
pub(crate) fn unbind(folders: &Folders, pod_uid: &str, target: &Mounted) -> Result<(), PrepareError> {
    let error = |error: io::Error| failed(format_args!("cannot unmount {}: {error}", target.name));
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let base = Inside::folder(&folders.empty_dir(pod_uid, &target.volume));
    let folder = base.and_then(|base| match &target.folder {
        Some(folder) => base.beneath(folder),
        None => Ok(base),
    });
    let folder = match folder {
        Err(problem) if gone(&problem) => return Ok(()),
        folder => folder.map_err(error)?,
    };
    unmount_all(&folder, &target.name).map_err(error)?;
    match folder.beneath(&target.name).and_then(|there| there.kind()) {
        Err(problem) if gone(&problem) => Ok(()),
        Ok(Kind::Folder) => folder.remove_folder(&target.name).map_err(error),
        _ => folder.remove(&target.name).map_err(error),
    }
}
