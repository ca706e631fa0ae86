//! Making and growing images.

use std::os::unix::fs::MetadataExt;

use kubevirt_disk_image::{
    Allocation, Backing, Format, ImageError, Outcome, create_qcow2, create_raw, grow_qcow2, grow_raw, probe,
    replace,
};

use crate::folder::Folder;
use crate::programs::{line, qemu_io};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

#[test]
fn qemu_finds_no_fault_with_empty_images_of_any_size() {
    let folder = Folder::new();
    for size in [512, MIB, MIB + 1, 20 * GIB, 512 * MIB + 512, 4096 * GIB, 4097 * GIB, 1 << 50] {
        let path = folder.join(&format!("{size}.qcow2"));
        assert_eq!(create_qcow2(&path, size, None).unwrap(), Outcome::Made);
        let name = path.to_str().unwrap();
        line("qemu-img", &format!("check -q -f qcow2 {name}"));
        let info = line("qemu-img", &format!("info -f qcow2 --output json {name}"));
        let size = size.next_multiple_of(512);
        assert!(info.contains(&format!("\"virtual-size\": {size},")), "{info}");
        assert!(info.contains("\"compat\": \"1.1\""), "{info}");
        let last = size - 512;
        qemu_io(
            name,
            &["write -P 7 0 512", &format!("write -P 9 {last} 512"), &format!("read -P 9 {last} 512")],
        );
        line("qemu-img", &format!("check -q -f qcow2 {name}"));
        assert!(std::fs::metadata(&path).unwrap().blocks() * 512 < 2 * MIB, "an empty image takes no space");
    }
}

#[test]
fn overlays_show_what_is_under_them_and_take_all_writes() {
    let folder = Folder::new();
    let raw = folder.join("base.img");
    std::fs::write(&raw, vec![5; 3 * MIB as usize]).unwrap();
    let qcow2 = folder.join("base.qcow2");
    line("qemu-img", &format!("convert -f raw -O qcow2 -c {} {}", raw.display(), qcow2.display()));
    for (base, format) in [(&raw, Format::Raw), (&qcow2, Format::Qcow2)] {
        let before = std::fs::read(base).unwrap();
        let info = probe(base).unwrap();
        assert_eq!((info.format, info.virtual_size), (format, 3 * MIB));
        let overlay = folder.join(&format!("deep/er/{}-overlay.qcow2", format.name()));
        let backing = Backing { path: base.to_str().unwrap(), format };
        assert_eq!(create_qcow2(&overlay, info.virtual_size, Some(backing)).unwrap(), Outcome::Made);
        let name = overlay.to_str().unwrap();
        let seen = line("qemu-img", &format!("info -f qcow2 --output json {name}"));
        assert!(seen.contains(&format!("\"backing-filename-format\": \"{}\"", format.name())), "{seen}");
        assert!(seen.contains(backing.path), "{seen}");
        qemu_io(name, &["read -P 5 0 3M", "write -P 6 1M 64k", "read -P 6 1M 64k", "read -P 5 2M 1M"]);
        line("qemu-img", &format!("check -q -f qcow2 {name}"));
        assert_eq!(std::fs::read(base).unwrap(), before, "the base stays as it is");

        // Once more, after the guest has written.
        assert_eq!(create_qcow2(&overlay, info.virtual_size, Some(backing)).unwrap(), Outcome::Kept);
        qemu_io(name, &["read -P 6 1M 64k"]);
        let read = probe(&overlay).unwrap().qcow2.unwrap();
        assert_eq!(read.backing_file.as_deref(), Some(backing.path));
        assert_eq!(read.backing_format.as_deref(), Some(format.name()));
        let other = Backing { path: "/other", format };
        for (size, backing) in [(MIB, Some(backing)), (3 * MIB, None), (3 * MIB, Some(other))] {
            let error = create_qcow2(&overlay, size, backing).unwrap_err();
            assert!(matches!(error, ImageError::Different { .. }), "{error}");
        }
    }
}

#[test]
fn what_cannot_be_made_is_an_error_and_leaves_nothing() {
    let folder = Folder::new();
    let path = folder.join("disk.qcow2");
    for size in [0, (1 << 50) + 1, u64::MAX] {
        let error = create_qcow2(&path, size, None).unwrap_err();
        assert!(matches!(error, ImageError::Size { .. }), "{size}: {error}");
    }
    let long = format!("/{}", "x".repeat(1023));
    for name in ["relative", "nbd:somewhere", "json:{}", long.as_str()] {
        let backing = Backing { path: name, format: Format::Raw };
        let error = create_qcow2(&path, MIB, Some(backing)).unwrap_err();
        assert!(matches!(error, ImageError::Feature { .. }), "{name}: {error}");
    }
    let error = create_raw(&path, u64::MAX, Allocation::Sparse).unwrap_err();
    assert!(matches!(error, ImageError::Size { .. }), "{error}");
    let failed = replace(&path, 0o600, |_| Err(ImageError::NoSpace("here".into())));
    assert!(matches!(failed.unwrap_err(), ImageError::NoSpace(_)));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn raw_images_are_sparse_or_take_all_their_space_and_can_grow() {
    let folder = Folder::new();
    let sparse = folder.join("sparse.img");
    assert_eq!(create_raw(&sparse, 100 * GIB, Allocation::Sparse).unwrap(), Outcome::Made);
    let info = probe(&sparse).unwrap();
    assert_eq!((info.format, info.virtual_size, info.preallocated()), (Format::Raw, 100 * GIB, false));

    let full = folder.join("full.img");
    assert_eq!(create_raw(&full, 3 * MIB, Allocation::Full).unwrap(), Outcome::Made);
    assert!(probe(&full).unwrap().preallocated());
    std::fs::write(&full, vec![1; MIB as usize]).unwrap();
    assert_eq!(create_raw(&full, 3 * MIB, Allocation::Full).unwrap(), Outcome::Kept);
    assert_eq!(grow_raw(&full, MIB - 1, Allocation::Full).unwrap(), Outcome::Kept);
    assert_eq!(grow_raw(&full, 2 * MIB, Allocation::Full).unwrap(), Outcome::Made);
    assert!(probe(&full).unwrap().preallocated());
    let bytes = std::fs::read(&full).unwrap();
    let (old, new) = bytes.split_at(MIB as usize);
    assert!(old.iter().all(|byte| *byte == 1) && new.iter().all(|byte| *byte == 0));
    assert!(matches!(grow_raw(folder.path(), 1, Allocation::Sparse), Err(ImageError::Io { .. })));
    assert!(matches!(grow_raw(&folder.join("none"), 1, Allocation::Sparse), Err(ImageError::Missing(_))));
}

#[test]
fn qcow2_images_grow_as_far_as_their_tables_go() {
    let folder = Folder::new();
    let path = folder.join("disk.qcow2");
    let name = path.to_str().unwrap();
    create_qcow2(&path, GIB, None).unwrap();
    qemu_io(name, &["write -P 3 1023M 1M"]);
    assert_eq!(grow_qcow2(&path, GIB).unwrap(), Outcome::Kept);
    assert_eq!(grow_qcow2(&path, 100 * GIB).unwrap(), Outcome::Made);
    line("qemu-img", &format!("check -q -f qcow2 {name}"));
    qemu_io(name, &["read -P 3 1023M 1M", "read -P 0 1G 1M", "write -P 4 99G 1M", "read -P 4 99G 1M"]);
    line("qemu-img", &format!("check -q -f qcow2 {name}"));
    assert_eq!(probe(&path).unwrap().virtual_size, 100 * GIB);
    assert!(matches!(grow_qcow2(&path, 5000 * GIB), Err(ImageError::Size { .. })));
    line("qemu-img", &format!("snapshot -c one {name}"));
    assert_eq!(probe(&path).unwrap().qcow2.unwrap().snapshots, 1);
    assert!(matches!(grow_qcow2(&path, 101 * GIB), Err(ImageError::Size { .. })));
}

#[test]
fn makers_of_the_same_image_do_not_disturb_each_other() {
    let folder = Folder::new();
    let path = folder.join("disk.qcow2");
    let made = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| create_qcow2(&path, GIB, None).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|it| *it == Outcome::Made).count()
    });
    assert_eq!(made, 1);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
