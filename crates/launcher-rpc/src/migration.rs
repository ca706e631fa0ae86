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
    /// How to tell that a guest writes faster than its memory moves; the older way if there are none.
    pub stall_detector_options: Option<StallDetectorOptions>,
    /// Compression of the stream between several connections.
    pub compression: Option<String>,
}

/// When a migration counts as stalled, and what is done then. The defaults are KubeVirt's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct StallDetectorOptions {
    /// Share by which less must be left for it to count as progress.
    pub stall_margin: f64,
    /// Seconds without progress.
    pub stall_progress_timeout: u64,
    /// Seconds that a guest may take to move once it was told to.
    pub switchover_timeout: u64,
    /// Weight of the newest measurement of the speed.
    pub ewma_alpha: f64,
    /// How many times the longest pause is still tried.
    pub precopy_possible_factor: f64,
    /// By how much patience shrinks each time.
    pub patience_window_decay_factor: f64,
    /// Wait for a moment when little is left.
    pub search_local_minima: bool,
    /// How many times the time for all of it a forced move may take.
    pub completion_timeout_factor: f64,
}

impl Default for StallDetectorOptions {
    fn default() -> Self {
        Self {
            stall_margin: 0.04,
            stall_progress_timeout: 40,
            switchover_timeout: 60,
            ewma_alpha: 0.4,
            precopy_possible_factor: 1.5,
            patience_window_decay_factor: 0.5,
            search_local_minima: true,
            completion_timeout_factor: 2.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{MigrationOptions, StallDetectorOptions, Stream};

    #[test]
    fn sockets_have_kubevirts_names() {
        let name = |stream: Stream| stream.socket(Path::new("/run"), "ad00").display().to_string();
        assert_eq!(name(Stream::Control), "/run/migrationproxy/ad00-source.sock");
        assert_eq!(name(Stream::Memory), "/run/migrationproxy/ad00-49152-source.sock");
        assert_eq!(name(Stream::Disks), "/run/migrationproxy/ad00-49153-source.sock");
    }

    #[test]
    fn stalls_are_read_as_kubevirt_writes_them() {
        let text = r#"{"StallDetectorOptions":{"StallMargin":0.1,"StallProgressTimeout":20,"SwitchoverTimeout":30,
            "EwmaAlpha":0.5,"PrecopyPossibleFactor":2,"PatienceWindowDecayFactor":0.25,"SearchLocalMinima":false,
            "CompletionTimeoutFactor":3}}"#;
        let options: MigrationOptions = serde_json::from_str(text).unwrap();
        let expected = StallDetectorOptions {
            stall_margin: 0.1,
            stall_progress_timeout: 20,
            switchover_timeout: 30,
            ewma_alpha: 0.5,
            precopy_possible_factor: 2.0,
            patience_window_decay_factor: 0.25,
            search_local_minima: false,
            completion_timeout_factor: 3.0,
        };
        assert_eq!(options.stall_detector_options, Some(expected));
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
