//! Building a guest: packages to files, files to an initial memory disk, that to a disk that boots.

mod cpio;
mod disk;
mod modules;
mod packages;
mod system;
mod unpack;

use std::fs;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail};

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// What the disk's boot loader gives to the kernel; a good choice for any other way to boot, too.
///
/// The second line spares what takes long without hardware support and is of no use here: the self-tests of ciphers,
/// memory that is cleared twice, code that is rewritten for a single CPU, a look at the timer, a place by chance. The
/// third is for instructions that QEMU emulates byte by byte, and the last for more tests, and for what only those need
/// who trace the kernel or keep encrypted keys in it.
pub const COMMAND_LINE: &str = concat!(
    "console=ttyS0 quiet panic=-1 memhp_default_state=online ",
    "cryptomgr.notests init_on_alloc=0 noreplace-smp no_timer_check nokaslr ",
    "clearcpuid=erms,fsrm ",
    "initcall_blacklist=crypto_kdf108_init,init_encrypted,ftrace_check_for_weak_functions,trace_eval_init",
);

/// Which kernel a guest has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Debian's kernel for clouds: small, fast, and with drivers for virtio only.
    Cloud,
    /// Debian's usual kernel: also with AHCI, USB, e1000, graphics, sound and watchdogs.
    Full,
}

impl Flavour {
    fn package(self) -> &'static str {
        match self {
            Self::Cloud => "linux-image-cloud-amd64",
            Self::Full => "linux-image-amd64",
        }
    }
}

impl std::fmt::Display for Flavour {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Cloud => "cloud",
            Self::Full => "full",
        })
    }
}

impl FromStr for Flavour {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "cloud" => Ok(Self::Cloud),
            "full" => Ok(Self::Full),
            _ => bail!("no such flavour: {text}"),
        }
    }
}

/// Changes with everything in this library that makes a guest what it is.
pub(crate) fn fingerprint() -> u64 {
    FINGERPRINT
}

/// Builds into `output`, with `work` for files on the way. The result depends on nothing but the packages.
pub(crate) fn build(flavour: Flavour, work: &Path, output: &Path) -> Result<()> {
    let root = work.join("packages");
    let versions = packages::unpack(flavour.package(), work, &root)?;
    let kernel = modules::Kernel::find(&root)?;
    // The kernel is fastest with what is not packed. Only the disk's is, since the BIOS reads slowly.
    let initrd = system::initrd(flavour, &root, &kernel)?;
    let image = fs::read(&kernel.image).context("read the kernel")?;
    let disk = disk::image(&root, work, &image, &compress(&initrd, &root, work)?)?;
    let kernel = unpack::unpacked(&image)?;
    let files: [(&str, &[u8]); 5] = [
        ("kernel", kernel.as_ref().unwrap_or(&image)),
        ("vmlinuz", &image),
        ("initrd", &initrd),
        ("disk.img", &disk),
        ("packages", versions.as_bytes()),
    ];
    for (name, content) in files {
        fs::write(output.join(name), content).with_context(|| format!("write {name}"))?;
    }
    Ok(())
}

/// Packs in the way that takes the kernel the least time to unpack.
fn compress(initrd: &[u8], root: &Path, work: &Path) -> Result<Vec<u8>> {
    let file = work.join("initrd");
    fs::write(&file, initrd).context("write the memory disk")?;
    let mut command = system::with_libraries(root)?;
    command.arg(root.join("usr/bin/lz4")).args(["-l", "-9", "-c", "-q"]).arg(&file);
    Ok(packages::succeed(&mut command)?.stdout)
}
