//! What can go wrong while a pod's network is wired up.

use std::io;

use rustix::io::Errno;

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

impl NetworkError {
    /// Whether the same wish would come to the same end again: it makes no network, or the kernel refuses it.
    pub fn is_final(&self) -> bool {
        match self {
            Self::MissingInterface { .. } | Self::Namespace(_) | Self::Observe { .. } => false,
            Self::Forgotten { .. }
            | Self::SmallRange { .. }
            | Self::TwoMasquerades { .. }
            | Self::LongName(_) => true,
            Self::Change { source, .. } => !may_pass(source),
        }
    }
}

/// Whether the system only lacked something, or was busy, when it said no.
pub(crate) fn may_pass(error: &io::Error) -> bool {
    const LACKS: [Errno; 7] =
        [Errno::AGAIN, Errno::BUSY, Errno::INTR, Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    let code = error.raw_os_error();
    error.kind() == io::ErrorKind::ResourceBusy || LACKS.iter().any(|lack| code == Some(lack.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_become_better_is_final() {
        let network = || "default".to_owned();
        let refused = |error: Errno| NetworkError::Change { step: "add a tap".into(), source: error.into() };
        let busy = io::Error::new(io::ErrorKind::ResourceBusy, "the list changed whenever it was read");
        for (error, expected) in [
            (NetworkError::MissingInterface { network: network(), tried: vec!["eth0".into()] }, false),
            (NetworkError::Namespace(Errno::INVAL.into()), false),
            (NetworkError::Observe { what: "links", source: Errno::INVAL.into() }, false),
            (NetworkError::Forgotten { network: network(), interface: "eth0".into() }, true),
            (NetworkError::SmallRange { network: network(), range: "10.0.0.0/31".into() }, true),
            (NetworkError::TwoMasquerades { first: network(), second: "other".into() }, true),
            (NetworkError::LongName("an-interface-name".into()), true),
            (refused(Errno::OPNOTSUPP), true),
            (refused(Errno::PERM), true),
            (refused(Errno::INVAL), true),
            (refused(Errno::BUSY), false),
            (refused(Errno::NOMEM), false),
            (refused(Errno::MFILE), false),
            (NetworkError::Change { step: "read links".into(), source: busy }, false),
        ] {
            assert_eq!(error.is_final(), expected, "{error}");
        }
    }
}
