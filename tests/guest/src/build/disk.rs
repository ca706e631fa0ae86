//! A disk that boots, with BIOS and with UEFI: GRUB, a partition with the kernel, and a partition for data.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::COMMAND_LINE;
use super::packages::succeed;
use super::system::with_libraries;
use crate::fat;

const SECTOR: usize = 512;
/// Where partitions may start: what is before is the boot loader's.
const START: usize = 1 << 20;
/// What GRUB reads at a time, from multiples of it on. What lies across them is read in pieces, and copied.
const READ: usize = 32 << 10;
const DATA: usize = 4 << 20;
const DATA_UUID: &str = "7e579e57-0000-4000-8000-000000000001";
/// All that GRUB needs to find the kernel.
const GRUB_MODULES: [&str; 5] = ["biosdisk", "part_msdos", "fat", "linux16", "boot"];

/// The disk for a kernel.
pub(super) fn image(root: &Path, work: &Path, kernel: &[u8], initrd: &[u8]) -> Result<Vec<u8>> {
    let bios = bios_loader(root, work)?;
    let boot = boot_partition(root, kernel, initrd)?;
    let data = data_partition(work)?;
    let mut disk = bios;
    ensure!(disk.len() <= START, "the boot loader is too large");
    let clusters = fat::clusters_start(&boot);
    disk.resize((START + clusters).next_multiple_of(READ) - clusters, 0);
    // GRUB has code for floppy disks where other disks have their table.
    disk[446..510].fill(0);
    // Type 0xef is where UEFI looks; 0x83 is Linux.
    partition(&mut disk, 0, 0xef, &boot)?;
    partition(&mut disk, 1, 0x83, &data)?;
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    Ok(disk)
}

/// Appends a partition and enters it into the table.
fn partition(disk: &mut Vec<u8>, number: usize, kind: u8, content: &[u8]) -> Result<()> {
    let start = u32::try_from(disk.len() / SECTOR)?;
    let sectors = u32::try_from(content.len().div_ceil(SECTOR))?;
    let entry = &mut disk[446 + number * 16..][..16];
    // The first is the active one. Addresses by cylinder are said to be out of range: nobody reads them.
    entry[0] = if number == 0 { 0x80 } else { 0 };
    entry[1..4].copy_from_slice(&[0xfe, 0xff, 0xff]);
    entry[4] = kind;
    entry[5..8].copy_from_slice(&[0xfe, 0xff, 0xff]);
    entry[8..12].copy_from_slice(&start.to_le_bytes());
    entry[12..16].copy_from_slice(&sectors.to_le_bytes());
    disk.extend_from_slice(content);
    disk.resize(disk.len().next_multiple_of(1 << 20), 0);
    Ok(())
}

/// What GRUB does, with the commands' names ending as they do on a platform.
fn commands(ending: &str) -> String {
    format!("linux{ending} /boot/vmlinuz {COMMAND_LINE}\ninitrd{ending} /boot/initrd\nboot\n")
}

/// GRUB's first sector, and the rest of it from the next sector on, where the first looks for it.
fn bios_loader(root: &Path, work: &Path) -> Result<Vec<u8>> {
    let folder = root.join("usr/lib/grub/i386-pc");
    let (config, core) = (work.join("grub.cfg"), work.join("core.img"));
    // With its usual commands GRUB moves all the room that the kernel will need, byte by byte, which takes seconds
    // without hardware support. With these the kernel starts as QEMU itself starts it.
    fs::write(&config, commands("16"))?;
    let mut command = with_libraries(root)?;
    command.arg(root.join("usr/bin/grub-mkimage")).args(["-O", "i386-pc", "-p", "(,msdos1)/boot/grub"]);
    command.arg("-d").arg(&folder).arg("-c").arg(&config).arg("-o").arg(&core).args(GRUB_MODULES);
    succeed(&mut command)?;
    let mut loader = fs::read(folder.join("boot.img")).context("GRUB has no boot sector")?;
    ensure!(loader.len() == SECTOR, "GRUB's boot sector has {} bytes", loader.len());
    loader.extend(fs::read(&core).context("read GRUB")?);
    Ok(loader)
}

/// What UEFI and GRUB read. The loaders are signed, so this boots with secure boot as well.
fn boot_partition(root: &Path, kernel: &[u8], initrd: &[u8]) -> Result<Vec<u8>> {
    let read = |path: &str| fs::read(root.join(path)).with_context(|| format!("read {path}"));
    let shim = read("usr/lib/shim/shimx64.efi.signed")?;
    let grub = read("usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed")?;
    let config = commands("");
    let files: [(&str, &[u8]); 5] = [
        ("boot/vmlinuz", kernel),
        ("boot/initrd", initrd),
        ("EFI/BOOT/BOOTX64.EFI", &shim),
        ("EFI/BOOT/grubx64.efi", &grub),
        ("EFI/debian/grub.cfg", config.as_bytes()),
    ];
    fat::image("GUEST-BOOT", &files, 0)
}

/// An empty file system. The environment fixes the times in it.
fn data_partition(work: &Path) -> Result<Vec<u8>> {
    let file = work.join("data.img");
    fs::write(&file, vec![0; DATA])?;
    let mut command = Command::new("/usr/sbin/mke2fs");
    command.args(["-q", "-F", "-t", "ext2", "-L", "guest-data", "-U", DATA_UUID]);
    command.args(["-E", &format!("hash_seed={DATA_UUID},root_owner=0:0")]).arg(&file);
    succeed(command.envs([("E2FSPROGS_FAKE_TIME", "1700000000"), ("SOURCE_DATE_EPOCH", "1700000000")]))?;
    fs::read(&file).context("read the file system for data")
}
