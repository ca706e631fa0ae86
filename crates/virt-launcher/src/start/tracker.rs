//! Images that track which blocks of disks change. Rare enough to leave to QEMU's own tool.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

use kubevirt_disk_image::{Format, probe};
use tokio::process::Command;

use crate::error::CommandError;

/// What is known of a disk stands in tables with eight bytes for each so many bytes of it. They are as large as
/// KubeVirt's, by which the claim that keeps them is measured.
const CLUSTER: &str = "256K";

/// Sizes of images are multiples of this.
const SECTOR: u64 = 512;

/// Whether a disk that is to be tracked may be in use, here or where a machine comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// By nobody: it may have grown since it was last used.
    Free,
    /// By a QEMU, which has grown what tracks it along with it.
    Taken,
}

/// What is to be done about the image that tracks a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Keep,
    Grow,
    Make,
}

/// What is to be done about an image that tracks a disk of one size, if there is one, when the disk has another.
fn step(tracked: Option<u64>, size: u64) -> Step {
    match tracked.map(|tracked| tracked.cmp(&size)) {
        Some(Ordering::Equal) => Step::Keep,
        Some(Ordering::Less) => Step::Grow,
        // Disks do not shrink: what it knows is of another one.
        Some(Ordering::Greater) | None => Step::Make,
    }
}

/// Makes the image that tracks which blocks of another changed, or grows it if the other has grown: guests see as much
/// of their disk as is tracked.
pub(super) async fn track(path: &Path, data: &str, disk: Use) -> Result<(), CommandError> {
    if disk == Use::Taken && path.exists() {
        return Ok(());
    }
    let size = fs::File::open(data).and_then(|mut file| file.seek(SeekFrom::End(0)));
    let size = size.map_err(CommandError::io(format!("cannot read {data}")))?.next_multiple_of(SECTOR);
    // One that cannot be read tells nothing that a backup could start from.
    let image = probe(path).ok().filter(|image| image.format == Format::Qcow2);
    match step(image.map(|image| image.virtual_size), size) {
        Step::Keep => Ok(()),
        Step::Make => make(path, size).await,
        Step::Grow => match grow(path, data, size).await {
            Ok(()) => Ok(()),
            Err(error) => {
                // So it is after a crash. Nothing is lost that could still be started from.
                tracing::warn!(%error, path = %path.display(), "changes are tracked anew");
                make(path, size).await
            }
        },
    }
}

/// Makes it empty. The tool empties the file that it is given for the data, so it is given another; QEMU itself is told
/// of the right one.
async fn make(path: &Path, size: u64) -> Result<(), CommandError> {
    let (partial, stand_in) = (path.with_extension("partial"), path.with_extension("data"));
    let data = stand_in.display();
    let options = format!("data_file={data},data_file_raw=on,preallocation=metadata,cluster_size={CLUSTER}");
    let size = size.to_string();
    let arguments = ["create", "-q", "-f", "qcow2", "-o", &options].map(OsStr::new);
    let made = qemu_img(&[&arguments[..], &[partial.as_os_str(), OsStr::new(&size)]].concat()).await;
    // It holds nothing, and is not there if nothing was made.
    let _ = fs::remove_file(&stand_in);
    let made = made.and_then(|()| fs::rename(&partial, path));
    made.map_err(CommandError::io(format!("cannot make {}", path.display())))
}

/// Grows it, with all that it knows.
async fn grow(path: &Path, data: &str, size: u64) -> Result<(), CommandError> {
    let image = image(path, data).map_err(CommandError::io(format!("cannot grow {}", path.display())))?;
    let size = size.to_string();
    let grown = qemu_img(&["resize", "-q", &image, &size].map(OsStr::new)).await;
    grown.map_err(CommandError::io(format!("cannot grow {}", path.display())))
}

/// The image and its data, as the tool wants it.
fn image(path: &Path, data: &str) -> io::Result<String> {
    let driver = if fs::metadata(data)?.is_file() { "file" } else { "host_device" };
    let file = serde_json::json!({ "driver": "file", "filename": path });
    let data = serde_json::json!({ "driver": driver, "filename": data });
    let image = serde_json::json!({ "driver": "qcow2", "file": file, "data-file": data });
    Ok(format!("json:{image}"))
}

async fn qemu_img(arguments: &[&OsStr]) -> io::Result<()> {
    let done = Command::new("qemu-img").args(arguments).output().await?;
    if done.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&done.stderr).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::path::PathBuf;
    use std::process::Stdio;

    use super::*;

    /// A disk and what tracks it.
    struct Pair {
        folder: PathBuf,
        data: PathBuf,
        tracker: PathBuf,
    }

    impl Pair {
        /// A disk of four MiB with something at its start and in its last MiB.
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("kubevirt-track-{name}-{}", std::process::id()));
            fs::create_dir(&folder).unwrap();
            let (data, tracker) = (folder.join("disk.img"), folder.join("root.qcow2"));
            let mut bytes = vec![0; 4 << 20];
            bytes[..512].fill(7);
            bytes[3 << 20..].fill(9);
            fs::write(&data, &bytes).unwrap();
            Self { folder, data, tracker }
        }

        fn resize(&self, size: u64) {
            fs::OpenOptions::new().write(true).open(&self.data).unwrap().set_len(size).unwrap();
        }

        async fn track(&self, disk: Use) {
            track(&self.tracker, self.data.to_str().unwrap(), disk).await.unwrap();
        }

        /// Lets a tool work on the image as QEMU has it, and returns what it says.
        fn run(&self, tool: &str, before: &[&str], after: &[&str]) -> String {
            let image = image(&self.tracker, self.data.to_str().unwrap()).unwrap();
            let done = std::process::Command::new(tool).args(before).arg(image).args(after).output().unwrap();
            let said = String::from_utf8_lossy(&done.stdout).into_owned();
            assert!(done.status.success() && !said.contains("failed"), "{tool} {before:?} {after:?}: {said}");
            said
        }

        fn has(&self, pattern: &str) {
            self.run("qemu-io", &["-r"], &["-c", pattern]);
        }

        /// Opens it as QEMU does, and dies.
        fn crash(&self) {
            let image = image(&self.tracker, self.data.to_str().unwrap()).unwrap();
            let mut tool = std::process::Command::new("qemu-io");
            let tool = tool.arg(image).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut tool = tool.spawn().unwrap();
            tool.stdin.as_mut().unwrap().write_all(b"read 0 512\n").unwrap();
            // It has it open as soon as it answers.
            tool.stdout.as_mut().unwrap().read_exact(&mut [0; 16]).unwrap();
            tool.kill().unwrap();
            tool.wait().unwrap();
        }

        /// The size that a guest sees, and the names of all bitmaps.
        fn seen(&self) -> (u64, Vec<String>) {
            let info = self.run("qemu-img", &["info", "--output=json"], &[]);
            let info: serde_json::Value = serde_json::from_str(&info).unwrap();
            let bitmaps = info["format-specific"]["data"]["bitmaps"].as_array().cloned().unwrap_or_default();
            let names = bitmaps.iter().map(|bitmap| bitmap["name"].as_str().unwrap().to_owned());
            (info["virtual-size"].as_u64().unwrap(), names.collect())
        }
    }

    impl Drop for Pair {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    #[test]
    fn what_is_tracked_follows_the_size_of_the_disk() {
        for (tracked, size, expected) in [
            (None, 8, Step::Make),
            (Some(8), 8, Step::Keep),
            (Some(4), 8, Step::Grow),
            (Some(16), 8, Step::Make),
        ] {
            assert_eq!(step(tracked, size), expected, "{tracked:?} {size}");
        }
    }

    #[tokio::test]
    async fn a_disk_whose_changes_are_tracked_keeps_what_is_on_it() {
        let pair = Pair::new("keep");
        let bytes = fs::read(&pair.data).unwrap();
        for _ in 0..2 {
            pair.track(Use::Free).await;
            assert!(fs::read(&pair.data).unwrap() == bytes);
            assert_eq!(fs::read_dir(&pair.folder).unwrap().count(), 2);
        }
        pair.has("read -P 7 0 512");
        pair.has("read -P 9 3M 1M");
    }

    #[tokio::test]
    async fn a_large_disk_needs_little_room() {
        let pair = Pair::new("large");
        pair.resize(256 << 30);
        pair.track(Use::Free).await;
        let taken = probe(&pair.tracker).unwrap().allocated >> 20;
        assert!(taken < 12, "{taken} MiB");
    }

    #[tokio::test]
    async fn a_disk_that_has_grown_is_seen_whole_and_nothing_is_forgotten() {
        let pair = Pair::new("grow");
        pair.track(Use::Free).await;
        pair.run("qemu-img", &["bitmap", "--add"], &["one"]);
        pair.run("qemu-io", &[], &["-c", "write -P 5 1M 64k"]);
        pair.resize(8 << 20);
        // A QEMU that has it open sees to it itself.
        pair.track(Use::Taken).await;
        assert_eq!(pair.seen(), (4 << 20, vec!["one".to_owned()]));
        pair.track(Use::Free).await;
        assert_eq!(pair.seen(), (8 << 20, vec!["one".to_owned()]));
        for pattern in ["read -P 7 0 512", "read -P 5 1M 64k", "read -P 9 3M 1M", "read -P 0 4M 4M"] {
            pair.has(pattern);
        }
    }

    #[tokio::test]
    async fn what_cannot_be_grown_begins_anew() {
        let pair = Pair::new("anew");
        fs::write(&pair.tracker, "not an image").unwrap();
        for size in [4 << 20, 2 << 20] {
            pair.resize(size);
            pair.track(Use::Free).await;
            assert_eq!(pair.seen(), (size, Vec::new()));
            pair.run("qemu-img", &["bitmap", "--add"], &["one"]);
        }
        // A crash leaves marks that nobody can trust.
        pair.crash();
        pair.resize(6 << 20);
        pair.track(Use::Free).await;
        assert_eq!(pair.seen(), (6 << 20, Vec::new()));
        pair.has("read -P 7 0 512");
    }
}
