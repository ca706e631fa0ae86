//! Devices other than disks, interfaces and host devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::open_enum::open_enum;
use crate::vmi::disks::{Disk, Filesystem};
use crate::vmi::host_devices::{Gpu, HostDevice};
use crate::vmi::network::Interface;

/// Virtual hardware attached to the guest.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Devices {
    /// Use legacy-compatible virtio devices, for old guests such as RHEL 6; false if unset.
    pub use_virtio_transitional: Option<bool>,
    /// Refuse adding disks while the VM runs, and leave out the hotplug controller; false if unset.
    pub disable_hotplug: Option<bool>,
    /// Disks, CD-ROMs and LUNs, each backed by the volume of the same name; at most 256.
    #[schemars(extend("maxItems" = 256))]
    pub disks: Option<Vec<Disk>>,
    /// Watchdog that acts when the guest stops responding; none if unset.
    pub watchdog: Option<Watchdog>,
    /// Network cards, each tied to the network of the same name; at most 256.
    #[schemars(extend("maxItems" = 256))]
    pub interfaces: Option<Vec<Interface>>,
    /// Pointer devices such as a tablet for graphical consoles.
    pub inputs: Option<Vec<Input>>,
    /// Add a pod network interface when no networks are listed; true if unset.
    pub autoattach_pod_interface: Option<bool>,
    /// Add a graphics card; true if unset, and without one there is no VNC.
    pub autoattach_graphics_device: Option<bool>,
    /// Add a serial console; true if unset, and without one `virtctl console` does not work.
    pub autoattach_serial_console: Option<bool>,
    /// Stream serial console output to the guest-console-log container; cluster setting if unset.
    pub log_serial_console: Option<bool>,
    /// Add a memory balloon, which also supplies memory statistics; true if unset.
    pub autoattach_mem_balloon: Option<bool>,
    /// Add a tablet when no inputs are listed; false if unset.
    pub autoattach_input_device: Option<bool>,
    /// Give the guest a VSOCK address for host-guest sockets; false if unset, needs the VSOCK feature gate.
    #[serde(rename = "autoattachVSOCK")]
    pub autoattach_vsock: Option<bool>,
    /// When present, the guest gets a virtio random number generator fed by the host.
    pub rng: Option<Rng>,
    /// Give virtio disks one queue per vCPU; false if unset.
    pub block_multi_queue: Option<bool>,
    /// Give virtio network cards several queues, scaled with the vCPU count; false if unset.
    pub network_interface_multiqueue: Option<bool>,
    /// Host GPUs or vGPUs passed through to the guest.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub gpus: Option<Vec<Gpu>>,
    /// When present, host metrics reach the guest over virtio-serial; needs the DownwardMetrics feature
    /// gate.
    pub downward_metrics: Option<DownwardMetrics>,
    /// Devices through which the guest kernel reports a crash to the host.
    pub panic_devices: Option<Vec<PanicDevice>>,
    /// Volumes shared with the guest as directories over virtiofs.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub filesystems: Option<Vec<Filesystem>>,
    /// Permitted host devices passed through to the guest.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub host_devices: Option<Vec<HostDevice>>,
    /// When present, USB devices of a `virtctl` user's machine can be redirected to the guest.
    pub client_passthrough: Option<ClientPassthroughDevices>,
    /// Sound card; none if unset.
    pub sound: Option<SoundDevice>,
    /// Virtual TPM 2.0; none if unset.
    pub tpm: Option<TpmDevice>,
    /// Graphics card model; chosen by architecture and firmware if unset.
    pub video: Option<VideoDevice>,
}

/// Watchdog timer that acts when the guest hangs.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Watchdog {
    /// Name of the watchdog device.
    pub name: String,
    /// Intel 6300ESB PCI watchdog, the default on amd64.
    pub i6300esb: Option<I6300EsbWatchdog>,
    /// IBM Z diag288 watchdog, the only one on s390x.
    pub diag288: Option<Diag288Watchdog>,
}

/// Intel 6300ESB PCI watchdog.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct I6300EsbWatchdog {
    /// What happens on expiry: `poweroff`, `reset` (default) or `shutdown`.
    pub action: Option<WatchdogAction>,
}

/// IBM Z diag288 watchdog.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diag288Watchdog {
    /// What happens on expiry: `poweroff`, `reset` (default) or `shutdown`.
    pub action: Option<WatchdogAction>,
}

/// A pointer device for the guest's graphical console.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Bus the device sits on: `usb` (default) or `virtio`.
    pub bus: Option<InputBus>,
    /// Kind of device; only `tablet` is accepted.
    pub type_: InputType,
    /// Name of the input device.
    pub name: String,
}

/// Empty marker; its presence adds a random number generator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rng {}

/// Empty marker; its presence exposes host metrics to the guest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DownwardMetrics {}

/// Device that signals guest crashes to the host.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PanicDevice {
    /// Model: `hyperv`, `isa` or `pvpanic`; picked by hypervisor and architecture if unset.
    pub model: Option<PanicDeviceModel>,
}

/// Empty marker; its presence turns on USB redirection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientPassthroughDevices {}

/// An emulated sound card.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SoundDevice {
    /// Name of the sound card.
    pub name: String,
    /// Sound card model: `ich9` (default) or `ac97`.
    pub model: Option<String>,
}

/// A virtual TPM.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TpmDevice {
    /// Set false to drop a TPM that a preference would add; true if unset.
    pub enabled: Option<bool>,
    /// Keep TPM contents across restarts, on a small PVC; false if unset.
    pub persistent: Option<bool>,
}

/// The guest's graphics card.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VideoDevice {
    /// Card type, such as virtio, vga, bochs or ramfb; depends on architecture and firmware if unset.
    pub type_: Option<String>,
}

open_enum! {
    /// Reaction to a hung guest: `poweroff`, `reset` or an orderly `shutdown`.
    pub enum WatchdogAction {
        Poweroff = "poweroff",
        Reset = "reset",
        Shutdown = "shutdown",
    }
}

open_enum! {
    /// Bus of an input device: `usb` or `virtio`.
    pub enum InputBus {
        Usb = "usb",
        Virtio = "virtio",
    }
}

open_enum! {
    /// Input device kind; `keyboard` is a known value but only `tablet` passes validation.
    pub enum InputType {
        Tablet = "tablet",
        Keyboard = "keyboard",
    }
}

open_enum! {
    /// Panic device model: `hyperv`, `isa` or `pvpanic`.
    pub enum PanicDeviceModel {
        Hyperv = "hyperv",
        Isa = "isa",
        Pvpanic = "pvpanic",
    }
}
