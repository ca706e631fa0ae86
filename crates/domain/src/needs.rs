//! What must be there before QEMU starts, so that a launcher can make it, or say what is missing.

use std::collections::BTreeSet;

use crate::domain::disk::{Disk, Image, ImageFormat, Location};
use crate::domain::firmware::Firmware;
use crate::domain::host_device::HostDeviceSource;
use crate::domain::network::NetBackend;
use crate::domain::security::LaunchSecurity;
use crate::domain::{Domain, FileContent};

/// One thing that must be there before QEMU starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// A folder that can be written; to be made.
    Folder(String),
    /// A small file; to be written.
    File(FileContent),
    /// A file that starts as a copy of another; to be copied if it is missing.
    Copy {
        /// Path of the template.
        from: String,
        /// Path of the file.
        to: String,
    },
    /// An image or block device with a volume's bytes.
    Image {
        /// Name of the disk.
        disk: String,
        /// Where it is.
        location: Location,
        /// How bytes are laid out in it.
        format: ImageFormat,
        /// It is only read.
        read_only: bool,
    },
    /// A qcow2 image that takes writes to another that stays as it is; to be made anew.
    Overlay {
        /// Name of the disk.
        disk: String,
        /// Path of the image.
        path: String,
        /// The image under it.
        base: Location,
        /// Format of the image under it.
        format: ImageFormat,
    },
    /// A qcow2 image that tracks changes to another, which keeps the bytes; to be made if it is missing.
    Tracker {
        /// Name of the disk.
        disk: String,
        /// Path of the image.
        path: String,
        /// Where the bytes are.
        data: Location,
    },
    /// A file that somebody else has put there.
    Readable(String),
    /// A Unix socket that another process listens on.
    Socket(String),
    /// A device of the host.
    Device(String),
}

/// All that a domain needs, in an order in which it can be made and checked.
pub fn needs(domain: &Domain) -> Vec<Need> {
    let mut list = Vec::new();
    firmware(domain, &mut list);
    for disk in &domain.disks {
        images(disk, &mut list);
    }
    list.extend(sockets(domain).into_iter().map(Need::Socket));
    list.extend(devices(domain).into_iter().map(Need::Device));
    list.extend(domain.files.iter().cloned().map(Need::File));
    let folders = folders(domain, &list);
    folders.into_iter().map(Need::Folder).chain(list).collect()
}

fn firmware(domain: &Domain, list: &mut Vec<Need>) {
    match &domain.firmware {
        Firmware::Builtin { .. } => {}
        Firmware::Rom { path } => list.push(Need::Readable(path.clone())),
        Firmware::Flash { code, vars, template, .. } => {
            list.push(Need::Readable(code.clone()));
            list.push(Need::Copy { from: template.clone(), to: vars.clone() });
        }
    }
    let kernel = domain.kernel.iter().flat_map(|boot| [&boot.kernel, &boot.initrd]).flatten().cloned();
    let tables = domain.smbios.acpi_tables.iter().map(|table| table.path.clone());
    let handed = domain.smbios.fw_cfg.iter().map(|(_, path)| path.clone());
    list.extend(kernel.chain(tables).chain(handed).map(Need::Readable));
}

/// The images of a disk, those below first.
fn images(disk: &Disk, list: &mut Vec<Need>) {
    let Some(image) = &disk.image else { return };
    image_needs(&disk.name, image, disk.read_only, list);
}

fn image_needs(disk: &str, image: &Image, read_only: bool, list: &mut Vec<Need>) {
    let name = disk.to_owned();
    let path = image.location.path().to_owned();
    let plain = |location: &Location, format, read_only| Need::Image {
        disk: disk.to_owned(),
        location: location.clone(),
        format,
        read_only,
    };
    if let Some(base) = &image.backing {
        image_needs(disk, base, true, list);
        list.push(Need::Overlay { disk: name, path, base: base.location.clone(), format: base.format });
    } else if let Some(data) = &image.data {
        list.push(plain(data, ImageFormat::Raw, read_only));
        list.push(Need::Tracker { disk: name, path, data: data.clone() });
    } else {
        list.push(plain(&image.location, image.format, read_only));
    }
}

/// Sockets that other processes listen on before QEMU comes.
fn sockets(domain: &Domain) -> Vec<String> {
    let switch = |backend: &NetBackend| match backend {
        NetBackend::VhostUser { socket, .. } => Some(socket.clone()),
        NetBackend::Tap { .. } => None,
    };
    let tpm = domain.devices.tpm.iter().map(|tpm| tpm.socket.clone());
    let shared = domain.devices.filesystems.iter().map(|filesystem| filesystem.socket.clone());
    let reservations = domain.reservations.clone().filter(|_| domain.disks.iter().any(Disk::reserves));
    let quotes = match &domain.launch_security {
        Some(LaunchSecurity::Tdx { quote_socket }) => quote_socket.clone(),
        _ => None,
    };
    tpm.chain(shared)
        .chain(reservations)
        .chain(quotes)
        .chain(domain.interfaces.iter().filter_map(|card| switch(&card.backend)))
        .collect()
}

fn devices(domain: &Domain) -> BTreeSet<String> {
    let mut devices = BTreeSet::new();
    let mut add = |needed: bool, path: &str| devices.extend(needed.then(|| path.to_owned()));
    let tap = |test: fn(&[i32], bool) -> bool| {
        domain.interfaces.iter().any(|card| match &card.backend {
            NetBackend::Tap { fds, vhost, .. } => test(fds, *vhost),
            NetBackend::VhostUser { .. } => false,
        })
    };
    add(domain.is_kvm(), "/dev/kvm");
    add(tap(|_, vhost| vhost), "/dev/vhost-net");
    add(tap(|fds, _| fds.is_empty()), "/dev/net/tun");
    add(domain.devices.vsock.is_some(), "/dev/vhost-vsock");
    let on_bus =
        domain.host_devices.iter().any(|device| !matches!(device.source, HostDeviceSource::Usb { .. }));
    add(on_bus && domain.iommufd.is_none(), "/dev/vfio/vfio");
    for device in &domain.host_devices {
        if let HostDeviceSource::Usb { bus, device } = device.source {
            add(true, &format!("/dev/bus/usb/{bus:03}/{device:03}"));
        }
    }
    let is_amd =
        matches!(domain.launch_security, Some(LaunchSecurity::Sev { .. } | LaunchSecurity::Snp { .. }));
    add(is_amd, "/dev/sev");
    devices
}

/// Folders of all that is made, by the launcher or by QEMU.
fn folders(domain: &Domain, list: &[Need]) -> BTreeSet<String> {
    let devices = &domain.devices;
    let console = devices.console.iter().flat_map(|console| [Some(&console.socket), console.log.as_ref()]);
    let listens = devices.channels.iter().map(|channel| &channel.socket).chain(&devices.usb_redirects);
    let graphics = devices.graphics.iter().map(|graphics| &graphics.socket);
    let tpm = devices.tpm.iter().map(|tpm| &tpm.socket);
    let log = devices.firmware_log.iter();
    let by_qemu = console.flatten().chain(listens).chain(graphics).chain(tpm).chain(log);
    let made = list.iter().filter_map(|need| match need {
        Need::File(file) => Some(&file.path),
        Need::Copy { to, .. } => Some(to),
        Need::Overlay { path, .. } | Need::Tracker { path, .. } => Some(path),
        _ => None,
    });
    let parent = |path: &String| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let state = devices.tpm.iter().map(|tpm| tpm.state.clone());
    by_qemu.chain(made).filter_map(parent).chain(state).filter(|folder| !folder.is_empty()).collect()
}
