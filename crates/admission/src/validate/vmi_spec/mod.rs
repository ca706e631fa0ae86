//! The specification of an instance, as instances, virtual machines, replica sets and pools hold it.

pub mod domain;
mod image_path;
pub mod network;
pub mod storage;

use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use crate::{Context, Path, Problems};

/// Everything that is wrong with the specification of an instance that stands at `path`.
pub fn check(cx: &Context<'_>, path: &Path<'_>, spec: &VirtualMachineInstanceSpec) -> Problems {
    let mut problems = Problems::default();
    domain::check(cx, path, spec, &mut problems);
    storage::check(cx, path, spec, &mut problems);
    network::check(cx, path, spec, &mut problems);
    problems
}
