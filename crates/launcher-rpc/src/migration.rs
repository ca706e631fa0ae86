//! How a machine is moved to another node.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// One of the connections between two launchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// What the launchers say to each other.
    Control,
    /// The guest's memory and the state of its devices.
    Memory,
    /// The content of its disks.
    Disks,
}

impl Stream {
    /// The number that stands for it in names of sockets and in the VMI's map of ports; 0 for the first.
    pub fn port(self) -> u16 {
        match self {
            Self::Control => 0,
            Self::Memory => 49152,
            Self::Disks => 49153,
        }
    }

    /// Its socket in the folder that a launcher shares with its handler.
    ///
    /// The target's launcher or QEMU listens there. On the other side the source's handler does, so that the names
    /// are the same at both ends. The key is the UID of the VMI on the source.
    pub fn socket(self, share: &Path, key: &str) -> PathBuf {
        let number = if self == Self::Control { String::new() } else { format!("-{}", self.port()) };
        share.join(SOCKETS).join(format!("{key}{number}-source.sock"))
    }
}

/// Folder of the sockets in the folder that launcher and handler share.
pub const SOCKETS: &str = "migrationproxy";

/// Limits and permissions of one migration. Names are those of KubeVirt, which writes them with capitals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct MigrationOptions {
    /// Bytes per second as a quantity; 0 for no limit.
    pub bandwidth: String,
    /// Seconds without progress before it is given up.
    pub progress_timeout: i64,
    /// Seconds for each GiB to move before it is given up or forced.
    #[serde(rename = "CompletionTimeoutPerGiB")]
    pub completion_timeout_per_gib: i64,
    /// Milliseconds that the guest may stand still in the end; 0 for QEMU's own choice.
    pub max_downtime_ms: u64,
    /// Move even if storage is not known to be shared.
    pub unsafe_migration: bool,
    /// Slow the guest down if it writes faster than memory moves.
    pub allow_auto_converge: bool,
    /// Let the guest run on the target before all memory has arrived.
    pub allow_post_copy: bool,
    /// Connections that move memory side by side.
    pub parallel_migration_threads: Option<u32>,
    /// Pause the guest rather than give up.
    pub allow_workload_disruption: bool,
    /// Compression of the stream between several connections.
    pub compression: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{MigrationOptions, Stream};

    #[test]
    fn sockets_have_kubevirts_names() {
        let name = |stream: Stream| stream.socket(Path::new("/run"), "ad00").display().to_string();
        assert_eq!(name(Stream::Control), "/run/migrationproxy/ad00-source.sock");
        assert_eq!(name(Stream::Memory), "/run/migrationproxy/ad00-49152-source.sock");
        assert_eq!(name(Stream::Disks), "/run/migrationproxy/ad00-49153-source.sock");
    }

    #[test]
    fn options_are_read_as_kubevirt_writes_them() {
        let text = r#"{"Bandwidth":"64Mi","ProgressTimeout":150,"CompletionTimeoutPerGiB":800,"MaxDowntimeMs":300,
            "UnsafeMigration":false,"AllowAutoConverge":true,"AllowPostCopy":false,"ParallelMigrationThreads":null,
            "AllowWorkloadDisruption":false,"StallDetectorOptions":null,"Compression":"zstd"}"#;
        let options: MigrationOptions = serde_json::from_str(text).unwrap();
        let expected = MigrationOptions {
            bandwidth: "64Mi".into(),
            progress_timeout: 150,
            completion_timeout_per_gib: 800,
            max_downtime_ms: 300,
            allow_auto_converge: true,
            compression: Some("zstd".into()),
            ..MigrationOptions::default()
        };
        assert_eq!(options, expected);
    }
}
