//! Removing a cluster, whatever state it is in.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::layout::Layout;
use super::{cgroups, devices, lock, processes};

/// Ends the cluster and removes all that belongs to it. Says whether there was anything.
pub fn down(layout: &Layout) -> Result<bool> {
    let existed = layout.root().exists();
    let waiting = || eprintln!("another command works on cluster {}, waiting for it", layout.name());
    let _lock = lock::folder(layout.root(), waiting)?;
    let had_processes = !processes::running(layout.root())?.is_empty();
    clear(layout)?;
    remove(layout)?;
    Ok(existed || had_processes)
}

/// Ends the cluster and empties its folder, which stays for the lock on it.
pub fn clear(layout: &Layout) -> Result<()> {
    processes::stop(layout.root(), |_| true)?;
    // The kernel gives mounts and cgroups of ended processes back a moment later.
    retry(|| cgroups::remove(layout)).context("remove cgroups")?;
    if rustix::process::geteuid().is_root() {
        devices::detach(layout).context("give block devices back")?;
    }
    retry(|| empty(layout.root())).with_context(|| format!("empty {}", layout.root().display()))
}

/// Removes the emptied folder, and the one of all clusters with the last of them.
pub fn remove(layout: &Layout) -> Result<()> {
    fs::remove_dir(layout.root()).with_context(|| format!("remove {}", layout.root().display()))?;
    if let Some(all) = layout.root().parent() {
        let _ = fs::remove_dir(all);
    }
    Ok(())
}

fn empty(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let removed = match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path()),
            false => fs::remove_file(entry.path()),
        };
        match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn retry(mut action: impl FnMut() -> std::io::Result<()>) -> std::io::Result<()> {
    let begin = Instant::now();
    loop {
        match action() {
            Err(_) if begin.elapsed() < Duration::from_secs(10) => {
                std::thread::sleep(Duration::from_millis(50));
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_processes_and_files_without_any_record_of_them() {
        let cache = std::env::temp_dir().join(format!("kubevirt-rs-down-{}", std::process::id()));
        let layout = Layout::new(&cache, "one").unwrap();
        let other = Layout::new(&cache, "two").unwrap();
        for layout in [&layout, &other] {
            processes::start(layout, "etcd", &["sleep".into(), "60".into()]).unwrap();
        }
        fs::create_dir_all(layout.etcd()).unwrap();
        fs::write(layout.etcd().join("db"), "x").unwrap();

        assert!(down(&layout).unwrap());
        assert!(!layout.root().exists());
        assert!(processes::running(layout.root()).unwrap().is_empty());
        assert_eq!(processes::running(other.root()).unwrap().len(), 1, "the other cluster is untouched");

        assert!(down(&other).unwrap());
        assert!(!down(&other).unwrap(), "a second time there is nothing");
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 0);
        fs::remove_dir_all(cache).unwrap();
    }
}
