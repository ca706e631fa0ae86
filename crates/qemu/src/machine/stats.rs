//! Numbers for metrics.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Machine;
use crate::qmp::{NoArguments, QmpError};

/// The counters of a disk.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "Reported")]
#[expect(missing_docs, reason = "the names say it")]
pub struct BlockStats {
    /// The path of its device in QEMU's tree of objects.
    pub qdev: Option<String>,
    pub node: Option<String>,
    pub read_bytes: u64,
    pub write_bytes: u64,
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub read_nanoseconds: u64,
    pub write_nanoseconds: u64,
    pub flush_nanoseconds: u64,
    /// One past the highest byte ever written.
    pub highest_write: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Reported {
    qdev: Option<String>,
    node_name: Option<String>,
    stats: Counters,
}

#[derive(Deserialize)]
struct Counters {
    rd_bytes: u64,
    wr_bytes: u64,
    rd_operations: u64,
    wr_operations: u64,
    flush_operations: u64,
    rd_total_time_ns: u64,
    wr_total_time_ns: u64,
    flush_total_time_ns: u64,
    #[serde(default)]
    wr_highest_offset: u64,
}

impl From<Reported> for BlockStats {
    fn from(Reported { qdev, node_name, stats }: Reported) -> Self {
        Self {
            qdev,
            node: node_name,
            read_bytes: stats.rd_bytes,
            write_bytes: stats.wr_bytes,
            reads: stats.rd_operations,
            writes: stats.wr_operations,
            flushes: stats.flush_operations,
            read_nanoseconds: stats.rd_total_time_ns,
            write_nanoseconds: stats.wr_total_time_ns,
            flush_nanoseconds: stats.flush_total_time_ns,
            highest_write: stats.wr_highest_offset,
        }
    }
}

/// Statistics of one provider for one object.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Stat {
    /// Who counts, `kvm` for one.
    pub provider: String,
    /// Of what, for those of a single CPU.
    pub qom_path: Option<String>,
    /// Names and values.
    pub stats: Vec<Named>,
}

/// One statistic.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// A number, a truth or a histogram.
    pub value: Value,
}

/// How fast the guest writes to its memory.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DirtyRate {
    /// `unstarted`, `measuring` or `measured`.
    pub status: String,
    /// The result in MiB a second, once it is measured.
    #[serde(rename = "dirty-rate")]
    pub mebibytes: Option<u64>,
}

impl Machine {
    /// The counters of all disks.
    pub async fn block_stats(&self) -> Result<Vec<BlockStats>, QmpError> {
        self.qmp.call("query-blockstats", NoArguments {}).await
    }

    /// Statistics of `vm` or each `vcpu`, from QEMU 7.1 on.
    pub async fn stats(&self, target: &str) -> Result<Vec<Stat>, QmpError> {
        self.qmp.call("query-stats", json!({ "target": target })).await
    }

    /// Starts to measure how fast the guest writes to its memory, for so many seconds.
    pub async fn measure_dirty_rate(&self, seconds: u32) -> Result<(), QmpError> {
        self.qmp.run("calc-dirty-rate", json!({ "calc-time": seconds })).await
    }

    /// The result of the last such measurement.
    pub async fn dirty_rate(&self) -> Result<DirtyRate, QmpError> {
        self.qmp.call("query-dirty-rate", NoArguments {}).await
    }
}
