//! KVM is proved, not assumed: a device may be there and still not run a guest.
//!
//! On some nested hosts each instruction of a guest is emulated, SSE ends in an internal error, and a machine that was
//! started with KVM hangs without a word. So a tiny guest has to run before anything is promised.

mod abilities;
mod accelerator;
#[cfg(any(not(target_arch = "x86_64"), test))]
mod create;
#[cfg(target_arch = "x86_64")]
mod guest;
#[cfg(target_arch = "x86_64")]
mod trial;

use std::fmt;
use std::path::Path;

pub use abilities::{Abilities, TimeStampCounter, abilities};
pub use accelerator::{Accelerator, NoAccelerator, accelerator};
#[cfg(not(target_arch = "x86_64"))]
use create::attempt;
#[cfg(target_arch = "x86_64")]
use trial::attempt;

use crate::device::{self, Device};

/// Where the kernel has KVM.
const DEVICE: &str = "/dev/kvm";

/// What became of the attempt to run a guest with KVM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kvm {
    /// A guest ran.
    Usable,
    /// There is no device.
    Missing,
    /// There is a device, but guests do not run.
    Unusable {
        /// What was tried and how it ended.
        reason: String,
    },
}

impl fmt::Display for Kvm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usable => write!(f, "KVM is usable"),
            Self::Missing => write!(f, "there is no {DEVICE}"),
            Self::Unusable { reason } => write!(f, "{DEVICE} is unusable: {reason}"),
        }
    }
}

/// Runs a tiny guest and says how it went. Blocks for some milliseconds, on a broken host up to three
/// seconds.
pub fn probe() -> Kvm {
    probe_device(Path::new(DEVICE))
}

/// The same with a device node elsewhere, such as the one of the host as a container sees it.
pub fn probe_device(path: &Path) -> Kvm {
    match device::check(path) {
        Device::Usable => attempt(path).map_or_else(|reason| Kvm::Unusable { reason }, |()| Kvm::Usable),
        Device::Missing => Kvm::Missing,
        Device::Unusable { reason } => Kvm::Unusable { reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_a_device_that_is_kvm() {
        assert_eq!(probe_device(Path::new("/dev/no-such-device")), Kvm::Missing);
        let Kvm::Unusable { reason } = probe_device(Path::new("/dev/null")) else {
            panic!("/dev/null is no KVM")
        };
        assert!(reason.contains("version"), "{reason}");
    }

    /// Whatever this host is like, the probe ends by itself.
    #[test]
    fn ends_on_this_host() {
        let kvm = probe();
        println!("{kvm}");
        assert!(Path::new(DEVICE).exists() || kvm == Kvm::Missing, "{kvm}");
    }
}
