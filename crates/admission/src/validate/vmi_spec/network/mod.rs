//! Rules.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use crate::{Context, Path, Problems};

/// Everything that is wrong.
pub fn check(
    _cx: &Context<'_>,
    _path: &Path<'_>,
    _spec: &VirtualMachineInstanceSpec,
    _problems: &mut Problems,
) {
}
