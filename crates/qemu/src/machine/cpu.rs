//! The guest's CPUs: their threads, and plugging more.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Machine;
use crate::qmp::{NoArguments, QmpError};

/// A CPU of the guest and the thread that runs it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CpuThread {
    /// Its number.
    #[serde(rename = "cpu-index")]
    pub index: u32,
    /// The host's thread, for its affinity.
    pub thread_id: i32,
    /// Its path in QEMU's tree of objects.
    pub qom_path: String,
}

/// A thread for I/O.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct IoThread {
    /// Its id.
    pub id: String,
    /// The host's thread, for its affinity.
    pub thread_id: i32,
}

/// A place for CPUs, taken or free.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CpuSlot {
    /// The type of CPU that fits.
    #[serde(rename = "type")]
    pub driver: String,
    /// How many CPUs come at once.
    #[serde(rename = "vcpus-count")]
    pub count: u32,
    /// Where it is: `socket-id`, `core-id`, `thread-id`, …
    pub props: Map<String, Value>,
    /// The path of what sits there, if it is taken.
    #[serde(rename = "qom-path")]
    pub taken: Option<String>,
}

impl CpuSlot {
    /// The id of the device that sits there, if it was plugged with one.
    pub fn id(&self) -> Option<&str> {
        self.taken.as_deref()?.strip_prefix("/machine/peripheral/")
    }
}

impl Machine {
    /// The CPUs and their threads.
    pub async fn cpus(&self) -> Result<Vec<CpuThread>, QmpError> {
        self.qmp.call("query-cpus-fast", NoArguments {}).await
    }

    /// The threads for I/O.
    pub async fn io_threads(&self) -> Result<Vec<IoThread>, QmpError> {
        self.qmp.call("query-iothreads", NoArguments {}).await
    }

    /// All places for CPUs in the order in which they are to be filled.
    pub async fn cpu_slots(&self) -> Result<Vec<CpuSlot>, QmpError> {
        let mut slots: Vec<CpuSlot> = self.qmp.call("query-hotpluggable-cpus", NoArguments {}).await?;
        // QEMU tells the last first.
        slots.reverse();
        Ok(slots)
    }

    /// Plugs a CPU into a free place. Take it out again with [`Machine::unplug`].
    pub async fn plug_cpu(&self, id: &str, slot: &CpuSlot) -> Result<(), QmpError> {
        let mut device = slot.props.clone();
        device.insert("driver".to_owned(), Value::from(slot.driver.as_str()));
        device.insert("id".to_owned(), Value::from(id));
        self.plug(device).await
    }
}
