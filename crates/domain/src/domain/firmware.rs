//! What a machine boots with, its clock and what it says about itself.

use serde::{Deserialize, Serialize};

/// What runs first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Firmware {
    /// The board's own: SeaBIOS on x86, the boot loader of IBM Z.
    Builtin {
        /// Its output goes to the serial console too.
        serial: bool,
    },
    /// UEFI in two flash chips: code, and variables that can be written.
    Flash {
        /// Image of the code.
        code: String,
        /// Image of the variables; made from the template if it is missing.
        vars: String,
        /// What the variables start as.
        template: String,
        /// Only signed code boots.
        secure_boot: bool,
    },
    /// UEFI as one read-only image without variables, for protected guests.
    Rom {
        /// Path of the image.
        path: String,
    },
}

/// A kernel that is started directly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KernelBoot {
    /// Path of the kernel.
    pub kernel: Option<String>,
    /// Path of the initial RAM disk.
    pub initrd: Option<String>,
    /// Command line.
    pub args: Option<String>,
}

/// The guest's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Clock {
    /// What the hardware clock shows at start.
    pub base: ClockBase,
    /// Lost ticks of the hardware clock are made up for.
    pub catch_up: bool,
    /// The hardware clock follows the guest's time (`true`) or real time.
    pub follows_guest: Option<bool>,
    /// What happens to lost ticks of the interval timer.
    pub pit_policy: Option<PitPolicy>,
}

/// What the hardware clock shows at start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ClockBase {
    /// UTC.
    #[default]
    Utc,
    /// Local time of the process.
    Local,
    /// A point in time, such as `2026-11-15T20:11:35`.
    At(String),
}

/// What happens to lost ticks of the interval timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PitPolicy {
    /// They come late.
    Delay,
    /// They are dropped.
    Discard,
}

/// Tables the guest reads about its hardware.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Smbios {
    /// Fields of the system, such as `manufacturer`, in order; empty if there are no tables.
    pub system: Vec<(String, String)>,
    /// Fields of the chassis.
    pub chassis: Vec<(String, String)>,
    /// Free strings of the maker.
    pub oem_strings: Vec<String>,
    /// Further ACPI tables.
    pub acpi_tables: Vec<AcpiTable>,
    /// Files the firmware interface hands to the guest, by name.
    pub fw_cfg: Vec<(String, String)>,
}

/// A further ACPI table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AcpiTable {
    /// Signature of four letters.
    pub signature: String,
    /// Path of the table.
    pub path: String,
}
