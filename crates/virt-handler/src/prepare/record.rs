//! What was done for a pod, on disk: it outlives the handler, and no launcher can write it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use kube::ResourceExt;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_network::Wiring;
use serde::{Deserialize, Serialize};

use super::{Folders, Place, PrepareError, failed};

/// What was done for a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Record {
    /// Namespace and name of the machine.
    pub namespace: String,
    pub name: String,
    /// UID of the VMI.
    pub uid: String,
    /// What is, or is about to be, mounted.
    pub mounts: Vec<Mounted>,
    /// Devices that were, or are about to be, plugged.
    pub devices: Vec<Plugged>,
    /// How networks were found and wired up.
    pub wirings: Vec<Wiring>,
}

/// Something that is mounted in a volume of the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mounted {
    /// The pod's empty folder that it is mounted in.
    pub volume: String,
    /// A folder in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Name of the file or folder that it is mounted on.
    pub name: String,
}

/// A block device of a hotplugged volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plugged {
    /// Name of the volume, and of the device's file.
    pub name: String,
    /// The device's number.
    pub device: u64,
}

/// A pod that something was done for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// UID of the pod.
    pub pod_uid: String,
    /// Namespace of the machine.
    pub namespace: String,
    /// Name of the machine.
    pub name: String,
    /// UID of the VMI.
    pub vmi_uid: String,
}

/// A [`Record`] and its file.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    record: Record,
}

impl Ledger {
    /// The record of a pod, which may be empty yet.
    pub fn open(place: &Place, vmi: &VirtualMachineInstance) -> Result<Self, PrepareError> {
        let found = Self::existing(place.pod_uid(), place.folders())?;
        let path = file(place.folders(), place.pod_uid());
        let record = Record {
            namespace: vmi.namespace().unwrap_or_default(),
            name: vmi.name_any(),
            uid: vmi.uid().unwrap_or_default(),
            ..Record::default()
        };
        Ok(found.unwrap_or(Self { path, record }))
    }

    /// The record of a pod, if there is one.
    pub fn existing(pod_uid: &str, folders: &Folders) -> Result<Option<Self>, PrepareError> {
        folders.check(pod_uid)?;
        let path = file(folders, pod_uid);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => {
                bytes.map_err(|error| failed(format_args!("cannot read {}: {error}", path.display())))?
            }
        };
        let record = serde_json::from_slice(&bytes)
            .map_err(|error| failed(format_args!("cannot understand {}: {error}", path.display())))?;
        Ok(Some(Self { path, record }))
    }

    /// What is written there.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Changes the record. It is safe on disk when this returns; without a change nothing is written.
    pub fn change(&mut self, change: impl FnOnce(&mut Record)) -> Result<(), PrepareError> {
        let mut record = self.record.clone();
        change(&mut record);
        if record == self.record && self.path.exists() {
            return Ok(());
        }
        write(&self.path, &record)
            .map_err(|error| failed(format_args!("cannot write {}: {error}", self.path.display())))?;
        self.record = record;
        Ok(())
    }

    /// Removes the record.
    pub fn forget(self) -> Result<(), PrepareError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed(format_args!("cannot remove {}: {error}", self.path.display())))
            }
            _ => Ok(()),
        }
    }
}

/// All pods that have a record. One that cannot be read is told of and passed over: it must not keep the others from
/// being looked after.
pub(crate) fn all(folders: &Folders) -> Result<Vec<Remembered>, PrepareError> {
    let folder = folder(folders);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => {
            entries.map_err(|error| failed(format_args!("cannot read {}: {error}", folder.display())))?
        }
    };
    let mut all = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pod_uid) = name.to_str().and_then(|name| name.strip_suffix(".json")) else { continue };
        match Ledger::existing(pod_uid, folders) {
            Ok(Some(Ledger { record, .. })) => {
                let Record { namespace, name, uid: vmi_uid, .. } = record;
                all.push(Remembered { pod_uid: pod_uid.to_owned(), namespace, name, vmi_uid });
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(pod = pod_uid, %error, "what was done for a pod is not known"),
        }
    }
    all.sort_by(|a, b| a.pod_uid.cmp(&b.pod_uid));
    Ok(all)
}

fn folder(folders: &Folders) -> PathBuf {
    folders.private.join("pods")
}

fn file(folders: &Folders, pod_uid: &str) -> PathBuf {
    folder(folders).join(format!("{pod_uid}.json"))
}

/// Writes beside the file and renames, so that there is always a whole record.
fn write(path: &Path, record: &Record) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let beside = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(&serde_json::to_vec(record)?)?;
    file.sync_data()?;
    fs::rename(&beside, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_data())
}
