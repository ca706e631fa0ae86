//! Debian packages: which ones, from where, unpacked without being installed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// What runs in the guest.
const PROGRAMS: [&str; 5] =
    ["busybox-static", "dropbear-bin", "openssh-sftp-server", "qemu-guest-agent", "wide-dhcpv6-client"];
/// What makes the disk boot, and packs it. Only `grub-common` and `lz4` have programs that run here.
const LOADERS: [&str; 5] = ["grub-common", "grub-pc-bin", "grub-efi-amd64-signed", "lz4", "shim-signed"];

/// Downloads and unpacks all that a guest is made of into `root`; says which versions they are.
pub(super) fn unpack(kernel: &str, work: &Path, root: &Path) -> Result<String> {
    let archives = work.join("archives");
    fs::create_dir_all(&archives)?;
    patiently(|| download(kernel, &archives))?;
    let mut names = Vec::new();
    for entry in fs::read_dir(&archives)? {
        let archive = entry?.path();
        succeed(Command::new("dpkg-deb").arg("-x").args([&archive, root]))?;
        names.extend(archive.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names.join("\n") + "\n")
}

/// Mirrors refuse bursts, and a fresh system has no lists of packages yet.
fn patiently(task: impl Fn() -> Result<()>) -> Result<()> {
    let mut last = task();
    for pause in [0, 10, 30, 60] {
        if last.is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_secs(pause));
        // Without the right to do so, the lists that are there must do.
        let _ = Command::new("apt-get").args(["update", "-qq"]).output();
        last = task();
    }
    last
}

fn download(kernel: &str, folder: &Path) -> Result<()> {
    let wanted = PROGRAMS.iter().chain(&LOADERS).map(|name| (*name).to_owned()).collect();
    let mut all = with_libraries(wanted)?;
    // The package by that name is empty: it depends on the newest kernel.
    let newest = depends(&[kernel.to_owned()])?.into_iter().find(|name| name.starts_with("linux-image-"));
    all.insert(newest.with_context(|| format!("{kernel} has no kernel"))?);
    succeed(Command::new("apt-get").args(["download", "-qq"]).args(all).current_dir(folder))?;
    Ok(())
}

/// The packages and the libraries they need, but not what they need besides.
fn with_libraries(wanted: BTreeSet<String>) -> Result<BTreeSet<String>> {
    let mut all = wanted;
    let mut fresh: Vec<String> = all.iter().cloned().collect();
    while !fresh.is_empty() {
        fresh = depends(&fresh)?
            .into_iter()
            .filter(|name| is_library(name) && all.insert(name.clone()))
            .collect();
    }
    Ok(all)
}

fn is_library(package: &str) -> bool {
    package.starts_with("lib") || package.starts_with("zlib")
}

fn depends(packages: &[String]) -> Result<Vec<String>> {
    let said = succeed(Command::new("apt-cache").args(["depends", "--no-recommends"]).args(packages))?;
    Ok(dependencies(&String::from_utf8_lossy(&said.stdout)))
}

/// The packages that the output of `apt-cache depends` names; what is in angle brackets is no package.
fn dependencies(said: &str) -> Vec<String> {
    let of_line = |line: &str| {
        let (kind, name) = line.trim_start_matches([' ', '|']).split_once(": ")?;
        (kind.ends_with("Depends") && !name.starts_with('<')).then(|| name.to_owned())
    };
    said.lines().filter_map(of_line).collect()
}

/// Runs a program that must succeed.
pub(super) fn succeed(command: &mut Command) -> Result<Output> {
    let output = command.env("LC_ALL", "C").output().with_context(|| format!("run {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}: {}", output.status, said.trim());
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_dependencies() {
        let said = "qemu-guest-agent\n  PreDepends: init-system-helpers\n |Depends: libc6\n  Depends: <debconf-2.0>\n    debconf\n  Conflicts: x\n";
        assert_eq!(dependencies(said), ["init-system-helpers", "libc6"]);
    }
}
