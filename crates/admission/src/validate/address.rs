//! How MAC addresses, PCI addresses and IP addresses are written.

use std::net::IpAddr;

/// Whether the text is a 48-bit MAC address: `02:00:00:12:34:56`, with dashes, or `0200.0012.3456`.
pub(crate) fn is_mac(text: &str) -> bool {
    match text.as_bytes().get(2) {
        Some(b':') => is_hex_groups(text, ':', 6, 2),
        Some(b'-') => is_hex_groups(text, '-', 6, 2),
        _ => is_hex_groups(text, '.', 3, 4),
    }
}

/// Whether the text is a PCI address: `0000:81:01.0`.
pub(crate) fn is_pci(text: &str) -> bool {
    let Some((device, function)) = text.rsplit_once('.') else { return false };
    let mut parts = device.split(':');
    let mut next_is_hex = |digits| parts.next().is_some_and(|part| is_hex(part, digits));
    let is_device = next_is_hex(4) && next_is_hex(2) && next_is_hex(2);
    is_device && parts.next().is_none() && matches!(function.as_bytes(), [b'0'..=b'7'])
}

/// Whether the text is an IPv4 address, be it written as one that is mapped into IPv6.
pub(crate) fn is_ipv4(text: &str) -> bool {
    match ip(text) {
        Some(IpAddr::V4(_)) => true,
        Some(IpAddr::V6(address)) => address.to_ipv4_mapped().is_some(),
        None => false,
    }
}

/// Reads an IP address. Zeros before the numbers of IPv4 do not count: `010` is ten, as Kubernetes has it.
pub(crate) fn ip(text: &str) -> Option<IpAddr> {
    let number = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    let plain = || text.split('.').map(number).collect::<Vec<_>>().join(".");
    text.parse().ok().or_else(|| plain().parse().ok().map(IpAddr::V4))
}

fn is_hex_groups(text: &str, separator: char, groups: usize, digits: usize) -> bool {
    let mut found = 0;
    text.split(separator).all(|group| {
        found += 1;
        is_hex(group, digits)
    }) && found == groups
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::{ip, is_ipv4, is_mac, is_pci};

    #[test]
    fn a_mac_address_has_six_bytes_and_one_kind_of_separator() {
        for good in ["02:00:00:12:34:56", "DE-AD-be-ef-00-01", "0200.0012.3456"] {
            assert!(is_mac(good), "{good}");
        }
        for bad in [
            "02:00:00:12:34",
            "02:00:00:12:34:5",
            "02:00:00:12:34:567",
            "02:00:00-12:34:56",
            "02:00:00:00:fe:00:00:01",
            "zz:00:00:12:34:56",
            "020000123456",
            "0200.0012",
            "+2:00:00:12:34:56",
            "é0:00:00:12:34:56",
            " 02:00:00:12:34:56",
        ] {
            assert!(!is_mac(bad), "{bad}");
        }
    }

    #[test]
    fn a_pci_address_has_domain_bus_slot_and_function() {
        for good in ["0000:81:01.0", "ABcd:0f:1F.7"] {
            assert!(is_pci(good), "{good}");
        }
        for bad in [
            "0000:81:01.8",
            "0000:81:01",
            "81:01.0",
            "0000:81:01:02.0",
            "0000:8:01.0",
            "0000:81:01.00",
            "",
            "0000:81:0g.0",
            "0000-81:01.0",
            "0000:81:01:0",
        ] {
            assert!(!is_pci(bad), "{bad}");
        }
    }

    #[test]
    fn an_ipv4_address_may_be_mapped_into_ipv6() {
        for good in ["192.0.2.1", "192.0.02.1", "::ffff:192.0.2.1"] {
            assert!(is_ipv4(good), "{good}");
        }
        for bad in ["2001:db8::1", "192.0.2", "192.0.2.256", "time.example", "", "::192.0.2.1"] {
            assert!(!is_ipv4(bad), "{bad}");
        }
    }

    #[test]
    fn zeros_before_numbers_do_not_count() {
        let cases = [
            ("127.0.0.1", Some("127.0.0.1")),
            ("0127.0.0.3", Some("127.0.0.3")),
            ("10.010.000.00", Some("10.10.0.0")),
            ("fd00::a", Some("fd00::a")),
            ("10.10.10", None),
            ("10..10.10", None),
            ("10.0400.0.1", None),
            ("10.0x1.0.1", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(ip(text).map(|address| address.to_string()).as_deref(), expected, "{text:?}");
        }
    }
}
