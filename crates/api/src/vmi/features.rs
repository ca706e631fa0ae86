//! Hypervisor features, Hyper-V enlightenments among them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Platform and hypervisor features presented to the guest.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Features {
    /// ACPI tables and power management; on unless disabled here.
    pub acpi: Option<FeatureState>,
    /// Interrupt controller setting; decided by the machine type if unset.
    pub apic: Option<FeatureApic>,
    /// Offer every Hyper-V feature the host has; excludes `hyperv` and prevents live migration.
    pub hyperv_passthrough: Option<HyperVPassthrough>,
    /// Individual Hyper-V enlightenments, mainly to make Windows run faster.
    pub hyperv: Option<FeatureHyperv>,
    /// System Management Mode; must be on for EFI Secure Boot.
    pub smm: Option<FeatureState>,
    /// How visible KVM is to the guest.
    pub kvm: Option<FeatureKvm>,
    /// Paravirtual spinlocks; turn off for old kernels that misbehave with them.
    pub pvspinlock: Option<FeatureState>,
}

/// On/off switch for a feature; an empty object means on.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureState {
    /// Whether the feature is on; true if unset.
    pub enabled: Option<bool>,
}

/// On/off switch and options of the APIC.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureApic {
    /// Whether the guest has an APIC; true if unset.
    pub enabled: Option<bool>,
    /// Turn on paravirtual end-of-interrupt signalling; false if unset.
    pub end_of_interrupt: Option<bool>,
}

/// Switch for handing all of the host's Hyper-V features to the guest.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HyperVPassthrough {
    /// Whether passthrough is on; excludes individual `hyperv` settings and live migration.
    pub enabled: Option<bool>,
}

/// Hyper-V enlightenments, each switched separately; unset ones keep the machine type's setting.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureHyperv {
    /// Tell Windows not to crash on late timer ticks, which are normal on a busy host.
    pub relaxed: Option<FeatureState>,
    /// Virtual APIC, which makes interrupt handling cheaper.
    pub vapic: Option<FeatureState>,
    /// Let a vCPU stuck on a lock yield to the host after a number of attempts.
    pub spinlocks: Option<FeatureSpinlocks>,
    /// Give each vCPU an index the guest can read; many other enlightenments depend on it.
    pub vpindex: Option<FeatureState>,
    /// Show the guest how much CPU time each vCPU really got.
    pub runtime: Option<FeatureState>,
    /// Synthetic interrupt controller; needs `vpindex`.
    pub synic: Option<FeatureState>,
    /// Synthetic timers, which lower idle CPU use; needs `synic`.
    pub synictimer: Option<SyNicTimer>,
    /// Let the guest reboot through the Hyper-V interface; needs `synic`.
    pub reset: Option<FeatureState>,
    /// Replace the hypervisor vendor string the guest reads.
    pub vendorid: Option<FeatureVendorId>,
    /// Show the guest its TSC and APIC frequencies so it need not calibrate them.
    pub frequencies: Option<FeatureState>,
    /// Warn the guest when the TSC frequency changes, as after a migration.
    pub reenlightenment: Option<FeatureState>,
    /// Let the guest ask the host for TLB flushes, good for overcommitted CPUs; needs `vpindex`.
    pub tlbflush: Option<TlbFlush>,
    /// Send inter-processor interrupts by hypercall, good for overcommitted CPUs; needs `vpindex`.
    pub ipi: Option<FeatureState>,
    /// Faster nested virtualization on Intel at the cost of some CPU features; needs `vapic`.
    pub evmcs: Option<FeatureState>,
}

/// Hyper-V spinlock setting.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureSpinlocks {
    /// Whether the feature is on; true if unset.
    pub enabled: Option<bool>,
    /// Failed lock attempts before the host is notified; at least 4096, which is also the default.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub spinlocks: Option<i32>,
}

/// Hyper-V synthetic timer setting.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyNicTimer {
    /// Whether the feature is on; true if unset.
    pub enabled: Option<bool>,
    /// Deliver timer expiry as a plain interrupt rather than a message, which is quicker.
    pub direct: Option<FeatureState>,
}

/// Hypervisor vendor string setting.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureVendorId {
    /// Whether the replacement string is used; true if unset.
    pub enabled: Option<bool>,
    /// Text shown to the guest, 12 characters at most.
    pub vendorid: Option<String>,
}

/// Hyper-V TLB flush setting.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TlbFlush {
    /// Whether the feature is on; true if unset.
    pub enabled: Option<bool>,
    /// Let nested guests reach the hypervisor for flushes; helps Windows with VBS.
    pub direct: Option<FeatureState>,
    /// Allow flushing selected address ranges instead of the entire TLB.
    pub extended: Option<FeatureState>,
}

/// KVM visibility setting.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureKvm {
    /// Conceal KVM from guest software that looks for it, as some GPU drivers do; false if unset.
    pub hidden: Option<bool>,
}
