//! Container disks that tests make: guests that end by themselves, and images that no guest comes from.

use std::fs;

use anyhow::Result;
use serde_json::{Value, json};
use test_kit::Test;
use xtask::image::Image;
use xtask::{guest, sha256};

use super::manifest::idle;

/// What the BIOS loads and runs: it waits some seconds, and switches the machine off as any system does that has ACPI.
#[rustfmt::skip]
const BRIEF: [u8; 40] = [
    0xb9, 0x3d, 0x00, // mov cx, 61           in units of 65,536 microseconds: four seconds
    0x31, 0xd2,       // xor dx, dx
    0xb4, 0x86,       // mov ah, 0x86         wait
    0xcd, 0x15,       // int 0x15
    0xb8, 0x01, 0x53, // mov ax, 0x5301       speak to the power management
    0x31, 0xdb,       // xor bx, bx
    0xcd, 0x15,       // int 0x15
    0xb8, 0x0e, 0x53, // mov ax, 0x530e       in its version 1.2
    0x31, 0xdb,       // xor bx, bx
    0xb9, 0x02, 0x01, // mov cx, 0x0102
    0xcd, 0x15,       // int 0x15
    0xb8, 0x07, 0x53, // mov ax, 0x5307       set the state of power
    0xbb, 0x01, 0x00, // mov bx, 1            of the whole machine
    0xb9, 0x03, 0x00, // mov cx, 3            to off
    0xcd, 0x15,       // int 0x15
    0xf4,             // end: hlt
    0xeb, 0xfd,       // jmp end
];

/// A guest that shuts itself down soon after it started, and costs next to nothing.
pub fn brief(test: &Test) -> Result<Value> {
    let mut disk = vec![0; 1 << 20];
    disk[..BRIEF.len()].copy_from_slice(&BRIEF);
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    let (key, reference) = names("brief", &disk);
    test.load_image_once(&key, |aside, archive| {
        let file = aside.join("disk.img");
        fs::write(&file, disk)?;
        guest::container_disk(&reference, &file, archive)
    })?;
    Ok(with(&reference))
}

/// A machine whose image has no disk in it: its pod runs, and its guest cannot.
pub fn without_disk(test: &Test) -> Result<Value> {
    image_with(test, "diskless", &["readme"])
}

/// A machine of whose pod a container cannot start: its image has files where folders must be, however nodes get at it.
pub fn broken(test: &Test) -> Result<Value> {
    image_with(test, "broken", &["container-disk-binary", "usr"])
}

/// A machine with a disk from an image that has nothing but files of these names.
fn image_with(test: &Test, name: &str, files: &[&str]) -> Result<Value> {
    let (key, reference) = names(name, files.concat().as_bytes());
    test.load_image_once(&key, |aside, archive| {
        let root = aside.join("root");
        fs::create_dir_all(&root)?;
        for file in files {
            fs::write(root.join(file), "not a disk")?;
        }
        Image::of_program(&reference, &root, "/none").pack(archive)
    })?;
    Ok(with(&reference))
}

/// What the files of an image and the image itself are called, by what is in it.
fn names(name: &str, contents: &[u8]) -> (String, String) {
    let digest = sha256::of_bytes(contents);
    (format!("{name}-{digest:.12}"), format!("localhost/kubevirt-rs/{name}:{digest:.12}"))
}

/// A small machine with a disk from this image.
pub fn with(image: &str) -> Value {
    let mut spec = idle();
    spec["domain"]["devices"]["disks"] = json!([{"name": "root", "disk": {"bus": "virtio"}}]);
    spec["volumes"] =
        json!([{"name": "root", "containerDisk": {"image": image, "imagePullPolicy": "IfNotPresent"}}]);
    spec
}
