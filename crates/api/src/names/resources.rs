//! Extended resources by which the launcher pod asks the kubelet for devices.

/// What every built-in device resource starts with, before the slash.
pub const DEVICE_NAMESPACE: &str = "devices.kubevirt.io";
/// Hardware virtualization.
pub const KVM: &str = "devices.kubevirt.io/kvm";
/// Hardware virtualization on the Microsoft hypervisor.
pub const MSHV: &str = "devices.kubevirt.io/mshv";
/// Tap network devices.
pub const TUN: &str = "devices.kubevirt.io/tun";
/// Network packets moved by the kernel.
pub const VHOST_NET: &str = "devices.kubevirt.io/vhost-net";
/// Sockets between host and guest.
pub const VHOST_VSOCK: &str = "devices.kubevirt.io/vhost-vsock";
/// The helper for SCSI persistent reservations.
pub const PR_HELPER: &str = "devices.kubevirt.io/pr-helper";
/// Memory encryption of AMD processors.
pub const SEV: &str = "devices.kubevirt.io/sev";
/// Trust domains of Intel processors.
pub const TDX: &str = "devices.kubevirt.io/tdx";
/// Device passthrough through the newer kernel interface.
pub const IOMMUFD: &str = "devices.kubevirt.io/iommufd";

/// What the variable starts with that tells a container the addresses of its PCI devices.
pub const PCI_VARIABLE: &str = "PCI_RESOURCE";
/// What the variable starts with that tells a container the UUIDs of its mediated devices.
pub const MEDIATED_VARIABLE: &str = "MDEV_PCI_RESOURCE";
/// What the variable starts with that tells a container the buses and numbers of its USB devices.
pub const USB_VARIABLE: &str = "USB_RESOURCE";
