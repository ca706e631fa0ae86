//! Controllers and the devices that a machine has once.

use kubevirt_api::vmi::devices::{PanicDeviceModel, WatchdogAction as ApiAction};
use kubevirt_api::vmi::disks::DiskBus as ApiBus;

use super::io_threads::IoThreads;
use super::{Conversion, channels, disks, display, text};
use crate::domain::Architecture;
use crate::domain::devices::{
    Balloon, Devices, Filesystem, PanicDevice, ScsiController, Sound, Tpm, Vsock, Watchdog, WatchdogAction,
};
use crate::domain::disk::{Disk, DiskBus};
use crate::domain::host_device::{HostDevice, HostDeviceSource};
use crate::pci::{Address, Role};

/// How many USB devices of a user can be redirected at once.
const USB_REDIRECTS: usize = 4;

/// All devices other than disks, network cards and host devices.
pub(super) fn convert(
    c: &mut Conversion<'_>,
    disks: &[Disk],
    host_devices: &[HostDevice],
    io_threads: &IoThreads,
) -> Devices {
    let inputs = display::inputs(c);
    let usb_redirects = usb_redirects(c);
    let on_usb = inputs.iter().any(|input| input.address.is_none())
        || disks.iter().any(|disk| disk.bus == DiskBus::Usb)
        || host_devices.iter().any(|device| matches!(device.source, HostDeviceSource::Usb { .. }))
        || !usb_redirects.is_empty()
        || c.architecture == Architecture::Arm64;
    Devices {
        scsi: scsi(c, io_threads),
        sata: sata(c, disks),
        usb: (on_usb && c.architecture != Architecture::S390x)
            .then(|| c.place("spec.domain.devices", Role::Usb)),
        serial_bus: Some(c.place("spec.domain.devices", Role::Serial)),
        console: channels::console(c),
        firmware_log: c.host.firmware_log.clone().filter(|_| c.architecture == Architecture::Amd64),
        channels: channels::convert(c),
        graphics: display::graphics(c),
        inputs,
        sound: sound(c),
        tpm: tpm(c),
        watchdog: watchdog(c),
        rng: c.spec.devices.rng.is_some().then(|| c.place("spec.domain.devices.rng", Role::Rng)),
        balloon: balloon(c, host_devices),
        panic: panic(c),
        vsock: vsock(c),
        usb_redirects,
        filesystems: filesystems(c),
        card_queues: c.spec.devices.network_interface_multiqueue == Some(true),
        disk_queues: c.spec.devices.block_multi_queue == Some(true),
    }
}

fn scsi(c: &mut Conversion<'_>, io_threads: &IoThreads) -> Option<ScsiController> {
    let all = c.spec.devices.disks.as_deref().unwrap_or_default();
    let needed = c.spec.devices.disable_hotplug != Some(true)
        || all.iter().any(|disk| disks::bus(c, disk) == ApiBus::Scsi);
    let on_pci = c.architecture != Architecture::S390x;
    let queues = (on_pci || io_threads.scsi.is_some()).then(|| c.queues(1022));
    needed.then(|| ScsiController {
        address: c.place("spec.domain.devices", Role::Scsi),
        io_thread: io_threads.scsi,
        queues,
    })
}

/// The PC has a SATA controller of its own; what does not fit goes to further ones.
fn sata(c: &mut Conversion<'_>, disks: &[Disk]) -> Vec<Address> {
    let port = |disk: &Disk| if let DiskBus::Sata { port } = disk.bus { Some(port + 1) } else { None };
    let controllers = disks.iter().filter_map(port).max().unwrap_or(0).div_ceil(disks::PORTS_PER_SATA);
    let own = u32::from(c.architecture == Architecture::Amd64);
    let further = controllers.saturating_sub(own).min(disks::MAX_FURTHER_SATA);
    (0..further).map(|index| c.place("spec.domain.devices.disks", Role::Sata(index))).collect()
}

fn sound(c: &mut Conversion<'_>) -> Option<Sound> {
    let sound = c.spec.devices.sound.as_ref()?;
    let hda = match sound.model.as_deref().unwrap_or("ich9") {
        "" | "ich9" => true,
        "ac97" => false,
        other => {
            c.unsupported("spec.domain.devices.sound.model", format_args!("{other:?} is not known"));
            return None;
        }
    };
    if c.architecture == Architecture::S390x {
        c.unsupported("spec.domain.devices.sound", "s390x has no sound card");
    }
    Some(Sound { name: sound.name.clone(), hda, address: c.place("spec.domain.devices.sound", Role::Sound) })
}

fn tpm(c: &mut Conversion<'_>) -> Option<Tpm> {
    let tpm = c.spec.devices.tpm.as_ref().filter(|tpm| tpm.enabled.unwrap_or(true))?;
    if c.architecture == Architecture::S390x {
        c.unsupported("spec.domain.devices.tpm", "s390x has no TPM");
    }
    let persistent = tpm.persistent == Some(true);
    Some(Tpm {
        crb: persistent && c.architecture == Architecture::Amd64,
        persistent,
        socket: c.layout.machine(c.uid(), "swtpm.sock"),
        state: c.layout.tpm_state(c.identity().uuid.as_deref().unwrap_or(c.uid())),
    })
}

fn watchdog(c: &mut Conversion<'_>) -> Option<Watchdog> {
    let field = "spec.domain.devices.watchdog";
    let watchdog = c.spec.devices.watchdog.as_ref()?;
    let i6300esb = watchdog.i6300esb.as_ref().map(|it| it.action.clone());
    let diag288 = watchdog.diag288.as_ref().map(|it| it.action.clone());
    let (action, address) = match (c.architecture, i6300esb, diag288) {
        (Architecture::Amd64, Some(action), None) => (action, Some(c.place(field, Role::Watchdog))),
        (Architecture::S390x, None, Some(action)) => (action, None),
        (architecture, ..) => {
            c.unsupported(field, format_args!("{} has no such watchdog", architecture.as_str()));
            return None;
        }
    };
    let action = match action {
        None | Some(ApiAction::Reset) => WatchdogAction::Reset,
        Some(ApiAction::Poweroff) => WatchdogAction::Poweroff,
        Some(ApiAction::Shutdown) => WatchdogAction::Shutdown,
        Some(ApiAction::Other(other)) => {
            if !other.is_empty() {
                c.unsupported(format!("{field}.action"), format_args!("{other:?} is not known"));
            }
            WatchdogAction::Reset
        }
    };
    Some(Watchdog { name: watchdog.name.clone(), action, address })
}

/// Pages that are locked for a device, or huge, cannot be given back one by one.
fn balloon(c: &mut Conversion<'_>, host_devices: &[HostDevice]) -> Option<Balloon> {
    if c.spec.devices.autoattach_mem_balloon == Some(false) {
        return None;
    }
    let locked = host_devices.iter().any(|device| !matches!(device.source, HostDeviceSource::Usb { .. }))
        || c.spec.memory.as_ref().is_some_and(|memory| memory.hugepages.is_some())
        || c.spec.launch_security.is_some()
        || c.has_dedicated_cpus();
    Some(Balloon {
        address: c.place("spec.domain.devices.autoattachMemBalloon", Role::Balloon),
        free_page_reporting: c.host.free_page_reporting && !locked,
        stats_period: c.host.balloon_stats_period,
    })
}

fn panic(c: &mut Conversion<'_>) -> Vec<PanicDevice> {
    let mut devices = Vec::new();
    let (mut pci, x86) = (0, c.architecture == Architecture::Amd64);
    for (index, device) in c.spec.devices.panic_devices.iter().flatten().enumerate() {
        let field = format!("spec.domain.devices.panicDevices[{index}]");
        match device.model.clone().filter(|model| !model.is_empty()) {
            _ if c.architecture == Architecture::S390x => {
                c.unsupported(field, "s390x always reports a guest's crash");
            }
            Some(PanicDeviceModel::Isa) | None if x86 => devices.push(PanicDevice::Isa),
            Some(PanicDeviceModel::Hyperv) if x86 => devices.push(PanicDevice::Hyperv),
            Some(PanicDeviceModel::Pvpanic) | None => {
                if pci == 8 {
                    c.unsupported(&*field, "there are at most eight of them");
                }
                devices.push(PanicDevice::Pci(c.place(&field, Role::Panic(pci))));
                pci += 1;
            }
            Some(model) => {
                let reason = format!("{} has no panic device {:?}", c.architecture.as_str(), model.as_str());
                c.unsupported(field, reason);
            }
        }
    }
    if devices.iter().filter(|device| matches!(device, PanicDevice::Isa)).count() > 1 {
        c.unsupported("spec.domain.devices.panicDevices", "there is one isa panic device at most");
    }
    devices
}

fn vsock(c: &mut Conversion<'_>) -> Option<Vsock> {
    let field = "spec.domain.devices.autoattachVSOCK";
    let cid = c.vmi.status.as_ref().and_then(|status| status.vsockcid);
    let asked = c.spec.devices.autoattach_vsock == Some(true);
    match cid.and_then(|cid| u32::try_from(cid).ok()).filter(|cid| *cid > 2) {
        Some(cid) => Some(Vsock { cid, address: c.place(field, Role::Vsock) }),
        None => {
            if asked {
                c.unsupported(field, "the machine has not been given a CID yet");
            }
            None
        }
    }
}

fn usb_redirects(c: &Conversion<'_>) -> Vec<String> {
    let count = if c.spec.devices.client_passthrough.is_some() { USB_REDIRECTS } else { 0 };
    (0..count).map(|index| c.layout.machine(c.uid(), &format!("virt-usbredir-{index}"))).collect()
}

fn filesystems(c: &mut Conversion<'_>) -> Vec<Filesystem> {
    let mut shared = Vec::new();
    let all = c.spec.devices.filesystems.as_deref().unwrap_or_default();
    for (index, filesystem) in all.iter().enumerate() {
        let field = format!("spec.domain.devices.filesystems[{index}]");
        if !c.vmi.spec.volumes.iter().flatten().any(|volume| volume.name == filesystem.name) {
            c.unsupported(&*field, format_args!("there is no volume {:?}", filesystem.name));
        }
        let name = text(&Some(filesystem.name.clone())).filter(|name| name.len() <= 36);
        if name.is_none() {
            c.unsupported(&*field, "the tag of a shared directory has 1 to 36 characters");
        }
        shared.push(Filesystem {
            name: filesystem.name.clone(),
            socket: c.layout.filesystem(&filesystem.name),
            address: c.place(&field, Role::Filesystem(index as u32)),
        });
    }
    shared
}
