//! The cgroups of a cluster, in every hierarchy of the machine.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::layout::{Layout, Node};

/// Makes the cgroup below which the node's pods run.
pub fn create(node: &Node) -> Result<()> {
    for hierarchy in hierarchies()? {
        let mut folder = hierarchy.clone();
        for part in node.cgroup.split('/').filter(|part| !part.is_empty()) {
            let parent = folder.clone();
            folder.push(part);
            match fs::create_dir(&folder) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(error).with_context(|| format!("make cgroup {}", folder.display()));
                }
                _ => inherit(&parent, &folder)?,
            }
        }
    }
    Ok(())
}

/// A new cpuset is empty in version 1, and a new cgroup has no controllers in version 2.
fn inherit(parent: &Path, child: &Path) -> Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        if parent.join("cgroup.clone_children").exists() && child.join(file).exists() {
            fs::write(child.join(file), fs::read(parent.join(file))?)
                .with_context(|| format!("fill {}", child.join(file).display()))?;
        }
    }
    if let Ok(controllers) = fs::read_to_string(parent.join("cgroup.controllers")) {
        for controller in controllers.split_ascii_whitespace() {
            // Some cannot be had below; the kubelet says which it misses.
            let _ = fs::write(parent.join("cgroup.subtree_control"), format!("+{controller}"));
        }
    }
    Ok(())
}

/// Removes all cgroups of the cluster.
pub fn remove(layout: &Layout) -> io::Result<()> {
    hierarchies()?.into_iter().try_for_each(|hierarchy| remove_tree(&hierarchy.join(layout.cgroup())))
}

fn remove_tree(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(folder)
}

fn hierarchies() -> io::Result<Vec<PathBuf>> {
    Ok(parse_hierarchies(&fs::read_to_string("/proc/self/mountinfo")?))
}

fn parse_hierarchies(mountinfo: &str) -> Vec<PathBuf> {
    let of_line = |line: &str| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let kind = filesystem.split(' ').next()?;
        matches!(kind, "cgroup" | "cgroup2").then(|| mount.split(' ').nth(4).map(PathBuf::from)).flatten()
    };
    mountinfo.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_hierarchies_of_both_versions() {
        let mountinfo = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
                         30 22 0:26 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
                         31 22 0:27 / /sys/fs/cgroup/unified rw shared:4 - cgroup2 cgroup2 rw\n";
        let expected = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"].map(PathBuf::from);
        assert_eq!(parse_hierarchies(mountinfo), expected);
    }
}
