//! Volumes of a VMI, made ready before its machine starts.
//!
//! [`plan`] decides what must be made, from the VMI alone; [`carry_out`] makes it and tells what it found out about
//! each volume. Both work through all volumes and tell all that is wrong at once. Everything here blocks, so an async
//! caller uses `spawn_blocking`; files are streamed, whatever their size.

mod carry_out;
mod claims;
mod cloud_init;
mod container;
mod error;
mod isos;
mod plan;
mod source;
mod storage_facts;
#[cfg(test)]
mod tests;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_disk_image::Allowance;
use kubevirt_domain::Layout;

pub use carry_out::{Note, Prepared, carry_out};
pub use claims::ClaimImage;
pub use cloud_init::{DataSource, Device, Machine, Part, Seed, SeedData, SeedPlan, tagged_devices};
pub use error::{Problem, VolumeError};
pub use plan::{ImageFile, Preparation, Work, plan};
pub use storage_facts::volume_facts;

/// What volumes are made ready for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// A machine that starts here.
    #[default]
    Start,
    /// A machine that comes from another node: what the launcher makes itself is copied from there.
    MigrationTarget,
    /// A machine that runs: only volumes that were added to it meanwhile are new, and claims may have grown.
    Hotplug,
}

/// What must be known to make volumes ready.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The VMI.
    pub vmi: &'a VirtualMachineInstance,
    /// Where files lie.
    pub layout: &'a Layout,
    /// What for.
    pub purpose: Purpose,
    /// How much less than asked new images may get.
    pub allowance: Allowance,
}

/// KubeVirt's default of how much less than asked new images may get.
pub const DEFAULT_ALLOWANCE: Allowance = Allowance { reserve: 128 << 10, tolerated_percent: 10 };

impl<'a> Request<'a> {
    /// A request for a machine that starts here.
    pub fn start(vmi: &'a VirtualMachineInstance, layout: &'a Layout) -> Self {
        Self { vmi, layout, purpose: Purpose::Start, allowance: DEFAULT_ALLOWANCE }
    }
}

/// Makes all volumes ready: [`plan`], then [`carry_out`].
pub fn prepare(request: &Request<'_>) -> Result<Prepared, Vec<VolumeError>> {
    carry_out(&plan(request)?, request.allowance)
}
