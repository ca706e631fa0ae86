//! Devices other than disks, network cards and host devices.

use serde::{Deserialize, Serialize};

use crate::pci::Address;

/// Devices other than disks, network cards and host devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Devices {
    /// SCSI controller, which also takes disks while the machine runs.
    pub scsi: Option<ScsiController>,
    /// Where further SATA controllers sit, beyond the board's own.
    pub sata: Vec<Address>,
    /// Where the USB controller sits.
    pub usb: Option<Address>,
    /// Where the controller of the channels sits.
    pub serial_bus: Option<Address>,
    /// Serial console.
    pub console: Option<Console>,
    /// File that keeps what the firmware says.
    pub firmware_log: Option<String>,
    /// Channels between guest and host.
    pub channels: Vec<Channel>,
    /// Display over VNC.
    pub graphics: Option<Graphics>,
    /// Keyboards and tablets.
    pub inputs: Vec<Input>,
    /// Sound card.
    pub sound: Option<Sound>,
    /// Trusted platform module.
    pub tpm: Option<Tpm>,
    /// Watchdog.
    pub watchdog: Option<Watchdog>,
    /// Where the random number generator sits.
    pub rng: Option<Address>,
    /// Memory balloon.
    pub balloon: Option<Balloon>,
    /// Devices that report a guest's crash.
    pub panic: Vec<PanicDevice>,
    /// Sockets between guest and host.
    pub vsock: Option<Vsock>,
    /// Sockets of redirected USB devices.
    pub usb_redirects: Vec<String>,
    /// Directories shared with the guest.
    pub filesystems: Vec<Filesystem>,
    /// The VMI asks for cards with a queue for each CPU that there is when they are plugged in.
    pub card_queues: bool,
    /// The VMI asks for disks with a queue for each CPU that there is when they are plugged in.
    pub disk_queues: bool,
}

/// SCSI controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScsiController {
    /// Where it sits.
    pub address: Address,
    /// IO thread that serves it.
    pub io_thread: Option<u32>,
    /// Number of request queues, if not QEMU's choice.
    pub queues: Option<u32>,
}

/// Serial console.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Console {
    /// Unix socket.
    pub socket: String,
    /// File that keeps all output.
    pub log: Option<String>,
}

/// A channel between guest and host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Channel {
    /// Name the guest finds it by.
    pub name: String,
    /// Unix socket.
    pub socket: String,
}

/// Display over VNC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Graphics {
    /// Unix socket.
    pub socket: String,
    /// Graphics card.
    pub video: Video,
    /// Where the card sits; none if it is no bus device.
    pub address: Option<Address>,
}

/// Graphics card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Video {
    /// Standard VGA.
    Vga,
    /// Bochs display, without VGA.
    Bochs,
    /// Paravirtual.
    Virtio,
    /// A frame buffer in guest memory.
    Ramfb,
    /// Cirrus Logic GD5446.
    Cirrus,
    /// Spice's card.
    Qxl,
    /// No card; only host devices show a picture.
    None,
}

/// A keyboard or tablet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Name of the device.
    pub name: String,
    /// Whether it is a keyboard; a tablet otherwise.
    pub keyboard: bool,
    /// Where it sits if it is a virtio device; on USB otherwise.
    pub address: Option<Address>,
}

/// Sound card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sound {
    /// Name of the device.
    pub name: String,
    /// Intel HD audio; AC97 otherwise.
    pub hda: bool,
    /// Where it sits.
    pub address: Address,
}

/// Trusted platform module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tpm {
    /// Command response buffer interface; FIFO otherwise.
    pub crb: bool,
    /// State survives the machine.
    pub persistent: bool,
    /// Socket of the emulator.
    pub socket: String,
    /// Folder of the emulator's state.
    #[serde(default)]
    pub state: String,
}

/// Watchdog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Watchdog {
    /// Name of the device.
    pub name: String,
    /// What happens when it expires.
    pub action: WatchdogAction,
    /// Where it sits; none for the one of IBM Z.
    pub address: Option<Address>,
}

/// What happens when a watchdog expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WatchdogAction {
    /// The machine is reset.
    #[default]
    Reset,
    /// The power goes off.
    Poweroff,
    /// The guest is asked to shut down.
    Shutdown,
}

/// Memory balloon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Balloon {
    /// Where it sits.
    pub address: Address,
    /// The guest gives back pages that it does not use.
    pub free_page_reporting: bool,
    /// Seconds between two readings of the guest's statistics; 0 for none.
    pub stats_period: u32,
}

/// A device that reports a guest's crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PanicDevice {
    /// An I/O port of the PC.
    Isa,
    /// A PCI device.
    Pci(Address),
    /// Hyper-V's registers.
    Hyperv,
}

/// Sockets between guest and host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Vsock {
    /// The guest's number.
    pub cid: u32,
    /// Where it sits.
    pub address: Address,
}

/// A directory shared with the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Filesystem {
    /// Name of the volume, which is the tag the guest mounts.
    pub name: String,
    /// Socket of the file server.
    pub socket: String,
    /// Where it sits.
    pub address: Address,
}
