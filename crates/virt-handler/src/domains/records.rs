//! What outlives the handler: a small file for each instance that may have left something on the node.
//!
//! Names and fields are those of KubeVirt's ghost records, so either handler finds what the other wrote.

use std::io;
use std::path::{Path, PathBuf};

use kubevirt_component::NamespacedName;
use kubevirt_launcher_rpc::DomainReport;
use serde::{Deserialize, Serialize};

use super::Owner;
use crate::launchers::folders;

/// The folder of the records.
#[derive(Debug)]
pub struct Records {
    folder: PathBuf,
}

/// One record.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Record {
    name: String,
    namespace: String,
    socket_file: String,
    uid: String,
    #[serde(rename = "podUID", skip_serializing_if = "String::is_empty")]
    pod: String,
    /// The last report of a domain that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<DomainReport>,
}

impl Record {
    fn of(owner: &Owner, end: Option<&DomainReport>) -> Self {
        Self {
            name: owner.key.name.clone(),
            namespace: owner.key.namespace.clone(),
            socket_file: folders::socket_of_kubelet(&owner.pod),
            uid: owner.uid.clone(),
            pod: owner.pod.clone(),
            end: end.cloned(),
        }
    }

    pub(super) fn owner(&self) -> Owner {
        let pod = if self.pod.is_empty() { folders::pod_of(&self.socket_file) } else { Some(&*self.pod) };
        Owner {
            key: NamespacedName::new(&self.namespace, &self.name),
            uid: self.uid.clone(),
            pod: pod.unwrap_or_default().to_owned(),
        }
    }
}

impl Records {
    /// Opens the folder, which is made if there is none.
    pub fn open(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// All records. One that cannot be read is told of and passed over: it must not keep the others from being
    /// looked after.
    pub(super) fn load(&self) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with('.') {
                continue;
            }
            let read = std::fs::read(&path).map(|text| serde_json::from_slice::<Record>(&text));
            match read {
                Ok(Ok(record)) if record.uid != name => {
                    tracing::warn!(?path, "a record is not of the instance that its name says");
                }
                // Without its pod nothing can be said of an instance; with no record it is looked for.
                Ok(Ok(record)) if record.owner().pod.is_empty() => {
                    tracing::warn!(?path, "a record does not say which pod it is about");
                }
                Ok(Ok(record)) => records.push(record),
                Ok(Err(error)) => tracing::warn!(?path, %error, "a record cannot be understood"),
                Err(error) => tracing::warn!(?path, %error, "a record cannot be read"),
            }
        }
        Ok(records)
    }

    /// Writes a record, whole or not at all.
    pub(super) fn write(&self, owner: &Owner, end: Option<&DomainReport>) -> io::Result<()> {
        if !folders::is_name(&owner.uid) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a UID is not a file name"));
        }
        let beside = self.folder.join(format!(".{}", owner.uid));
        std::fs::write(&beside, serde_json::to_vec(&Record::of(owner, end))?)?;
        std::fs::rename(beside, self.folder.join(&owner.uid))
    }

    /// Removes a record; one that is not there is fine.
    pub(super) fn remove(&self, uid: &str) -> io::Result<()> {
        if !folders::is_name(uid) {
            return Ok(());
        }
        match std::fs::remove_file(self.folder.join(uid)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn records_of_kubevirt_are_read() {
        let folder = Folder::new();
        let text = r#"{"name":"web","namespace":"default","uid":"ad00",
            "socketFile":"//var/lib/kubelet/pods/b2a7/volumes/kubernetes.io~empty-dir/sockets/launcher-sock"}"#;
        std::fs::write(folder.path().join("ad00"), text).unwrap();
        std::fs::write(folder.path().join("broken"), "{").unwrap();
        std::fs::write(folder.path().join("renamed"), text).unwrap();
        let podless = r#"{"name":"web","namespace":"default","uid":"podless","socketFile":"/elsewhere"}"#;
        std::fs::write(folder.path().join("podless"), podless).unwrap();
        let records = Records::open(folder.path()).unwrap().load().unwrap();
        let owners: Vec<Owner> = records.iter().map(Record::owner).collect();
        let web =
            Owner { key: NamespacedName::new("default", "web"), uid: "ad00".into(), pod: "b2a7".into() };
        assert_eq!(owners, [web]);
    }

    #[test]
    fn no_uid_leads_out_of_the_folder() {
        let folder = Folder::new();
        let records = Records::open(folder.path()).unwrap();
        let owner = |uid: &str| Owner {
            key: NamespacedName::new("default", "web"),
            uid: uid.into(),
            pod: "b2a7".into(),
        };
        for uid in ["../up", "", ".", "a/b"] {
            assert!(records.write(&owner(uid), None).is_err(), "{uid:?}");
        }
    }
}
