//! Devices that are used by opening them.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Whether a device can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// It can be opened for reading and writing.
    Usable,
    /// It is not there, or has no driver.
    Missing,
    /// It is there, but cannot be opened.
    Unusable {
        /// Why.
        reason: String,
    },
}

/// Opens a device and closes it again.
pub fn check(path: &Path) -> Device {
    opened(OpenOptions::new().read(true).write(true).open(path).map(drop))
}

/// The kernel's own carrier of packets between a tap device and a guest.
pub fn vhost_net() -> Device {
    check(Path::new("/dev/vhost-net"))
}

fn opened(result: io::Result<()>) -> Device {
    let driverless = [libc::ENODEV, libc::ENXIO];
    match result {
        Ok(()) => Device::Usable,
        Err(error) if error.kind() == ErrorKind::NotFound => Device::Missing,
        Err(error) if error.raw_os_error().is_some_and(|code| driverless.contains(&code)) => Device::Missing,
        Err(error) => Device::Unusable { reason: format!("it cannot be opened: {error}") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_missing_from_closed() {
        for (code, missing) in [
            (libc::ENOENT, true),
            (libc::ENODEV, true),
            (libc::ENXIO, true),
            (libc::EACCES, false),
            (libc::EPERM, false),
        ] {
            let device = opened(Err(io::Error::from_raw_os_error(code)));
            assert_eq!(device == Device::Missing, missing, "{device:?}");
        }
    }

    #[test]
    fn opens_real_devices() {
        assert_eq!(check(Path::new("/dev/null")), Device::Usable);
        assert_eq!(check(Path::new("/dev/no-such-device")), Device::Missing);
        assert!(matches!(check(Path::new("/dev")), Device::Unusable { .. }));
        assert!(Path::new("/dev/vhost-net").exists() || vhost_net() == Device::Missing);
    }
}
