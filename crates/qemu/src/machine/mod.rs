//! What one does to a running QEMU.

mod bitmap;
mod block;
mod cpu;
mod device;
mod display;
mod dump;
mod export;
mod host;
mod job;
mod job_kinds;
mod medium;
mod memory;
mod net;
mod power;
mod properties;
mod stats;
mod words;

pub use bitmap::Bitmap;
pub use block::{BlockNode, Throttle};
pub use cpu::{CpuSlot, CpuThread, IoThread};
pub use device::UnplugError;
pub use display::ImageFormat;
pub use dump::{Dump, DumpError, DumpFormat, DumpProgress};
pub use host::{CpuDefinition, CpuModel, Expansion, MachineType, Sev};
pub use job::{Job, JobError, JobInfo, JobStatus};
pub use job_kinds::{Backup, Mirror, Sync};
pub use medium::BlockDevice;
pub use memory::{GuestMemoryStats, MemoryDevice, MemorySize};
pub use power::{OnEvent, RunState};
pub use stats::{BlockStats, DirtyRate, Named, Stat};
pub(crate) use words::words;

use crate::qmp::{Events, Qmp};

/// A running QEMU, seen through its monitor. Clones share the connection.
#[derive(Debug, Clone)]
pub struct Machine {
    qmp: Qmp,
}

impl Machine {
    /// The machine behind a monitor.
    pub fn new(qmp: Qmp) -> Self {
        Self { qmp }
    }

    /// Its monitor, for whatever has no method here.
    pub fn qmp(&self) -> &Qmp {
        &self.qmp
    }

    /// Listens to all events from now on.
    pub fn events(&self) -> Events {
        self.qmp.events()
    }

    /// The same machine with another deadline for replies.
    pub fn patient(&self, patience: std::time::Duration) -> Self {
        Self { qmp: self.qmp.patient(patience) }
    }
}
