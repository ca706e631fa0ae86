//! What an unprivileged launcher may do nonetheless.

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// Takes the right to listen at low ports, as DHCP does, if the pod permits it.
///
/// It is permitted through the file of the program, and only permitted: a file that insisted on it could not be run
/// in containers that may do nothing at all. It is not passed on, for QEMU does not need it.
pub(crate) fn take_low_ports() {
    let outcome = capabilities(None).and_then(|mut sets| {
        let right = CapabilitySet::NET_BIND_SERVICE;
        if !sets.permitted.contains(right) || sets.effective.contains(right) {
            return Ok(());
        }
        sets.effective |= right;
        set_capabilities(None, sets)
    });
    if let Err(error) = outcome {
        tracing::warn!(%error, "low ports cannot be listened at");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rights are a matter of each thread, so that no other test is touched.
    #[test]
    fn what_is_permitted_is_taken() {
        let right = CapabilitySet::NET_BIND_SERVICE;
        let mut sets = capabilities(None).unwrap();
        let permitted = sets.permitted.contains(right);
        sets.effective -= right;
        set_capabilities(None, sets).unwrap();
        take_low_ports();
        assert_eq!(capabilities(None).unwrap().effective.contains(right), permitted);
    }
}
