//! The guest clock and its timers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::open_enum::open_enum;

/// Guest clock base and the timers attached to it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Clock {
    /// Run the hardware clock in UTC; takes effect over `timezone` if both are set.
    pub utc: Option<ClockOffsetUtc>,
    /// Run the hardware clock in local time of this zone, such as `Europe/Paris`.
    pub timezone: Option<String>,
    /// Timer devices to add, remove or tune.
    pub timer: Option<Timer>,
}

/// UTC-based clock; an empty object resets it to UTC at every boot.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClockOffsetUtc {
    /// Seconds to shift from UTC; once set, clock changes made by the guest survive reboots.
    #[schemars(extend("format" = null))]
    pub offset_seconds: Option<i64>,
}

/// Timer devices of the guest; those left out follow the machine type.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Timer {
    /// High Precision Event Timer; usually best switched off for Windows.
    pub hpet: Option<HpetTimer>,
    /// KVM paravirtual clock, the usual choice for Linux guests.
    pub kvm: Option<KvmTimer>,
    /// Programmable Interval Timer, the legacy PC timer.
    pub pit: Option<PitTimer>,
    /// Real-time clock.
    pub rtc: Option<RtcTimer>,
    /// Hyper-V reference clock, the usual choice for Windows guests.
    pub hyperv: Option<HypervTimer>,
}

/// High Precision Event Timer setting.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HpetTimer {
    /// What to do about missed ticks: `delay`, `catchup`, `merge` or `discard`.
    pub tick_policy: Option<HpetTickPolicy>,
    /// Whether the guest has this timer; true if unset.
    pub present: Option<bool>,
}

/// KVM clock setting.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KvmTimer {
    /// Whether the guest has this clock; true if unset.
    pub present: Option<bool>,
}

/// Programmable Interval Timer setting.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PitTimer {
    /// What to do about missed ticks: `delay`, `catchup` or `discard`.
    pub tick_policy: Option<PitTickPolicy>,
    /// Whether the guest has this timer; true if unset.
    pub present: Option<bool>,
}

/// Real-time clock setting.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RtcTimer {
    /// What to do about missed ticks: `delay` or `catchup`.
    pub tick_policy: Option<RtcTickPolicy>,
    /// Whether the guest has this timer; true if unset.
    pub present: Option<bool>,
    /// Time the clock follows: `guest` (stops while the VM does) or `wall` (real time).
    pub track: Option<RtcTimerTrack>,
}

/// Hyper-V reference clock setting.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HypervTimer {
    /// Whether the guest has this clock; true if unset.
    pub present: Option<bool>,
}

/// Base of the guest clock; set one of `utc` and `timezone`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClockOffset {
    /// Run the hardware clock in UTC, optionally shifted.
    pub utc: Option<ClockOffsetUtc>,
    /// Run the hardware clock in local time of this zone, such as `Europe/Paris`.
    pub timezone: Option<String>,
}

open_enum! {
    /// Missed HPET ticks are late (`delay`), sped through (`catchup`), joined (`merge`) or lost
    /// (`discard`).
    pub enum HpetTickPolicy {
        Delay = "delay",
        Catchup = "catchup",
        Merge = "merge",
        Discard = "discard",
    }
}

open_enum! {
    /// Missed PIT ticks are sent late (`delay`), sped through (`catchup`) or dropped (`discard`).
    pub enum PitTickPolicy {
        Delay = "delay",
        Catchup = "catchup",
        Discard = "discard",
    }
}

open_enum! {
    /// Missed RTC ticks are sent late at normal pace (`delay`) or at a faster pace (`catchup`).
    pub enum RtcTickPolicy {
        Delay = "delay",
        Catchup = "catchup",
    }
}

open_enum! {
    /// Time the RTC follows: `guest` (pauses with the VM) or `wall` (real time).
    pub enum RtcTimerTrack {
        Guest = "guest",
        Wall = "wall",
    }
}
