//! The feature gates of the cluster, which all tests share.

use anyhow::Result;
use serde_json::{Value, json};
use test_kit::Test;
use tokio::sync::RwLock;
use xtask::install::NAMESPACE;

/// Held by whoever counts on the usual gates, for reading, and by whoever closes one, for writing.
pub static USUAL: RwLock<()> = RwLock::const_new(());

/// Gates that some tests need and no test minds.
const OPEN: [&str; 7] = [
    "DownwardMetrics",
    "HostDisk",
    "IncrementalBackup",
    "ObjectGraph",
    "UtilityVolumes",
    "VSOCK",
    "WorkloadEncryptionSEV",
];

/// Opens all gates that tests need, and closes these. Who applies something right after that may be refused at first.
pub fn close(test: &Test, closed: &[&str]) -> Result<()> {
    let gates = json!({"featureGates": OPEN, "disabledFeatureGates": closed});
    configure(test, &json!({"developerConfiguration": gates}))
}

/// Merges into the configuration of the cluster.
pub fn configure(test: &Test, configuration: &Value) -> Result<()> {
    let patch = json!({"spec": {"configuration": configuration}}).to_string();
    let patch =
        ["patch", "kubevirt", "kubevirt", "--namespace", NAMESPACE, "--type=merge", "--patch", &patch];
    test.cluster().kubectl(&patch).map(drop)
}

/// Opens all gates that tests need.
pub fn open(test: &Test) -> Result<()> {
    close(test, &[])
}
