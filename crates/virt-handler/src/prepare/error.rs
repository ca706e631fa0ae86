//! Why a pod is not ready.

use std::fmt::Display;

/// Why a pod is not ready.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// Something that others make is not there yet: try again soon.
    #[error("{0}")]
    NotYet(String),
    /// It does not work.
    #[error("{reason}")]
    Failed {
        /// Why, for the user.
        reason: String,
    },
    /// It will never work in this pod.
    #[error("{0}")]
    Hopeless(String),
}

/// It does not work.
pub(crate) fn failed(reason: impl Display) -> PrepareError {
    PrepareError::Failed { reason: reason.to_string() }
}

/// It will never work in this pod.
pub(crate) fn hopeless(reason: impl Display) -> PrepareError {
    PrepareError::Hopeless(reason.to_string())
}
