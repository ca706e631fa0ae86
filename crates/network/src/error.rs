//! What can go wrong while a pod's network is wired up.

use std::io;

/// Why phase 1 could not wire up a network.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The pod does not have the interface (yet): a hot-plugged one may still come.
    #[error("the pod has no interface for network {network} (looked for {})", tried.join(", "))]
    MissingInterface {
        /// The network whose interface is missing.
        network: String,
        /// The names that it could have had.
        tried: Vec<String>,
    },
    /// The interface was taken apart by an earlier run, and what it was like is not known any more.
    #[error(
        "interface {interface} of network {network} was rewired before, and its address is not known any more"
    )]
    Forgotten {
        /// The network of the interface.
        network: String,
        /// The interface.
        interface: String,
    },
    /// A range for guests has no room for a gateway and a guest.
    #[error("range {range} of network {network} is too small: it needs four addresses")]
    SmallRange {
        /// The network of the range.
        network: String,
        /// The range.
        range: String,
    },
    /// More than one interface wants to masquerade, and there is one pod address to hide behind.
    #[error("networks {first} and {second} both masquerade: one can")]
    TwoMasquerades {
        /// The network that comes first.
        first: String,
        /// The other one.
        second: String,
    },
    /// The pod's interface has a name that leaves no room for the names derived from it.
    #[error("the name {0} is too long for an interface")]
    LongName(String),
    /// The network namespace cannot be entered.
    #[error("cannot enter the network namespace: {0}")]
    Namespace(#[source] io::Error),
    /// The kernel did not tell what is there.
    #[error("cannot read {what}: {source}")]
    Observe {
        /// What was to be read.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel refused a change.
    #[error("cannot {step}: {source}")]
    Change {
        /// The change, as in [`crate::phase1::Step`].
        step: String,
        /// What the kernel said.
        source: io::Error,
    },
}
