//! What a virtual machine asks for and this host, this QEMU or this program cannot do.

use serde::{Deserialize, Serialize};

/// One wish that cannot be met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct Unsupported {
    /// Path of the field in the VMI, such as `spec.domain.devices.disks[0].cache`.
    pub field: String,
    /// Why it cannot be done, in words for the user.
    pub reason: String,
}

/// Everything that stands in the way of turning a VMI into a domain, all at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", join(.problems))]
pub struct ConvertError {
    /// The wishes that cannot be met; never empty.
    pub problems: Vec<Unsupported>,
}

/// One line with all problems.
fn join(problems: &[Unsupported]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
