//! Block devices over files of a cluster, which tests and kubelets make and the kernel keeps.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::layout::Layout;

/// A loop device, and what it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Loop {
    name: String,
    inode: u64,
    file: String,
}

/// Gives all of them back.
pub fn detach(layout: &Layout) -> Result<()> {
    let list = losetup(&["--list", "--noheadings", "--raw", "--output", "NAME,BACK-INO,BACK-FILE"])?;
    let all: Vec<Loop> = list.lines().filter_map(parse).collect();
    let inode = |name: &str| std::fs::metadata(name).map(|about| about.ino()).ok();
    for name in of_folder(&all, layout.root(), inode) {
        losetup(&["--detach", &name])?;
    }
    Ok(())
}

fn losetup(arguments: &[&str]) -> Result<String> {
    let output = Command::new("losetup").args(arguments).output().context("run losetup")?;
    ensure!(output.status.success(), "losetup: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn parse(line: &str) -> Option<Loop> {
    let mut words = line.splitn(3, ' ');
    let (name, inode) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
    // Raw output writes a space as \x20, such as before "(deleted)".
    Some(Loop { name, inode, file: words.next().unwrap_or_default().to_owned() })
}

/// The devices over files of the folder. A kubelet stacks another device on one that a pod uses; that one stands on a
/// device file, and its path is that of a node which may be gone, so it is known by the inode.
fn of_folder(all: &[Loop], folder: &Path, inode_of: impl Fn(&str) -> Option<u64>) -> Vec<String> {
    let own: Vec<&Loop> = all.iter().filter(|one| Path::new(&one.file).starts_with(folder)).collect();
    let below: Vec<u64> = own.iter().filter_map(|one| inode_of(&one.name)).collect();
    let is_stacked = |one: &&Loop| below.contains(&one.inode) && !own.contains(one) && is_device(&one.file);
    all.iter().filter(is_stacked).chain(own.iter().copied()).map(|one| one.name.clone()).collect()
}

/// Whether a path is that of a device, or of nothing that can be seen from here.
fn is_device(file: &str) -> bool {
    file == "/" || Path::new(file).parent() == Some(Path::new("/")) || file.starts_with("/dev/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_over_devices_go_first_and_others_stay() {
        let list = "/dev/loop0 10 /c/clusters/x/shared/a/device\\x20(deleted)\n/dev/loop1 94 /\n\
                    /dev/loop2 11 /c/clusters/xy/device\n/dev/loop3 94 /home/disk.img\n/dev/loop4 12\n";
        let all: Vec<Loop> = list.lines().filter_map(parse).collect();
        assert_eq!(all.len(), 5);
        let inode = |name: &str| (name == "/dev/loop0").then_some(94);
        let found = of_folder(&all, Path::new("/c/clusters/x"), inode);
        assert_eq!(found, ["/dev/loop1", "/dev/loop0"]);
        assert!(of_folder(&all, Path::new("/c/clusters/y"), inode).is_empty());
    }
}
