//! What a running machine does not care about: what its host, its start or an earlier change has settled.

use super::cards::find;
use crate::domain::Domain;
use crate::domain::cpu::{Cpu, Topology};
use crate::domain::devices::{Devices, PanicDevice};
use crate::domain::disk::{Cache, Disk, DiskBus, DiskKind};
use crate::domain::firmware::{ClockBase, Firmware, Smbios};
use crate::domain::host_device::HostDevice;
use crate::domain::memory::{Memory, MemoryHotplug};
use crate::domain::network::{Interface, NetBackend};
use crate::domain::security::LaunchSecurity;
use crate::pinning::Pinning;

/// The wanted domain with all that is settled as it runs: whatever differs still is a wish that is not met.
pub(super) fn settle(running: &Domain, wanted: &Domain) -> Domain {
    let mut rest = wanted.clone();
    // Which of several machine types, models or firmware files serves a wish is settled by the first host.
    rest.machine.machine_type.clone_from(&running.machine.machine_type);
    rest.machine.accelerator = running.machine.accelerator;
    rest.firmware = firmware(&running.firmware, rest.firmware);
    rest.cpu = cpu(&running.cpu, rest.cpu);
    rest.memory = memory(&running.memory, rest.memory);
    rest.smbios = smbios(&running.smbios, rest.smbios);
    if let (ClockBase::At(_), ClockBase::At(_)) = (&running.clock.base, &rest.clock.base) {
        rest.clock.base.clone_from(&running.clock.base);
    }
    rest.launch_security = match (&running.launch_security, rest.launch_security) {
        (Some(running), Some(wanted)) => Some(launch_security(running, wanted)),
        (_, wanted) => wanted,
    };
    // How many threads there are follows from the disks of that time.
    if running.io_threads > 0 {
        rest.io_threads = running.io_threads;
    }
    rest.pci.clone_from(&running.pci);
    rest.iommufd = running.iommufd;
    rest.lifecycle.start_paused = running.lifecycle.start_paused;
    rest.pinning = match (&running.pinning, rest.pinning) {
        (Some(running), Some(wanted)) => Some(Pinning { realtime: wanted.realtime, ..running.clone() }),
        (_, wanted) => wanted,
    };
    // What has come or gone was said already, one by one.
    let of_disk = |disk: &Disk| {
        let wanted = wanted.disks.iter().find(|wanted| wanted.name == disk.name);
        wanted.map_or_else(|| disk.clone(), |wanted| self::disk(disk, wanted))
    };
    rest.disks = running.disks.iter().map(of_disk).collect();
    let of_card = |card: &Interface| {
        let wanted = wanted.interfaces.iter().find(|wanted| wanted.name == card.name);
        wanted.map_or_else(|| card.clone(), |wanted| interface(card, wanted))
    };
    rest.interfaces = running.interfaces.iter().map(of_card).collect();
    let of_device = |device: &HostDevice| {
        let wanted = find(&wanted.host_devices, device);
        wanted.map_or_else(|| device.clone(), |wanted| host_device(device, wanted))
    };
    rest.host_devices = running.host_devices.iter().map(of_device).collect();
    if rest.disks.iter().any(Disk::reserves) == wanted.disks.iter().any(Disk::reserves) {
        rest.reservations.clone_from(&running.reservations);
    }
    rest.devices = devices(&running.devices, rest.devices);
    rest
}

fn firmware(running: &Firmware, wanted: Firmware) -> Firmware {
    match (running, wanted) {
        (Firmware::Flash { code, template, vars, .. }, Firmware::Flash { secure_boot, .. }) => {
            let (code, template, vars) = (code.clone(), template.clone(), vars.clone());
            Firmware::Flash { code, template, vars, secure_boot }
        }
        (Firmware::Rom { .. }, Firmware::Rom { .. }) => running.clone(),
        (_, wanted) => wanted,
    }
}

/// Model and flags follow from what is asked for and the host; sockets were looked at already.
fn cpu(running: &Cpu, wanted: Cpu) -> Cpu {
    let (has, wants) = (running.topology, wanted.topology);
    let alike = (has.cores, has.threads) == (wants.cores, wants.threads);
    let max_sockets = if has.sockets == wants.sockets { wants.max_sockets } else { has.max_sockets };
    let topology = if alike { Topology { sockets: has.sockets, max_sockets, ..wants } } else { wants };
    Cpu { topology, model: running.model.clone(), features: running.features.clone(), ..wanted }
}

/// Sizes were looked at already; where memory lies follows from the host.
fn memory(running: &Memory, mut wanted: Memory) -> Memory {
    wanted.hotplug = match (&running.hotplug, wanted.hotplug) {
        (Some(running), Some(wanted)) => Some(MemoryHotplug { max: wanted.max, ..running.clone() }),
        (_, wanted) => wanted,
    };
    if running.nodes.is_empty() == wanted.nodes.is_empty() {
        wanted.nodes.clone_from(&running.nodes);
    }
    Memory { size: running.size, locked: running.locked, ..wanted }
}

/// What the cluster says about its machines is settled at start; what the VMI says is not.
fn smbios(running: &Smbios, mut wanted: Smbios) -> Smbios {
    let own = |field: &&(String, String)| matches!(field.0.as_str(), "serial" | "uuid");
    if running.system.iter().filter(own).eq(wanted.system.iter().filter(own)) {
        wanted.system.clone_from(&running.system);
    }
    wanted
}

fn launch_security(running: &LaunchSecurity, mut wanted: LaunchSecurity) -> LaunchSecurity {
    match (running, &mut wanted) {
        (
            LaunchSecurity::Sev { c_bit_position: bit, reduced_phys_bits: reduced, .. },
            LaunchSecurity::Sev { c_bit_position, reduced_phys_bits, .. },
        )
        | (
            LaunchSecurity::Snp { c_bit_position: bit, reduced_phys_bits: reduced, .. },
            LaunchSecurity::Snp { c_bit_position, reduced_phys_bits, .. },
        ) => (*c_bit_position, *reduced_phys_bits) = (*bit, *reduced),
        _ => {}
    }
    wanted
}

/// How the host reaches the bytes, and where the disk sits, is settled; volumes and sizes were looked at already.
fn disk(running: &Disk, wanted: &Disk) -> Disk {
    let visible = |cache: Cache| cache == Cache::Writethrough;
    let cache = if visible(running.cache) == visible(wanted.cache) { running.cache } else { wanted.cache };
    let kind = match (running.kind, wanted.kind) {
        (DiskKind::Cdrom { .. }, DiskKind::Cdrom { .. }) => running.kind,
        (_, wanted) => wanted,
    };
    let bus = match (&running.bus, &wanted.bus) {
        (DiskBus::Virtio { .. }, DiskBus::Virtio { .. })
        | (DiskBus::Sata { .. }, DiskBus::Sata { .. })
        | (DiskBus::Scsi { .. }, DiskBus::Scsi { .. }) => running.bus.clone(),
        (_, wanted) => wanted.clone(),
    };
    Disk {
        target: running.target.clone(),
        kind,
        bus,
        cache,
        image: running.image.clone(),
        io: running.io,
        discard: running.discard,
        hotplugged: running.hotplugged,
        size: running.size,
        room: running.room,
        ..wanted.clone()
    }
}

/// What the card is wired to is the host's; how many queues it has followed from the CPUs of that time.
fn interface(running: &Interface, wanted: &Interface) -> Interface {
    let backend = match (&running.backend, &wanted.backend) {
        (NetBackend::Tap { .. }, NetBackend::Tap { .. }) => running.backend.clone(),
        (NetBackend::VhostUser { socket, .. }, NetBackend::VhostUser { ports, .. }) => {
            NetBackend::VhostUser { socket: socket.clone(), ports: ports.clone() }
        }
        (_, wanted) => wanted.clone(),
    };
    Interface {
        backend,
        address: running.address,
        mtu: running.mtu,
        queues: running.queues,
        ..wanted.clone()
    }
}

fn host_device(running: &HostDevice, wanted: &HostDevice) -> HostDevice {
    HostDevice { source: running.source.clone(), address: running.address, ..wanted.clone() }
}

/// Places stay, and so do settings of the cluster.
fn devices(running: &Devices, mut wanted: Devices) -> Devices {
    if let (Some(has), Some(wants)) = (&running.scsi, &mut wanted.scsi) {
        *wants = has.clone();
    }
    if let (Some(has), Some(wants)) = (&running.balloon, &mut wanted.balloon) {
        *wants = has.clone();
    }
    if let (Some(has), Some(wants)) = (&running.console, &mut wanted.console) {
        *wants = has.clone();
    }
    if let (Some(has), Some(wants)) = (&running.graphics, &mut wanted.graphics) {
        (wants.address, wants.socket) = (has.address, has.socket.clone());
    }
    if let (Some(has), Some(wants)) = (&running.tpm, &mut wanted.tpm) {
        (wants.socket, wants.state) = (has.socket.clone(), has.state.clone());
    }
    if let (Some(has), Some(wants)) = (&running.sound, &mut wanted.sound) {
        wants.address = has.address;
    }
    if let (Some(has), Some(wants)) = (&running.watchdog, &mut wanted.watchdog) {
        wants.address = has.address;
    }
    if let (Some(has), Some(wants)) = (&running.vsock, &mut wanted.vsock) {
        wants.address = has.address;
    }
    for (has, wants) in [
        (running.usb, &mut wanted.usb),
        (running.serial_bus, &mut wanted.serial_bus),
        (running.rng, &mut wanted.rng),
    ] {
        if let (Some(has), Some(wants)) = (has, wants) {
            *wants = has;
        }
    }
    wanted.sata.clone_from(&running.sata);
    wanted.firmware_log.clone_from(&running.firmware_log);
    for filesystem in &mut wanted.filesystems {
        if let Some(has) = running.filesystems.iter().find(|has| has.name == filesystem.name) {
            filesystem.address = has.address;
        }
    }
    for input in &mut wanted.inputs {
        let has = running.inputs.iter().find(|has| has.name == input.name);
        if let (Some(Some(has)), Some(address)) = (has.map(|has| has.address), &mut input.address) {
            *address = has;
        }
    }
    for (has, wants) in running.panic.iter().zip(&mut wanted.panic) {
        if let (PanicDevice::Pci(has), PanicDevice::Pci(wants)) = (has, wants) {
            *wants = *has;
        }
    }
    wanted
}
