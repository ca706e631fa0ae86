//! What the end of the launcher means for the other containers of its pod: they have nothing left to do.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::istio;

/// Tells the other containers of the pod that the machine is over, after this much of a life.
pub(crate) async fn dismiss_others(container_disks: &Path, lived: Duration) {
    if let Err(error) = remove_sockets(container_disks) {
        tracing::warn!(%error, folder = %container_disks.display(), "container disks may stay");
    }
    istio::end_proxy(lived).await;
}

/// Removes the sockets of a folder: a container disk ends when its own is gone.
fn remove_sockets(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    let mut outcome = Ok(());
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "sock") {
            // One that cannot be removed is no reason to leave the others.
            outcome = fs::remove_file(&path).and(outcome);
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sockets_are_removed() {
        let folder = std::env::temp_dir().join(format!("kubevirt-farewell-{}", std::process::id()));
        fs::create_dir_all(folder.join("folder.sock")).unwrap();
        for name in ["disk_0.sock", "disk_0.img", "kernel.sock"] {
            fs::write(folder.join(name), "").unwrap();
        }
        assert!(remove_sockets(&folder).is_err(), "a folder is no socket");
        let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
        fs::remove_dir_all(&folder).unwrap();
        remove_sockets(&folder).unwrap();
    }
}
