//! The disk with metrics, as one writes it and another reads it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use kubevirt_disk_image::{create_metrics_disk, read_metrics, write_metrics};

use super::folder::Folder;

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

/// A new disk, and where it is.
fn disk(folder: &Folder) -> (File, PathBuf) {
    let path = folder.join("vhostmd0");
    create_metrics_disk(&path).unwrap();
    (open(&path), path)
}

#[test]
fn what_is_written_is_read() {
    let folder = Folder::new();
    let (disk, path) = disk(&folder);
    assert_eq!(read_metrics(&disk).unwrap().unwrap(), "<metrics></metrics>\n");
    let long = format!("<metrics>{}</metrics>\n", "ä".repeat(4000));
    // What is left of a longer document is no part of a shorter one.
    for document in [long.as_str(), "<metrics>1</metrics>\n", ""] {
        write_metrics(&disk, document).unwrap();
        assert_eq!(read_metrics(&open(&path)).unwrap().unwrap(), document);
    }
    assert_eq!(disk.metadata().unwrap().len(), 256 << 10);
    // A machine that comes back to its disk finds it as it was.
    write_metrics(&disk, "<metrics>2</metrics>\n").unwrap();
    create_metrics_disk(&path).unwrap();
    assert_eq!(read_metrics(&open(&path)).unwrap().unwrap(), "<metrics>2</metrics>\n");
}

#[test]
fn a_document_that_is_too_long_changes_nothing() {
    let folder = Folder::new();
    let (disk, _) = disk(&folder);
    assert!(write_metrics(&disk, &"a".repeat(256 << 10)).is_err());
    assert_eq!(read_metrics(&disk).unwrap().unwrap(), "<metrics></metrics>\n");
}

#[test]
fn what_is_not_whole_is_not_read() {
    let folder = Folder::new();
    let (disk, _) = disk(&folder);
    let change = |place: u64, to: &[u8]| disk.write_all_at(to, place).unwrap();
    change(7, b"\x01");
    assert_eq!(read_metrics(&disk).unwrap(), None, "it is being written");
    change(7, b"\0");
    change(16, b"[");
    assert!(read_metrics(&disk).unwrap_err().to_string().contains("checksum"));
    change(12, b"\x7f");
    assert!(read_metrics(&disk).unwrap_err().to_string().contains("longer"));
    change(0, b"x");
    assert!(read_metrics(&disk).unwrap_err().to_string().contains("no disk with metrics"));
}
