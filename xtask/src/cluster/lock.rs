//! Locks between processes: the kernel drops them when the holder ends, however it ends.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result};

/// Held until dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Locks the file at `path`, made when missing; `waiting` is called once when another holds it.
pub fn file(path: &Path, waiting: impl FnOnce()) -> Result<Lock> {
    let file = File::create(path).with_context(|| format!("open lock {}", path.display()))?;
    wait(file, waiting).with_context(|| format!("lock {}", path.display()))
}

/// Locks the folder at `path`, made when missing. The folder itself is the lock, so that nothing is left of
/// it once the holder has removed the folder; who waited for the old folder starts anew with the next one.
pub fn folder(path: &Path, waiting: impl FnOnce()) -> Result<Lock> {
    let mut waiting = Some(waiting);
    loop {
        let folder = match fs::create_dir_all(path).and_then(|()| File::open(path)) {
            Ok(folder) => folder,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("open {}", path.display())),
        };
        let opened = folder.metadata()?.ino();
        let lock = wait(folder, || waiting.take().into_iter().for_each(|tell| tell()))
            .with_context(|| format!("lock {}", path.display()))?;
        if fs::metadata(path).is_ok_and(|current| current.ino() == opened) {
            return Ok(lock);
        }
    }
}

fn wait(file: File, waiting: impl FnOnce()) -> Result<Lock> {
    if file.try_lock().is_err() {
        waiting();
        file.lock()?;
    }
    Ok(Lock { _file: file })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn waits_for_a_folder_that_is_removed_meanwhile() {
        let path = std::env::temp_dir().join(format!("kubevirt-rs-lock-{}", std::process::id()));
        let first = folder(&path, || unreachable!("nobody else holds it")).unwrap();
        let waited = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| folder(&path, || waited.store(true, Ordering::SeqCst)).unwrap());
            while !waited.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            fs::remove_dir(&path).unwrap();
            drop(first);
            drop(second.join().unwrap());
        });
        assert!(path.exists(), "the second holder got a folder of its own");
        fs::remove_dir(&path).unwrap();
    }
}
