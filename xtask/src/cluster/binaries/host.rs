//! What nodes need of the machine itself.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::super::lock;
use super::{Binaries, recipes};

/// The machine's own programs that nodes need, and the Debian packages that have them.
const HOST_PROGRAMS: &[(&str, &str)] = &[
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("iptables", "iptables"),
    ("conntrack", "conntrack"),
    ("ethtool", "ethtool"),
    ("socat", "socat"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("mount", "mount"),
];
/// What the build of the container runtime needs.
const BUILD_FILES: &[(&str, &str)] =
    &[("pkg-config", "pkg-config"), ("cc", "gcc"), ("/usr/include/seccomp.h", "libseccomp-dev")];

/// Installs what the nodes need of the machine itself, or says what is missing where it cannot.
pub fn ensure(binaries: &Binaries) -> Result<()> {
    // Without it, answers between pods of one node do not come from the Service that was asked.
    if !Path::new("/proc/sys/net/bridge").exists()
        && Command::new("modprobe").arg("br_netfilter").status().is_err()
    {
        eprintln!("br_netfilter is missing: Services will not work between pods of one node");
    }
    let to_build = if binaries.program(&recipes::CONTAINER_RUNTIME).exists() { &[] } else { BUILD_FILES };
    let mut packages: Vec<&str> = HOST_PROGRAMS
        .iter()
        .chain(to_build)
        .filter(|(file, _)| !is_there(file))
        .map(|(_, package)| *package)
        .collect();
    packages.sort_unstable();
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    ensure!(is_there("apt-get"), "missing on this machine: {}", packages.join(", "));
    eprintln!("installing {}", packages.join(", "));
    fs::create_dir_all(&binaries.folder)?;
    let _lock = lock::file(&binaries.folder.join("apt.lock"), || {})?;
    let apt = |arguments: &[&str]| -> Result<bool> {
        let output = Command::new("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .output()
            .context("run apt-get")?;
        if !output.status.success() {
            eprintln!("{}", String::from_utf8_lossy(&output.stderr).trim_end());
        }
        Ok(output.status.success())
    };
    // Mirrors turn bursts away for a while.
    for pause in [5, 20, 60, 0] {
        let install = [&["install", "--yes", "--no-install-recommends"], packages.as_slice()].concat();
        if apt(&["update"])? && apt(&install)? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(pause));
    }
    bail!("could not install {}", packages.join(", "))
}

fn is_there(file: &str) -> bool {
    let folders = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    folders.split(':').any(|folder| Path::new(folder).join(file).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_for_programs_and_files() {
        assert!(is_there("sh"));
        assert!(is_there("/proc/self/stat"));
        assert!(!is_there("no-such-program"));
    }
}
