//! KVM is proved, not assumed: a device may be there and still not run a guest.
//!
//! On some nested hosts each instruction of a guest is emulated, SSE ends in an internal error, and a machine that was
//! started with KVM hangs without a word. So a tiny guest has to run before anything is promised.

mod accelerator;
#[cfg(not(target_arch = "x86_64"))]
mod create;
#[cfg(target_arch = "x86_64")]
mod guest;
#[cfg(target_arch = "x86_64")]
mod trial;

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;

pub use accelerator::{Accelerator, NoAccelerator, accelerator};
#[cfg(not(target_arch = "x86_64"))]
use create::attempt;
#[cfg(target_arch = "x86_64")]
use trial::attempt;

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

fn probe_device(device: &Path) -> Kvm {
    match open(device) {
        Ok(()) => attempt(device).map_or_else(|reason| Kvm::Unusable { reason }, |()| Kvm::Usable),
        Err(error) => not_opened(&error),
    }
}

fn open(device: &Path) -> io::Result<()> {
    std::fs::OpenOptions::new().read(true).write(true).open(device).map(drop)
}

/// A device file without a driver behind it is as good as none.
fn not_opened(error: &io::Error) -> Kvm {
    let driverless = [libc::ENODEV, libc::ENXIO];
    if error.kind() == ErrorKind::NotFound
        || error.raw_os_error().is_some_and(|code| driverless.contains(&code))
    {
        Kvm::Missing
    } else {
        Kvm::Unusable { reason: format!("it cannot be opened: {error}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_missing_from_closed() {
        for (code, missing) in
            [(libc::ENOENT, true), (libc::ENODEV, true), (libc::ENXIO, true), (libc::EACCES, false)]
        {
            let kvm = not_opened(&io::Error::from_raw_os_error(code));
            assert_eq!(kvm == Kvm::Missing, missing, "{kvm}");
        }
    }

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
