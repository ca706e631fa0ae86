//! How a machine is moved to another node.

use serde::{Deserialize, Serialize};

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
    use super::MigrationOptions;

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
