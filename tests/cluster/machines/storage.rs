//! Storage of a test: claims on folders and devices of this machine, which both nodes see.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use test_kit::Test;
use xtask::cluster::layout::SHARED_MOUNT;

/// How large everything is.
pub const SIZE: u64 = 8 << 20;

/// A folder of the test, as this machine sees it.
pub fn folder(test: &Test, name: &str) -> Result<PathBuf> {
    let folder = test.cluster().layout().shared().join(test.namespace()).join(name);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The same folder, as nodes see it.
pub fn on_nodes(test: &Test, name: &str) -> String {
    format!("{SHARED_MOUNT}/{}/{name}", test.namespace())
}

/// Writes an image that starts with a text.
pub fn image(path: &Path, start: &str) -> Result<()> {
    let file = File::create(path).with_context(|| format!("write {}", path.display()))?;
    file.set_len(SIZE)?;
    Ok(file.write_all_at(start.as_bytes(), 0)?)
}

/// What is at an offset of an image.
pub fn read(path: &Path, offset: u64, length: usize) -> Result<String> {
    let mut bytes = vec![0; length];
    File::open(path)?.read_exact_at(&mut bytes, offset)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A claim on a folder with a disk in it that starts with a text; returns the disk's file on this machine.
pub async fn claim_folder(test: &Test, name: &str, start: &str) -> Result<PathBuf> {
    let disk = folder(test, name)?.join("disk.img");
    image(&disk, start)?;
    claim(test, name, "Filesystem", SIZE, json!({"hostPath": {"path": on_nodes(test, name)}})).await?;
    Ok(disk)
}

/// A claim on an empty folder that says that it is so large; returns the folder on this machine.
pub async fn claim_empty_folder(test: &Test, name: &str, size: u64) -> Result<PathBuf> {
    let folder = folder(test, name)?;
    claim(test, name, "Filesystem", size, json!({"hostPath": {"path": on_nodes(test, name)}})).await?;
    Ok(folder)
}

/// A class of storage of this name with one volume of it, for a claim that somebody else makes. Its folder is open to
/// all users, since nobody hands over folders of nodes; these are in it.
pub async fn offer_folder(test: &Test, class: &str, name: &str, folders: &[&str]) -> Result<()> {
    let top = folder(test, name)?;
    for path in std::iter::once(top.clone()).chain(folders.iter().map(|folder| top.join(folder))) {
        fs::create_dir_all(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777))?;
    }
    let volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": format!("{}-{name}", test.namespace())},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": class,
            "hostPath": {"path": on_nodes(test, name)},
        },
    });
    let class = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": class},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "Immediate",
    });
    test.apply(&class).await?;
    test.apply(&volume).await.map(drop)
}

/// A claim on a block device that starts with a text; the device goes when it is dropped.
pub async fn claim_device(test: &Test, name: &str, start: &str) -> Result<Device> {
    let file = folder(test, name)?.join("device");
    image(&file, start)?;
    let output = Command::new("losetup").args(["--find", "--show"]).arg(&file).output()?;
    ensure!(output.status.success(), "losetup: {}", String::from_utf8_lossy(&output.stderr));
    let path = String::from_utf8(output.stdout)?.trim().to_owned();
    let device = Device { file, path };
    claim(test, name, "Block", SIZE, json!({"local": {"path": device.path}})).await?;
    Ok(device)
}

/// A block device over a file.
pub struct Device {
    /// The file.
    pub file: PathBuf,
    path: String,
}

impl Drop for Device {
    fn drop(&mut self) {
        // In use, it goes as soon as it is not.
        let _ = Command::new("losetup").args(["--detach", &self.path]).status();
    }
}

/// A claim and the volume that it is bound to, which both have the name.
async fn claim(test: &Test, name: &str, mode: &str, size: u64, source: Value) -> Result<()> {
    let (namespace, volume) = (test.namespace(), format!("{}-{name}", test.namespace()));
    let mut spec = json!({
        "capacity": {"storage": size.to_string()},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "volumeMode": mode,
        "claimRef": {"namespace": namespace, "name": name},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/os", "operator": "Exists"},
        ]}]}},
    });
    for (key, value) in source.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let object = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    test.apply(&object("PersistentVolume", &volume, spec)).await?;
    let claim = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size.to_string()}},
        "storageClassName": "",
        "volumeName": volume,
        "volumeMode": mode,
    });
    test.apply(&object("PersistentVolumeClaim", name, claim)).await.map(drop)
}

/// Removes what does not go with the test's namespace.
pub fn release(test: &Test, names: &[&str]) -> Result<()> {
    for name in names {
        let volume = format!("{}-{name}", test.namespace());
        test.cluster().kubectl(&[
            "delete",
            "persistentvolume",
            &volume,
            "--wait=false",
            "--ignore-not-found",
        ])?;
    }
    Ok(())
}
