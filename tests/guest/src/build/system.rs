//! The guest's system, all of which is in its initial memory disk.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::cpio::Archive;
use super::modules::{self, Kernel};
use super::packages::succeed;
use super::{FILES, Flavour};

/// Programs from packages, and where they go.
const PROGRAMS: [(&str, &str); 6] = [
    ("usr/sbin/qemu-ga", "sbin/qemu-ga"),
    ("usr/sbin/dropbear", "sbin/dropbear"),
    ("usr/bin/dbclient", "bin/ssh"),
    ("usr/bin/dropbearkey", "bin/dropbearkey"),
    ("usr/sbin/dhcp6c", "sbin/dhcp6c"),
    ("usr/lib/openssh/sftp-server", "lib/sftp-server"),
];

const FOLDERS: [&str; 16] = [
    "bin",
    "data",
    "dev",
    "etc/dropbear",
    "home/guest",
    "lib64",
    "lib/x86_64-linux-gnu",
    "mnt",
    "proc",
    "root",
    "run",
    "sbin",
    "sys",
    "tmp",
    "usr",
    "var/log",
];

const LINKS: [(&str, &str); 5] = [
    ("var/run", "../run"),
    ("usr/bin", "../bin"),
    ("usr/sbin", "../sbin"),
    ("usr/lib", "../lib"),
    ("etc/mtab", "/proc/mounts"),
];

/// Builds it from unpacked packages.
pub(super) fn initrd(flavour: Flavour, root: &Path, kernel: &Kernel) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    let mut folders = Folders::default();
    for folder in FOLDERS {
        folders.add(&mut archive, folder);
    }
    for (name, target) in LINKS {
        archive.link(name, target);
    }
    for (name, mode, content) in FILES {
        folders.above(&mut archive, name);
        archive.file(name, if *name == "etc/shadow" { 0o600 } else { *mode }, content);
    }
    busybox(&mut archive, root)?;
    let mut libraries = BTreeSet::new();
    for (from, to) in PROGRAMS {
        let program = root.join(from);
        archive.file(to, 0o755, &read(&program)?);
        libraries.extend(libraries_of(&program, root)?);
    }
    libraries.insert(loader(root)?);
    for library in libraries {
        let name = library.file_name().unwrap_or_default().to_string_lossy();
        archive.file(&format!("lib/x86_64-linux-gnu/{name}"), 0o755, &read(&library)?);
    }
    archive.link("lib64/ld-linux-x86-64.so.2", "../lib/x86_64-linux-gnu/ld-linux-x86-64.so.2");
    add_modules(&mut archive, &mut folders, flavour, kernel)?;
    Ok(archive.finish())
}

fn add_modules(
    archive: &mut Archive,
    folders: &mut Folders,
    flavour: Flavour,
    kernel: &Kernel,
) -> Result<()> {
    let modules = kernel.modules(flavour)?;
    let place = format!("lib/modules/{}", kernel.version);
    for module in modules.values() {
        let name = format!("{place}/{}", module.path.display());
        folders.above(archive, &name);
        archive.file(&name, 0o644, &module.content);
    }
    archive.file(&format!("{place}/modules.dep"), 0o644, modules::dependencies(&modules).as_bytes());
    archive.file(&format!("{place}/modules.alias"), 0o644, modules::aliases(&modules).as_bytes());
    Ok(())
}

/// Busybox under all its names, but for those that `root/` has something better for.
fn busybox(archive: &mut Archive, root: &Path) -> Result<()> {
    let places = [root.join("bin/busybox"), root.join("usr/bin/busybox")];
    let program = places.into_iter().find(|place| place.is_file()).context("no busybox in its package")?;
    archive.file("bin/busybox", 0o755, &read(&program)?);
    let said = succeed(Command::new(&program).arg("--list"))?;
    for name in String::from_utf8_lossy(&said.stdout).lines().filter(|name| *name != "busybox") {
        archive.link(&format!("bin/{name}"), "busybox");
    }
    // Some are looked for here by those who start them.
    for name in ["acpid", "getty", "halt", "hwclock", "init", "modprobe", "poweroff", "reboot"] {
        archive.link(&format!("sbin/{name}"), "../bin/busybox");
    }
    Ok(())
}

/// The libraries that a program loads.
fn libraries_of(program: &Path, root: &Path) -> Result<Vec<PathBuf>> {
    let said = succeed(with_libraries(root)?.arg("--list").arg(program))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    Ok(said
        .lines()
        .filter_map(|line| line.split_once("=> /")?.1.split_once(" ("))
        .map(|(path, _)| PathBuf::from(format!("/{path}")))
        .collect())
}

/// Runs a program with the libraries of the packages instead of those of this machine: to be completed.
pub(super) fn with_libraries(root: &Path) -> Result<Command> {
    let mut command = Command::new(loader(root)?);
    let (lib, usr) = (root.join("lib/x86_64-linux-gnu"), root.join("usr/lib/x86_64-linux-gnu"));
    command.arg("--library-path").arg(format!("{}:{}", lib.display(), usr.display()));
    Ok(command)
}

fn loader(root: &Path) -> Result<PathBuf> {
    let places = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"];
    let places = places.map(|place| root.join(place).join("ld-linux-x86-64.so.2"));
    places.into_iter().find(|place| place.exists()).context("libc6 has no loader")
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("read {}", path.display()))
}

/// The folders that are in an archive already, since each must come before what is in it, and once.
#[derive(Default)]
struct Folders(BTreeSet<String>);

impl Folders {
    fn add(&mut self, archive: &mut Archive, folder: &str) {
        if folder.is_empty() || self.0.contains(folder) {
            return;
        }
        self.above(archive, folder);
        let (mode, owner) = match folder {
            "tmp" => (0o1777, 0),
            "root" => (0o700, 0),
            "home/guest" => (0o755, 1000),
            _ => (0o755, 0),
        };
        archive.folder(folder, mode, owner);
        self.0.insert(folder.to_owned());
    }

    fn above(&mut self, archive: &mut Archive, name: &str) {
        if let Some((folder, _)) = name.rsplit_once('/') {
            self.add(archive, folder);
        }
    }
}
