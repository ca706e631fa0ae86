//! The guest's memory: how much there is, more of it, less of it.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Machine;
use crate::qmp::{NoArguments, QmpError};

/// How much memory the machine has, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MemorySize {
    /// From the start.
    #[serde(rename = "base-memory")]
    pub base: u64,
    /// Plugged since.
    #[serde(default, rename = "plugged-memory")]
    pub plugged: u64,
}

/// A memory device: a DIMM (`dimm`), a `virtio-mem`, …
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "Tagged")]
pub struct MemoryDevice {
    /// What it is.
    pub kind: String,
    /// Its id.
    pub id: Option<String>,
    /// How much of it the guest has, in bytes.
    pub size: u64,
    /// How much of it the guest should have, for virtio-mem.
    pub requested_size: Option<u64>,
    /// How much of it the guest can have, for virtio-mem.
    pub max_size: Option<u64>,
}

#[derive(Deserialize)]
struct Tagged {
    #[serde(rename = "type")]
    kind: String,
    data: Sizes,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sizes {
    id: Option<String>,
    #[serde(default)]
    size: u64,
    requested_size: Option<u64>,
    max_size: Option<u64>,
}

impl From<Tagged> for MemoryDevice {
    fn from(Tagged { kind, data }: Tagged) -> Self {
        let Sizes { id, size, requested_size, max_size } = data;
        Self { kind, id, size, requested_size, max_size }
    }
}

/// What the guest's balloon driver tells of its memory, in bytes where not counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the balloon's own")]
pub struct GuestMemoryStats {
    pub swap_in: Option<u64>,
    pub swap_out: Option<u64>,
    pub major_faults: Option<u64>,
    pub minor_faults: Option<u64>,
    pub free: Option<u64>,
    pub total: Option<u64>,
    pub available: Option<u64>,
    pub disk_caches: Option<u64>,
    pub hugetlb_allocations: Option<u64>,
    pub hugetlb_failures: Option<u64>,
    /// When the guest told, in seconds since 1970; zero if it never has.
    pub last_update: u64,
}

impl Machine {
    /// How much memory the machine has.
    pub async fn memory_size(&self) -> Result<MemorySize, QmpError> {
        self.qmp.call("query-memory-size-summary", NoArguments {}).await
    }

    /// Its memory devices.
    pub async fn memory_devices(&self) -> Result<Vec<MemoryDevice>, QmpError> {
        self.qmp.call("query-memory-devices", NoArguments {}).await
    }

    /// Plugs a DIMM whose memory comes from an object, made of the given properties and removed if the DIMM
    /// does not fit.
    pub async fn plug_dimm(&self, id: &str, mut backend: Value) -> Result<(), QmpError> {
        let memory = format!("mem-{id}");
        backend["id"] = json!(memory);
        self.add_object(backend).await?;
        let plugged = self.plug(json!({ "driver": "pc-dimm", "id": id, "memdev": memory })).await;
        if plugged.is_err() {
            self.remove_object(&memory).await?;
        }
        plugged
    }

    /// Asks the guest to take so much of a virtio-mem device. [`crate::qmp::Event::MemoryDeviceSizeChange`]
    /// tells when it does.
    pub async fn request_memory(&self, id: &str, bytes: u64) -> Result<(), QmpError> {
        self.set_property(&format!("/machine/peripheral/{id}"), "requested-size", bytes).await
    }

    /// Asks the balloon to leave the guest so much memory.
    pub async fn set_balloon(&self, bytes: u64) -> Result<(), QmpError> {
        self.qmp.run("balloon", json!({ "value": bytes })).await
    }

    /// How much memory the balloon leaves the guest.
    pub async fn balloon(&self) -> Result<u64, QmpError> {
        #[derive(Deserialize)]
        struct Balloon {
            actual: u64,
        }
        self.qmp.call::<Balloon>("query-balloon", NoArguments {}).await.map(|told| told.actual)
    }

    /// Lets the balloon of that id ask the guest for its statistics every so many seconds; zero is never.
    pub async fn set_memory_stats_period(&self, balloon: &str, seconds: u32) -> Result<(), QmpError> {
        let path = format!("/machine/peripheral/{balloon}");
        self.set_property(&path, "guest-stats-polling-interval", seconds).await
    }

    /// What the guest told last of its memory.
    pub async fn guest_memory_stats(&self, balloon: &str) -> Result<GuestMemoryStats, QmpError> {
        let path = format!("/machine/peripheral/{balloon}");
        let told: Value = self.property(&path, "guest-stats").await?;
        let stat = |name: &str| told["stats"][name].as_u64().filter(|value| *value != u64::MAX);
        Ok(GuestMemoryStats {
            swap_in: stat("stat-swap-in"),
            swap_out: stat("stat-swap-out"),
            major_faults: stat("stat-major-faults"),
            minor_faults: stat("stat-minor-faults"),
            free: stat("stat-free-memory"),
            total: stat("stat-total-memory"),
            available: stat("stat-available-memory"),
            disk_caches: stat("stat-disk-caches"),
            hugetlb_allocations: stat("stat-htlb-pgalloc"),
            hugetlb_failures: stat("stat-htlb-pgfail"),
            last_update: told["last-update"].as_u64().unwrap_or(0),
        })
    }
}
