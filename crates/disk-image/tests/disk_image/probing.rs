//! What images are, and what is wrong with them.

use std::fs;

use kubevirt_disk_image::{Format, ImageError, probe};

use crate::folder::Folder;
use crate::programs::{line, qemu_io};

const MIB: u64 = 1 << 20;

#[test]
fn qcow2_images_of_qemu_are_known() {
    let folder = Folder::new();
    let path = folder.join("disk");
    let name = path.to_str().unwrap();
    for (options, version, cluster_bits) in [
        ("compat=0.10", 2, 16),
        ("compat=1.1", 3, 16),
        ("cluster_size=512", 3, 9),
        ("cluster_size=2M", 3, 21),
        ("compat=1.1,extended_l2=on,cluster_size=64k", 3, 16),
        ("compat=1.1,compression_type=zlib,lazy_refcounts=on", 3, 16),
        ("preallocation=metadata", 3, 16),
    ] {
        line("qemu-img", &format!("create -q -f qcow2 -o {options} {name} 600M"));
        let info = probe(&path).unwrap();
        assert_eq!((info.format, info.virtual_size), (Format::Qcow2, 600 * MIB), "{options}");
        info.self_contained(&path).unwrap();
        let qcow2 = info.qcow2.unwrap();
        assert_eq!((qcow2.version, qcow2.cluster_bits), (version, cluster_bits), "{options}");
        assert!(qcow2.backing_file.is_none() && !qcow2.encrypted && !qcow2.external_data, "{options}");
    }
}

#[test]
fn images_that_name_other_files_are_refused() {
    let folder = Folder::new();
    let path = folder.join("disk");
    let name = path.to_str().unwrap();
    for options in ["-o compat=0.10 ", "-F qcow2 ", ""] {
        line("qemu-img", &format!("create -q -f qcow2 -u -b /etc/shadow -F raw {options}{name} 1M"));
        let info = probe(&path).unwrap();
        assert_eq!(info.qcow2.as_ref().unwrap().backing_file.as_deref(), Some("/etc/shadow"));
        let error = info.self_contained(&path).unwrap_err();
        assert!(matches!(&error, ImageError::Reference { name, .. } if name == "/etc/shadow"), "{error}");
    }
    let data = folder.join("data");
    line("qemu-img", &format!("create -q -f qcow2 -o data_file={} {name} 1M", data.display()));
    let error = probe(&path).unwrap().self_contained(&path).unwrap_err();
    assert!(matches!(error, ImageError::Reference { .. }), "{error}");

    // Not LUKS, for which it must first measure the CPU, and cannot on a busy machine.
    let encrypted = "--object secret,id=s,data=x -f qcow2 -o encrypt.format=aes,encrypt.key-secret=s";
    line("qemu-img", &format!("create -q {encrypted} {name} 1M"));
    let error = probe(&path).unwrap().self_contained(&path).unwrap_err();
    assert!(matches!(error, ImageError::Encrypted(_)), "{error}");
}

#[test]
fn other_formats_are_refused_by_name() {
    let folder = Folder::new();
    let path = folder.join("disk");
    let name = path.to_str().unwrap();
    for (format, expected) in [
        ("vmdk", "VMDK"),
        ("vdi", "VDI"),
        ("vhdx", "VHDX"),
        ("vpc", "VHD"),
        ("qed", "QED"),
        ("parallels", "Parallels"),
        ("qcow", "qcow (version 1)"),
    ] {
        line("qemu-img", &format!("create -q -f {format} {name} 16M"));
        let error = probe(&path).unwrap_err();
        assert!(
            matches!(error, ImageError::Format { format, .. } if format == expected),
            "{format}: {error}"
        );
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn what_is_no_image_is_told() {
    let folder = Folder::new();
    let path = folder.join("disk");
    assert!(matches!(probe(&path), Err(ImageError::Missing(_))));
    assert!(matches!(probe(folder.path()), Err(ImageError::NotAFile(_))));
    line("mkfifo", path.to_str().unwrap());
    assert!(matches!(probe(&path), Err(ImageError::NotAFile(_))));
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    assert!(matches!(probe(&path), Err(ImageError::Truncated { .. })));
    fs::write(&path, "QFI").unwrap();
    assert_eq!(probe(&path).unwrap().format, Format::Raw, "a few bytes are a small raw image");
}

#[test]
fn damaged_qcow2_images_say_what_is_wrong() {
    let folder = Folder::new();
    let path = folder.join("disk");
    let name = path.to_str().unwrap();
    line("qemu-img", &format!("create -q -f qcow2 {name} 1G"));
    qemu_io(name, &["write 0 1M"]);
    let whole = fs::read(&path).unwrap();
    let with = |at: usize, bytes: &[u8]| {
        let mut image = whole.clone();
        image[at..at + bytes.len()].copy_from_slice(bytes);
        image
    };
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (whole[..50].to_vec(), "the qcow2 header is not whole"),
        (whole[..4096].to_vec(), "table is beyond the end of the file"),
        (with(4, &9_u32.to_be_bytes()), "qcow2 version 9"),
        (with(20, &40_u32.to_be_bytes()), "cluster size"),
        (with(20, &u32::MAX.to_be_bytes()), "cluster size"),
        (with(24, &u64::MAX.to_be_bytes()), "too small for the image's size"),
        (with(36, &u32::MAX.to_be_bytes()), "table is too large"),
        (with(40, &3_u64.to_be_bytes()), "at a wrong place"),
        (with(40, &(u64::MAX << 16).to_be_bytes()), "beyond the end"),
        (with(8, &u64::MAX.to_be_bytes()), "name of its backing file"),
        (with(72, &2_u64.to_be_bytes()), "marked it as corrupt"),
        (with(72, &(1_u64 << 40).to_be_bytes()), "unknown qcow2 features"),
        (with(100, &8_u32.to_be_bytes()), "length of the header"),
    ];
    for (image, expected) in cases {
        fs::write(&path, image).unwrap();
        let error = probe(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error} instead of {expected}");
    }
}

#[test]
fn no_header_makes_probing_panic() {
    let folder = Folder::new();
    let path = folder.join("disk");
    line("qemu-img", &format!("create -q -f qcow2 -u -F raw -b /base {} 1G", path.display()));
    let whole = fs::read(&path).unwrap();
    // Each byte of the header, set to a few telling values.
    for at in 4..200 {
        for value in [0, 1, 0x7f, 0xff] {
            let mut image = whole.clone();
            image[at] = value;
            fs::write(&path, &image).unwrap();
            let _ = probe(&path);
        }
    }
}
