//! Puts the files of `root/` into the library, and a number that changes with anything that makes the guest.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let output = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut fingerprint = 0xcbf2_9ce4_8422_2325;
    let mut list = String::from("const FILES: &[(&str, u32, &[u8])] = &[\n");
    let root = here.join("root");
    for file in files(&root) {
        let name = file.strip_prefix(&root).expect("below the root").display();
        let executable = file.metadata().expect("readable").permissions().mode() & 0o111 != 0;
        let mode = if executable { 0o755 } else { 0o644 };
        // Where the sources lie is asked when the library is built: a target folder may outlive the clone that filled it.
        let place = format!(r#"concat!(env!("CARGO_MANIFEST_DIR"), "/root/{name}")"#);
        writeln!(list, "({:?}, {mode}, include_bytes!({place})),", name.to_string()).expect("in memory");
        mix(&mut fingerprint, format!("{name} {mode}").as_bytes());
        mix(&mut fingerprint, &std::fs::read(&file).expect("readable"));
    }
    for file in files(&here.join("src/build")) {
        mix(&mut fingerprint, &std::fs::read(&file).expect("readable"));
    }
    writeln!(list, "];\nconst FINGERPRINT: u64 = {fingerprint};").expect("in memory");
    std::fs::write(output.join("files.rs"), list).expect("writable");
    println!("cargo::rerun-if-changed=root\ncargo::rerun-if-changed=src/build");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// FNV-1a: enough to tell versions apart, and the same with every compiler.
fn mix(hash: &mut u64, bytes: &[u8]) {
    for byte in bytes {
        *hash = (*hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
}
