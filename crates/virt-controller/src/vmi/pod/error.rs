//! Why a VMI can have no pod, or none yet.

use kubevirt_domain::Unsupported;

/// What stands in the way of a pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPod {
    /// A claim that a volume names is not there; it may come.
    #[error("the PersistentVolumeClaim {0} is not there")]
    MissingClaim(String),
    /// The claim that holds the state of the machine's firmware and TPM is not there; the controller makes it.
    #[error("the claim for the state of firmware and TPM is not there yet")]
    MissingStateClaim,
    /// What is known of a network's NetworkAttachmentDefinition is not there; it may come.
    #[error("the NetworkAttachmentDefinition {0} is not there")]
    MissingNetwork(String),
    /// The handler has not told yet how SELinux confines the machine.
    #[error("the SELinux context of the machine is not known yet")]
    MissingSelinuxContext,
    /// The VMI asks for what this program cannot do: the words are for its condition `Synchronized`.
    #[error("{}", join(.0))]
    Unsupported(Vec<Unsupported>),
}

fn join(problems: &[Unsupported]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl NoPod {
    /// One wish that cannot be met.
    pub(super) fn unsupported(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unsupported(vec![Unsupported { field: field.into(), reason: reason.into() }])
    }
}
