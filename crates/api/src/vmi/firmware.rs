//! Machine type, chassis, firmware and boot.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Emulated board of the guest.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// QEMU machine type, e.g. `q35` or `pc-q35-rhel9.6.0`; the cluster's default for the architecture if
    /// unset.
    pub type_: Option<String>,
}

/// Boot firmware and the identity it reports to the guest.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Firmware {
    /// System UUID the guest sees; generated if unset and then kept.
    pub uuid: Option<String>,
    /// Choice of BIOS or EFI; the architecture's default if unset.
    pub bootloader: Option<Bootloader>,
    /// System serial number the guest reads from SMBIOS; absent if unset.
    pub serial: Option<String>,
    /// Boot a kernel taken from a container image instead of one on the disks.
    pub kernel_boot: Option<KernelBoot>,
    /// Extra ACPI tables for the guest, such as Windows license data.
    pub acpi: Option<Acpi>,
}

/// Firmware the guest boots with; BIOS and EFI exclude each other.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bootloader {
    /// Boot with legacy BIOS; used on x86 when neither choice is made.
    pub bios: Option<Bios>,
    /// Boot with UEFI firmware.
    pub efi: Option<Efi>,
}

/// Legacy BIOS settings.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bios {
    /// Also print BIOS output on the serial console; false if unset.
    pub use_serial: Option<bool>,
}

/// UEFI settings.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Efi {
    /// Enforce Secure Boot, needing the SMM feature; true if unset, except on arm64 where it is off.
    pub secure_boot: Option<bool>,
    /// Keep EFI variables across restarts on a PVC; false if unset, which resets them at each start.
    pub persistent: Option<bool>,
}

/// Direct boot of a kernel shipped in a container image.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KernelBoot {
    /// Kernel command line; rejected without `container`.
    pub kernel_args: Option<String>,
    /// Image that holds the kernel and initrd.
    pub container: Option<KernelBootContainer>,
}

/// Where to find the kernel and initrd; at least one of the two paths is needed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KernelBootContainer {
    /// Container image with the boot files.
    pub image: String,
    /// Existing registry Secret in the same namespace used to pull the image.
    pub image_pull_secret: Option<String>,
    /// `Always`, `Never` or `IfNotPresent`; Always for `latest` tags, otherwise IfNotPresent.
    #[schemars(extend("x-strict" = { "enum": ["Always", "IfNotPresent", "Never"] }))]
    pub image_pull_policy: Option<String>,
    /// Absolute path of the kernel inside the image.
    pub kernel_path: Option<String>,
    /// Absolute path of the initial ramdisk inside the image.
    pub initrd_path: Option<String>,
}

/// ACPI tables supplied from Secrets; at least one must be named.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Acpi {
    /// Name of a Secret volume of this machine with a binary SLIC table, for older Windows licensing.
    pub slic_name_ref: Option<String>,
    /// Name of a Secret volume of this machine with a binary MSDM table, for newer Windows licensing.
    pub msdm_name_ref: Option<String>,
}

/// Chassis details the guest reads from SMBIOS.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Chassis {
    /// Chassis maker shown to the guest.
    pub manufacturer: Option<String>,
    /// Chassis version shown to the guest.
    pub version: Option<String>,
    /// Chassis serial number shown to the guest.
    pub serial: Option<String>,
    /// Chassis asset tag shown to the guest.
    pub asset: Option<String>,
    /// Chassis SKU number shown to the guest.
    pub sku: Option<String>,
}
