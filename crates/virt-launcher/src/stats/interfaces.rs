//! Counters of the interfaces, which the kernel keeps at the tap devices.

use std::path::Path;

use kubevirt_domain::Domain;
use kubevirt_domain::domain::network::NetBackend;
use kubevirt_launcher_rpc::stats::InterfaceStats;

/// The interfaces of a domain that are wired to taps.
pub(super) fn all(domain: &Domain) -> Vec<InterfaceStats> {
    let taps = domain.interfaces.iter().filter_map(|interface| match &interface.backend {
        NetBackend::Tap { name, .. } => Some((&interface.name, name)),
        NetBackend::VhostUser { .. } => None,
    });
    taps.filter_map(|(name, tap)| {
        let folder = Path::new("/sys/class/net").join(tap).join("statistics");
        let counted =
            of_guest(|counter| std::fs::read_to_string(folder.join(counter)).ok()?.trim().parse().ok())?;
        Some(InterfaceStats { name: name.clone(), device: tap.clone(), ..counted })
    })
    .collect()
}

/// What the guest received is what its tap sent, and the reverse.
fn of_guest(tap: impl Fn(&str) -> Option<u64>) -> Option<InterfaceStats> {
    Some(InterfaceStats {
        received_bytes: tap("tx_bytes")?,
        received_packets: tap("tx_packets")?,
        received_errors: tap("tx_errors")?,
        received_dropped: tap("tx_dropped")?,
        sent_bytes: tap("rx_bytes")?,
        sent_packets: tap("rx_packets")?,
        sent_errors: tap("rx_errors")?,
        sent_dropped: tap("rx_dropped")?,
        ..InterfaceStats::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tap_sends_the_guest_receives() {
        let tap = |counter: &str| match counter {
            "tx_bytes" => Some(10),
            "rx_bytes" => Some(20),
            "tx_dropped" => Some(3),
            _ => Some(0),
        };
        let guest = of_guest(tap).unwrap();
        assert_eq!((guest.received_bytes, guest.sent_bytes, guest.received_dropped), (10, 20, 3));
        assert_eq!(of_guest(|_| None), None);
    }
}
