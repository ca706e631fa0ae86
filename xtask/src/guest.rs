//! `cargo xtask guest`: the guest of the tests, as files and as container disks.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use test_guest::{Flavour, artifacts};

use crate::image::layer::{Layer, Owner};
use crate::image::{Config, Image};

/// Who runs QEMU, and so reads container disks.
const QEMU: Owner = Owner { user: 107, group: 107 };

/// The arguments of `cargo xtask guest`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The guest's kernel: cloud (small, virtio only) or full (also AHCI, USB, e1000, graphics, …).
    #[arg(long, default_value = "cloud")]
    flavour: Flavour,
    /// A folder to copy kernel (unpacked, which starts fastest), vmlinuz (which UEFI takes), initrd and disk.img into.
    #[arg(long)]
    out: Option<PathBuf>,
    /// An OCI archive to write: an image with the disk, for a containerDisk volume.
    #[arg(long)]
    container_disk: Option<PathBuf>,
    /// An OCI archive to write: an image with /boot/vmlinuz and /boot/initrd, for kernelBoot.
    #[arg(long)]
    kernel_boot: Option<PathBuf>,
    /// The name of the images; the one for kernelBoot gets `-kernel` after it.
    #[arg(long, default_value = "localhost/test-guest")]
    name: String,
}

/// Does what the arguments say.
pub fn run(arguments: &Arguments) -> Result<()> {
    let guest = artifacts(arguments.flavour)?;
    let Arguments { flavour, name, .. } = arguments;
    if let Some(out) = &arguments.out {
        fs::create_dir_all(out).with_context(|| format!("make {}", out.display()))?;
        let kernels = [(&guest.kernel, "kernel"), (&guest.vmlinuz, "vmlinuz")];
        for (from, to) in kernels.into_iter().chain([(&guest.initrd, "initrd"), (&guest.disk, "disk.img")]) {
            fs::copy(from, out.join(to)).with_context(|| format!("write {to}"))?;
        }
    }
    if let Some(output) = &arguments.container_disk {
        container_disk(&format!("{name}:{flavour}"), &guest.disk, output)?;
    }
    if let Some(output) = &arguments.kernel_boot {
        let files: [(&str, &Path); 2] = [("boot/vmlinuz", &guest.vmlinuz), ("boot/initrd", &guest.initrd)];
        pack(&format!("{name}-kernel:{flavour}"), &files, output)?;
    }
    for file in [&guest.kernel, &guest.vmlinuz, &guest.initrd, &guest.disk] {
        println!("{}", file.display());
    }
    Ok(())
}

/// Packs a disk as an image for a containerDisk volume, an OCI archive.
pub fn container_disk(reference: &str, disk: &Path, output: &Path) -> Result<()> {
    pack(reference, &[("disk/disk.img", disk)], output)
}

fn pack(reference: &str, files: &[(&str, &Path)], output: &Path) -> Result<()> {
    let mut root = output.as_os_str().to_owned();
    root.push(".root");
    let root = PathBuf::from(root);
    let packed = lay_out(files, &root).and_then(|()| {
        let layer = Layer { root: root.clone(), owner: Some(QEMU), ..Layer::default() };
        let image = Image { reference: reference.to_owned(), layers: vec![layer], config: Config::default() };
        image.pack(output)
    });
    let _ = fs::remove_dir_all(&root);
    packed.with_context(|| format!("pack {reference}"))
}

/// Files that nobody may change, in folders that all may enter.
fn lay_out(files: &[(&str, &Path)], root: &Path) -> Result<()> {
    for (to, from) in files {
        let to = root.join(to);
        let folder = to.parent().unwrap_or(root);
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        fs::set_permissions(folder, Permissions::from_mode(0o755))?;
        fs::copy(from, &to).with_context(|| format!("copy {}", from.display()))?;
        fs::set_permissions(&to, Permissions::from_mode(0o444))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_disk_is_for_qemu_to_read() {
        let folder = std::env::temp_dir().join(format!("kubevirt-rs-guest-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (disk, output, root) = (folder.join("disk"), folder.join("image.tar"), folder.join("image"));
        fs::write(&disk, "a disk").unwrap();
        container_disk("localhost/disk:1", &disk, &output).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing else is left");

        tar::Archive::new(fs::File::open(&output).unwrap()).unpack(&root).unwrap();
        let blobs = fs::read_dir(root.join("blobs/sha256")).unwrap();
        let layer = blobs.map(|blob| blob.unwrap().path()).find(|blob| fs::read(blob).unwrap()[0] != b'{');
        let mut layer = tar::Archive::new(fs::File::open(layer.unwrap()).unwrap());
        let entries = layer.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            let path = entry.path().unwrap().display().to_string();
            (path, header.mode().unwrap() & 0o777, header.uid().unwrap(), header.gid().unwrap())
        });
        let expected = [("disk".to_owned(), 0o755, 107, 107), ("disk/disk.img".to_owned(), 0o444, 107, 107)];
        assert_eq!(entries.collect::<Vec<_>>(), expected);
        fs::remove_dir_all(folder).unwrap();
    }
}
