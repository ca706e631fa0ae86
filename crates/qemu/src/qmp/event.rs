//! What QEMU tells unasked.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::machine::JobStatus;
use crate::migration::MigrationStatus;

/// Something that happened in QEMU. Unknown events are kept as they came.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(
    tag = "event",
    content = "data",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "kebab-case"
)]
#[expect(missing_docs, reason = "the fields are QEMU's own")]
pub enum Event {
    /// The guest's CPUs stopped.
    Stop,
    /// The guest's CPUs run.
    Resume,
    /// The machine was reset; `guest` says whether the guest asked for it.
    Reset {
        #[serde(default)]
        guest: bool,
        reason: Option<String>,
    },
    /// The machine shuts down; `guest` says whether the guest asked for it.
    Shutdown {
        #[serde(default)]
        guest: bool,
        reason: Option<String>,
    },
    /// The power button was pressed.
    Powerdown,
    /// The guest suspended to memory.
    Suspend,
    /// The guest suspended to disk.
    SuspendDisk,
    /// The guest woke up.
    Wakeup,
    /// The guest's kernel panicked.
    GuestPanicked { action: String, info: Option<Value> },
    /// The guest's kernel panicked and started its crash kernel.
    GuestCrashloaded { action: String, info: Option<Value> },
    /// A disk failed under the guest.
    BlockIoError {
        #[serde(default)]
        device: String,
        node_name: Option<String>,
        qom_path: Option<String>,
        operation: String,
        action: String,
        nospace: Option<bool>,
        reason: Option<String>,
    },
    /// More was written to a node than its threshold.
    BlockWriteThreshold { node_name: String, amount_exceeded: u64, write_threshold: u64 },
    /// A block job ended, well or with an error.
    BlockJobCompleted(BlockJobEvent),
    /// A block job was cancelled.
    BlockJobCancelled(BlockJobEvent),
    /// A block job can be completed.
    BlockJobReady(BlockJobEvent),
    /// A block job met an error on the way.
    BlockJobError { device: String, operation: String, action: String },
    /// A block job waits to be finalized.
    BlockJobPending { id: String },
    /// A job moved on.
    JobStatusChange { id: String, status: JobStatus },
    /// A device is out; its backends may go.
    DeviceDeleted { device: Option<String>, path: String },
    /// The guest will not let a device go.
    DeviceUnplugGuestError { device: Option<String>, path: String },
    /// The guest will not let a memory device go (the name that older QEMUs use).
    MemUnplugError { device: String, msg: String },
    /// A tray opened or closed.
    DeviceTrayMoved { device: String, id: String, tray_open: bool },
    /// A migration moved on.
    Migration { status: MigrationStatus },
    /// A migration begins another pass over the memory.
    MigrationPass { pass: u64 },
    /// The guest took or gave back memory of a virtio-mem device.
    MemoryDeviceSizeChange { id: Option<String>, size: u64, qom_path: Option<String> },
    /// The balloon has another size; `actual` is what the guest has now.
    BalloonChange { actual: u64 },
    /// The watchdog fired.
    Watchdog { action: String },
    /// The guest's firmware reports on a hotplug.
    AcpiDeviceOst { info: AcpiOst },
    /// The guest set its clock; `offset` is in seconds.
    RtcChange { offset: i64, qom_path: Option<String> },
    /// The guest changed the receive filter of an interface.
    NicRxFilterChanged { name: Option<String>, path: String },
    /// A port of a virtio-serial device was opened or closed in the guest: the guest agent came or went.
    #[serde(rename = "VSERPORT_CHANGE")]
    SerialPortChange { id: String, open: bool },
    /// Somebody connected to VNC.
    VncConnected { server: Peer, client: Peer },
    /// Somebody is in: the VNC session is negotiated.
    VncInitialized { server: Peer, client: Peer },
    /// Somebody left VNC.
    VncDisconnected { server: Peer, client: Peer },
    /// A memory dump ended.
    DumpCompleted { result: Value, error: Option<String> },
    /// An event that we do not know, or know otherwise.
    #[serde(skip)]
    Other { name: String, data: Value },
    /// The listener was too slow and missed that many events: ask for what matters.
    #[serde(skip)]
    Missed { count: u64 },
    /// A line that is neither reply nor event.
    #[serde(skip)]
    Unreadable { line: String },
}

/// What events of block jobs say.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "the fields are QEMU's own")]
pub struct BlockJobEvent {
    #[serde(rename = "type")]
    pub kind: String,
    pub device: String,
    pub len: u64,
    pub offset: u64,
    pub speed: u64,
    pub error: Option<String>,
}

/// A report of the guest's firmware on a hotplug.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the fields are QEMU's own")]
pub struct AcpiOst {
    pub device: Option<String>,
    pub slot: String,
    pub slot_type: String,
    pub source: i64,
    pub status: i64,
}

impl AcpiOst {
    /// Whether the guest would not, or could not, let the device go; still being at it is no refusal.
    pub fn is_refused_eject(&self) -> bool {
        const EJECT: [i64; 2] = [0x3, 0x103];
        const SUCCESS_OR_PENDING: [i64; 2] = [0, 0x84];
        EJECT.contains(&self.source) && !SUCCESS_OR_PENDING.contains(&self.status)
    }
}

/// One end of a display connection.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "the fields are QEMU's own")]
pub struct Peer {
    #[serde(default)]
    pub host: String,
    #[serde(default)]
    pub service: String,
    #[serde(default)]
    pub family: String,
}

impl Event {
    /// Reads what it knows. A later QEMU may add data to an event that had none, which changes nothing for us.
    pub(crate) fn read(name: String, data: Value) -> Self {
        let told = if data.is_null() { json!({}) } else { data.clone() };
        Self::deserialize(json!({ "event": &name, "data": told }))
            .or_else(|_| Self::deserialize(json!({ "event": &name })))
            .unwrap_or(Self::Other { name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_events_are_typed_and_unknown_ones_kept() {
        let cases = [
            ("STOP", json!(null), Event::Stop),
            ("STOP", json!({"new": 1}), Event::Stop),
            ("RESET", json!(null), Event::Reset { guest: false, reason: None }),
            ("RESET", json!({"guest": true, "reason": "guest-reset"}), {
                Event::Reset { guest: true, reason: Some("guest-reset".into()) }
            }),
            ("SHUTDOWN", json!({"guest": false, "reason": "host-qmp-quit", "since": "later"}), {
                Event::Shutdown { guest: false, reason: Some("host-qmp-quit".into()) }
            }),
            ("VSERPORT_CHANGE", json!({"id": "agent", "open": true}), {
                Event::SerialPortChange { id: "agent".into(), open: true }
            }),
            ("JOB_STATUS_CHANGE", json!({"id": "backup", "status": "concluded"}), {
                Event::JobStatusChange { id: "backup".into(), status: JobStatus::Concluded }
            }),
            ("MIGRATION", json!({"status": "from-the-future"}), {
                Event::Migration { status: MigrationStatus::Other("from-the-future".into()) }
            }),
            ("RTC_CHANGE", json!({"offset": -3600}), Event::RtcChange { offset: -3600, qom_path: None }),
            ("RTC_CHANGE", json!({"offset": "soon"}), {
                Event::Other { name: "RTC_CHANGE".into(), data: json!({"offset": "soon"}) }
            }),
            ("NEW_THING", json!({"a": 1}), Event::Other { name: "NEW_THING".into(), data: json!({"a": 1}) }),
            ("OTHER", json!(null), Event::Other { name: "OTHER".into(), data: json!(null) }),
        ];
        for (name, data, expected) in cases {
            assert_eq!(Event::read(name.to_owned(), data), expected, "{name}");
        }
    }
}
