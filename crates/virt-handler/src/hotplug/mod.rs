//! Volumes that come and go while a machine runs.
//!
//! Another pod, whose only task it is, has the kubelet bring a volume to the node. From there it is put into the
//! folder of hotplugged volumes of the launcher's pod: the image or folder of a file system by a mount, a block device
//! by a file that stands for it and a rule that lets the launcher use it.

mod decide;

use std::io;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::layout::Layout;
use kubevirt_host::device_rules::Rule;
use kubevirt_host::inside::{Inside, Kind};

use crate::isolation::{Folders, Place, isolated};
use crate::permissions;
use crate::prepare::{Ledger, Mounted, Plugged, PrepareError, failed};
use crate::volumes::HOTPLUG_DISKS;
use crate::volumes::bind::{self, Source};
use decide::{Form, Wanted};

/// The socket on which the pod of a volume listens.
const SOCKET: &str = "hp.sock";
/// The image in a claim that is a file system.
const IMAGE: &str = "disk.img";

/// How far a hotplugged volume has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotplugState {
    /// Name of the volume.
    pub volume: String,
    /// Whether the launcher can use it.
    pub progress: Progress,
}

/// Whether a launcher can use a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It can.
    Mounted,
    /// No pod has brought it to the node; the VMI says so when one has.
    Unattached,
    /// Something is missing on the node, and nobody tells when it is there.
    Waits(String),
}

impl HotplugState {
    /// What is waited for, if anything.
    pub(crate) fn waiting(&self) -> Option<String> {
        let why = match &self.progress {
            Progress::Mounted => return None,
            Progress::Unattached => "it is not attached to the node yet",
            Progress::Waits(why) => why,
        };
        Some(format!("volume {:?}: {why}", self.volume))
    }

    /// What has to be looked for again, if anything.
    pub(crate) fn missing(&self) -> Option<String> {
        self.waiting().filter(|_| matches!(self.progress, Progress::Waits(_)))
    }
}

/// Plugs what the VMI wants and is not there yet. A volume that cannot be plugged keeps no other from it.
pub(crate) fn plug(
    vmi: &VirtualMachineInstance,
    place: &Place,
    ledger: &mut Ledger,
) -> Result<Vec<HotplugState>, PrepareError> {
    let mut states = Vec::new();
    for wanted in decide::wanted(vmi) {
        let progress = match &wanted.pod {
            None => Progress::Unattached,
            Some(pod) => match one(&wanted, pod, place, ledger) {
                Ok(()) => Progress::Mounted,
                Err(error) => Progress::Waits(error.to_string()),
            },
        };
        states.push(HotplugState { volume: wanted.volume, progress });
    }
    Ok(states)
}

fn one(wanted: &Wanted, pod: &str, place: &Place, ledger: &mut Ledger) -> Result<(), PrepareError> {
    place.folders().check(pod)?;
    match wanted.form {
        Form::Block => block(wanted, pod, place, ledger),
        Form::Image => {
            let name = format!("{}.img", wanted.volume);
            let seen_at = Layout::default().hotplug(&wanted.volume, false);
            mounted(wanted, pod, place, ledger, name, &seen_at)
        }
        Form::Folder => {
            let seen_at = Layout::default().hotplug(&wanted.volume, true);
            mounted(wanted, pod, place, ledger, wanted.volume.clone(), &seen_at)
        }
    }
}

fn mounted(
    wanted: &Wanted,
    pod: &str,
    place: &Place,
    ledger: &mut Ledger,
    name: String,
    seen_at: &str,
) -> Result<(), PrepareError> {
    let target = Mounted { volume: HOTPLUG_DISKS.to_owned(), folder: None, name };
    let folders = place.folders();
    bind::bind(place, ledger, &target, seen_at, || {
        source(wanted, pod, folders)
            .map_err(|error| PrepareError::NotYet(format!("its pod does not have it yet: {error}")))
    })
}

/// The volume as its pod has it: at a folder of its own name.
fn source(wanted: &Wanted, pod: &str, folders: &Folders) -> io::Result<Source> {
    let socket = Inside::folder(&folders.empty_dir(pod, HOTPLUG_DISKS))?.beneath(SOCKET)?;
    let process = isolated(&socket)?;
    let volume = process.root()?.beneath(&wanted.volume)?;
    if !volume.is_mount_point()? {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it is not mounted"));
    }
    let file = match wanted.form {
        Form::Folder => volume,
        // A link may lead to another file of the same volume.
        _ => volume.in_root(IMAGE)?,
    };
    let expected = if wanted.form == Form::Folder { Kind::Folder } else { Kind::File };
    if file.kind()? != expected {
        return Err(io::Error::other(format!("{} is no {expected:?}", file.shown().display())));
    }
    match file.give_to(wanted.user, wanted.user) {
        // Storage that trusts no root gives the right owner itself, or the launcher says what is wrong.
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            Err(error)
        }
        _ => Ok(Source { file, namespace: process.mounts()?, read_only: false }),
    }
}

fn block(wanted: &Wanted, pod: &str, place: &Place, ledger: &mut Ledger) -> Result<(), PrepareError> {
    let name = &wanted.volume;
    let error = |error: io::Error| failed(format_args!("its device cannot be made: {error}"));
    let folder = place.empty_dir(HOTPLUG_DISKS).map_err(error)?;
    let known =
        ledger.record().devices.iter().find(|plugged| plugged.name == *name).map(|plugged| plugged.device);
    let device = match known {
        Some(device) => device,
        None => device(name, pod, place.folders())
            .map_err(|error| PrepareError::NotYet(format!("its pod does not have it yet: {error}")))?,
    };
    ledger.change(|record| {
        if known.is_none() {
            record.devices.push(Plugged { name: name.clone(), device });
        }
    })?;
    let file = folder.make_block_device(name, device, 0o660).map_err(error)?;
    file.give_to(wanted.user, wanted.user).map_err(error)?;
    permissions::Label::of(place)?.put_on(&file, false).map_err(error)?;
    permissions::allow_device(place, Rule::block(device))
}

/// The device's number: of the only device in the folder of the volume's name.
fn device(volume: &str, pod: &str, folders: &Folders) -> io::Result<u64> {
    let folder = Inside::folder(&folders.empty_dir(pod, HOTPLUG_DISKS))?.beneath(volume)?;
    for name in folder.names()? {
        if let Ok(Kind::Block(device)) = folder.beneath(name).and_then(|file| file.kind()) {
            return Ok(device);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::NotFound,
        format!("there is no device in {}", folder.shown().display()),
    ))
}

/// Takes away what the VMI no longer wants and the guest has let go of. What did not work is returned, and tried
/// again next time.
pub(crate) fn unplug(
    vmi: &VirtualMachineInstance,
    place: &Place,
    ledger: &mut Ledger,
) -> Result<Vec<String>, PrepareError> {
    let mut problems = Vec::new();
    let (folders, pod_uid) = (place.folders(), place.pod_uid());
    for mounted in decide::unwanted_mounts(vmi, &ledger.record().mounts) {
        match bind::unbind(folders, pod_uid, &mounted) {
            Ok(()) => ledger.change(|record| record.mounts.retain(|known| *known != mounted))?,
            Err(error) => problems.push(error.to_string()),
        }
    }
    for plugged in decide::unwanted_devices(vmi, &ledger.record().devices) {
        let gone = remove_device(folders, pod_uid, &plugged.name)
            .and_then(|()| permissions::deny_device(place, Rule::block(plugged.device)));
        match gone {
            Ok(()) => ledger.change(|record| record.devices.retain(|known| *known != plugged))?,
            Err(error) => problems.push(error.to_string()),
        }
    }
    Ok(problems)
}

/// Removes the file of a device; the pod may be gone.
pub(crate) fn remove_device(folders: &Folders, pod_uid: &str, name: &str) -> Result<(), PrepareError> {
    match Inside::folder(&folders.empty_dir(pod_uid, HOTPLUG_DISKS)).and_then(|folder| folder.remove(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(()),
    }
}
