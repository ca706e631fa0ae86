//! The guest's files: busybox, a few modules, and the guest agent with its libraries, in one archive.

use std::path::{Path, PathBuf};
use std::process::Command;

/// In the order in which they need each other.
const MODULES: [&str; 9] = [
    "virtio",
    "virtio_ring",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "virtio_console",
    "virtio_blk",
    "virtio_balloon",
    "virtio_mem",
];

const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do insmod /modules/$module; done
mke2fs -F /dev/vda && mount /dev/vda /data
echo 'The guest is up.'
qemu-ga -m virtio-serial -p /dev/vport*p1 -t /tmp -f /tmp/ga.pid
echo 'The guest agent ended.'
poweroff -f
"#;

/// Busybox has none. What is not crypted yet is only marked so.
const CHPASSWD: &str = r#"#!/bin/sh
IFS=: read -r user password
[ "$1" = -e ] || password="plain $password"
sed -i "s|^$user:[^:]*:|$user:$password:|" /etc/shadow
"#;

const FILES: [(&str, u32, &str); 8] = [
    ("init", 0o100_755, INIT),
    ("sbin/shutdown", 0o100_755, "#!/bin/sh\ncase \"$*\" in *-r*) reboot -f;; *) poweroff -f;; esac\n"),
    ("sbin/hwclock", 0o100_755, "#!/bin/sh\nexec busybox hwclock \"$@\"\n"),
    ("sbin/chpasswd", 0o100_755, CHPASSWD),
    ("etc/passwd", 0o100_644, "root:x:0:0:root:/root:/bin/sh\nkim:x:1000:1000::/home/kim:/bin/sh\n"),
    ("etc/shadow", 0o100_600, "root:*:19000:0:99999:7:::\nkim:*:19000:0:99999:7:::\n"),
    ("etc/group", 0o100_644, "root:x:0:\nkim:x:1000:\n"),
    ("etc/os-release", 0o100_644, "ID=tiny\nPRETTY_NAME=\"Tiny Guest\"\n"),
];

const FOLDERS: [&str; 18] = [
    "bin",
    "sbin",
    "etc",
    "proc",
    "sys",
    "dev",
    "tmp",
    "run",
    "data",
    "root",
    "home",
    "home/kim",
    "modules",
    "lib",
    "lib64",
    "lib/x86_64-linux-gnu",
    "usr",
    "usr/bin",
];

/// A kernel whose modules are installed, the one for clouds if there is one.
pub(crate) fn kernel() -> (PathBuf, PathBuf) {
    let mut kernels: Vec<_> = std::fs::read_dir("/lib/modules")
        .expect("install a Debian kernel, for example linux-image-cloud-amd64")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|version| Path::new(&format!("/boot/vmlinuz-{version}")).exists())
        .collect();
    kernels.sort_by_key(|version| (version.contains("cloud"), version.clone()));
    let version = kernels.pop().expect("install a Debian kernel, for example linux-image-cloud-amd64");
    (format!("/boot/vmlinuz-{version}").into(), format!("/lib/modules/{version}/kernel/drivers").into())
}

/// Everything in the format that the kernel unpacks.
pub(crate) fn build(drivers: &Path) -> Vec<u8> {
    let mut archive = Vec::new();
    for folder in FOLDERS {
        add(&mut archive, folder, 0o040_755, &[]);
    }
    for (name, mode, content) in FILES {
        add(&mut archive, name, mode, content.as_bytes());
    }
    let mut order = String::new();
    for module in MODULES {
        let file = find(drivers, module).unwrap_or_else(|| panic!("the kernel has no module {module}"));
        let name = file.file_name().unwrap().to_str().unwrap();
        order = order + name + "\n";
        add_file(&mut archive, &format!("modules/{name}"), &file);
    }
    add(&mut archive, "modules/order", 0o100_644, order.as_bytes());
    add_file(&mut archive, "bin/busybox", Path::new("/bin/busybox"));
    let agent = Path::new("/usr/sbin/qemu-ga");
    add_file(&mut archive, "sbin/qemu-ga", agent);
    let libraries = Command::new("ldd").arg(agent).output().expect("install qemu-guest-agent");
    for word in String::from_utf8(libraries.stdout).unwrap().split_whitespace() {
        if word.starts_with('/') {
            add_file(&mut archive, word.trim_start_matches('/'), Path::new(word));
        }
    }
    add(&mut archive, "TRAILER!!!", 0, &[]);
    archive
}

fn find(folder: &Path, module: &str) -> Option<PathBuf> {
    std::fs::read_dir(folder).ok()?.filter_map(Result::ok).find_map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return find(&path, module);
        }
        let stem = path.file_name()?.to_str()?.split('.').next()?.replace('-', "_");
        (stem == module).then_some(path)
    })
}

fn add_file(archive: &mut Vec<u8>, name: &str, from: &Path) {
    let content = std::fs::read(from).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    add(archive, name, 0o100_755, &content);
}

/// One entry of a `newc` archive: a header of hexadecimal numbers, the name, the content, each padded to four.
fn add(archive: &mut Vec<u8>, name: &str, mode: u32, content: &[u8]) {
    let inode = u32::try_from(archive.len() / 4 + 1).unwrap();
    let size = u32::try_from(content.len()).unwrap();
    let name_size = u32::try_from(name.len() + 1).unwrap();
    archive.extend_from_slice(b"070701");
    for field in [inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0] {
        archive.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    archive.extend_from_slice(name.as_bytes());
    archive.push(0);
    pad(archive);
    archive.extend_from_slice(content);
    pad(archive);
}

fn pad(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(4), 0);
}
