//! Where an instance may run: affinity and spreading, by the rules of Kubernetes.

pub(crate) mod affinity;
mod spread;

use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use crate::{Path, Problems};

/// Everything that is wrong.
pub(super) fn check(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    if let Some(affinity) = &spec.affinity {
        affinity::check(path, affinity, problems);
    }
    let spread = spec.topology_spread_constraints.as_deref().unwrap_or_default();
    spread::check(&path.at("topologySpreadConstraints"), spread, problems);
}
