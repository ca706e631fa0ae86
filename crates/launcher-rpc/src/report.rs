//! What a launcher tells of its domain: what it is, what state it is in and why.

use kubevirt_domain::Domain;
use serde::{Deserialize, Serialize};

/// A domain as its launcher sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DomainReport {
    /// Whose domain it is.
    pub metadata: ReportMetadata,
    /// The machine; none before it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<Domain>,
    /// What became of it.
    pub status: DomainStatus,
}

/// Whose domain it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportMetadata {
    /// Name of the VMI.
    pub name: String,
    /// Namespace of the VMI.
    pub namespace: String,
    /// UID of the VMI.
    pub uid: String,
    /// When the domain ceased to exist, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
}

/// What became of a domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DomainStatus {
    /// What it is doing.
    pub status: State,
    /// Why.
    pub reason: Reason,
    /// The same in words, for a failure.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How QEMU runs the guest's instructions: `kvm` or `tcg`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub accelerator: String,
    /// Whether the guest agent answers.
    pub agent_connected: bool,
    /// Version of the guest agent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent_version: String,
    /// Commands that the guest agent knows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agent_commands: Vec<String>,
    /// Interfaces as the guest sees them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceStatus>,
    /// The guest's operating system.
    #[serde(rename = "osInfo", skip_serializing_if = "Option::is_none")]
    pub os_info: Option<GuestOs>,
    /// `frozen` while the guest holds its file systems still.
    #[serde(rename = "fsFreezeStatus", skip_serializing_if = "String::is_empty")]
    pub freeze: String,
    /// How the guest's kernel panicked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panic: Option<GuestPanic>,
    /// How often it did.
    pub panic_count: u32,
    /// The graceful shutdown that was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_period: Option<GracePeriod>,
    /// The latest migration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migration: Option<MigrationReport>,
    /// What came of ssh keys and passwords.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_credential: Option<Outcome>,
    /// The latest memory dump.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_dump: Option<JobReport>,
    /// The latest backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupReport>,
    /// Guest memory that it has now, in bytes; differs from what was asked while memory is plugged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Changes of the VMI that take effect only after a restart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs_restart: Vec<String>,
}

/// What a domain is doing. Words are KubeVirt's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// There is none.
    #[default]
    NoState,
    /// The guest runs.
    Running,
    /// The guest stands still.
    Paused,
    /// The guest was asked to shut down.
    ShuttingDown,
    /// The machine is off.
    Shutoff,
    /// The machine failed.
    Crashed,
    /// The guest sleeps.
    #[serde(rename = "PMSuspended")]
    Suspended,
    /// A word from the future.
    #[serde(other)]
    Unknown,
}

/// Why a domain is in its state. Words are KubeVirt's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// Somebody asked for it.
    User,
    /// The guest shut itself down, or did as it was asked.
    Shutdown,
    /// It was ended from outside.
    Destroyed,
    /// It runs elsewhere now.
    Migrated,
    /// QEMU ended unexpectedly.
    Crashed,
    /// The guest's kernel panicked.
    Panicked,
    /// It could not start, or failed.
    Failed,
    /// There is no such domain any more.
    NonExistent,
    /// It stands still while the last memory moves.
    Migration,
    /// A disk failed.
    #[serde(rename = "IOError")]
    IoError,
    /// Its watchdog fired.
    Watchdog,
    /// It has not begun to run.
    StartingUp,
    /// Its memory still arrives while it runs.
    Postcopy,
    /// Its memory can no longer arrive.
    PostcopyFailed,
    /// Its memory is written out.
    Dump,
    /// Nobody knows, or it needs no reason.
    #[default]
    #[serde(other)]
    Unknown,
}

/// An interface as the guest sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InterfaceStatus {
    /// Name in the guest.
    pub interface_name: String,
    /// Hardware address.
    pub mac: String,
    /// First address.
    pub ip: String,
    /// All addresses.
    pub ips: Vec<String>,
}

/// The guest's operating system, as its agent tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of os-release")]
pub struct GuestOs {
    pub name: String,
    pub id: String,
    pub pretty_name: String,
    pub version: String,
    pub version_id: String,
    pub kernel_release: String,
    pub kernel_version: String,
    pub machine: String,
}

/// How a guest's kernel panicked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GuestPanic {
    /// Who told: `hyper-v`, `s390` or `unknown`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The numbers that a Windows guest gives; the first is the code of its blue screen.
    pub arguments: Vec<u64>,
}

/// A graceful shutdown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GracePeriod {
    /// Seconds that the guest has.
    pub seconds: i64,
    /// When it was begun, in RFC 3339.
    pub since: String,
}

/// How far a migration is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MigrationReport {
    /// UID of the migration object.
    pub uid: String,
    /// When it began, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timestamp: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_timestamp: Option<String>,
    /// It ended without success.
    pub failed: bool,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failure_reason: String,
    /// `Aborting`, `Succeeded` or `Failed`, if somebody cancelled it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub abort_status: String,
    /// `PreCopy`, `PostCopy` or `Paused`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mode: String,
    /// Bytes moved, left and in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<MigrationProgress>,
    /// Milliseconds that the guest stood still.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downtime_ms: Option<u64>,
}

/// Bytes of a migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MigrationProgress {
    /// Bytes moved.
    pub transferred: u64,
    /// Bytes left.
    pub remaining: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Whether something was done, and if not, why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Outcome {
    /// It was done.
    pub succeeded: bool,
    /// Why not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A job on the machine, such as a memory dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobReport {
    /// File or name that it is known by.
    pub name: String,
    /// When it began, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timestamp: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_timestamp: Option<String>,
    /// It ended.
    pub completed: bool,
    /// It ended without success.
    pub failed: bool,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failure_reason: String,
}

/// A backup of the machine's disks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupReport {
    /// How far it is.
    #[serde(flatten)]
    pub job: JobReport,
    /// `Push` or `Pull`.
    pub mode: String,
    /// Checkpoint that was made with it, from which a later one can start.
    pub checkpoint: String,
    /// The disks in it.
    pub volumes: Vec<BackupVolume>,
    /// Whether the guest held its file systems still at its start: `Succeeded`, `Failed` or `Skipped`.
    pub quiesce: String,
    /// Why the guest did not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub quiesce_message: String,
}

/// A disk in a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupVolume {
    /// Name of the volume.
    pub volume_name: String,
    /// Name that the guest is likely to give its disk.
    pub disk_target: String,
}

impl State {
    /// Whether QEMU is there.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Running | Self::Paused | Self::ShuttingDown | Self::Suspended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_and_fields_are_passed_over() {
        let text = r#"{"metadata":{"name":"web","later":1},"status":{"status":"Dreaming","reason":"Bored"},"more":{}}"#;
        let report: DomainReport = serde_json::from_str(text).unwrap();
        assert_eq!((report.status.status, report.status.reason), (State::Unknown, Reason::Unknown));
        assert_eq!(report.metadata.name, "web");
    }

    #[test]
    fn words_are_kubevirts() {
        let words = |state: State, reason: Reason| serde_json::to_string(&(state, reason)).unwrap();
        assert_eq!(words(State::Suspended, Reason::IoError), r#"["PMSuspended","IOError"]"#);
        assert_eq!(words(State::ShuttingDown, Reason::NonExistent), r#"["ShuttingDown","NonExistent"]"#);
    }
}
