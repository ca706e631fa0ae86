//! The options that a guest gets with its address.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::Nic;
use crate::Problems;
use crate::validate::address::is_ipv4;

/// The option numbers that are left to a site.
const PRIVATE: RangeInclusive<i64> = 224..=254;

/// Checks private options, which are reported at the specification as a whole, and time servers.
pub fn check(nic: &Nic<'_>, problems: &mut Problems) {
    let Some(dhcp) = &nic.interface.dhcp_options else { return };
    let name = &nic.interface.name;
    let options = dhcp.private_options.as_deref().unwrap_or_default();
    let mut seen = HashSet::with_capacity(options.len());
    let mut twice = None;
    for option in options {
        if !seen.insert(option.option) {
            twice = Some(option.option);
        }
        if !PRIVATE.contains(&option.option) {
            problems.invalid(
                nic.spec,
                format!(
                    "private DHCP option {} of interface {name:?} is not between {} and {}",
                    option.option,
                    PRIVATE.start(),
                    PRIVATE.end()
                ),
            );
        }
    }
    if let Some(option) = twice {
        problems.invalid(
            nic.spec,
            format!("private DHCP option {option} of interface {name:?} is given more than once"),
        );
    }
    let list = nic.path.at("dhcpOptions.ntpServers");
    for (index, server) in dhcp.ntp_servers.iter().flatten().enumerate() {
        if !is_ipv4(server) {
            problems.invalid(&list.index(index), format!("time server {server:?} is not an IPv4 address"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{refused, with_interface};

    #[test]
    fn dhcp_options_are_private_numbers_and_addresses() {
        let options = |numbers: &[i64]| -> Value {
            let list: Vec<Value> =
                numbers.iter().map(|number| json!({ "option": number, "value": "x" })).collect();
            json!({ "privateOptions": list })
        };
        let ntp = "spec.domain.devices.interfaces[0].dhcpOptions.ntpServers";
        let first = format!("{ntp}[0]");
        let second = format!("{ntp}[1]");
        let cases = [
            ("nothing", json!({}), vec![]),
            ("a boot file", json!({ "bootFileName": "x", "tftpServerName": "y" }), vec![]),
            ("the edges", options(&[224, 254]), vec![]),
            ("too low", options(&[223]), vec!["spec"]),
            ("too high", options(&[255, 240]), vec!["spec"]),
            ("two that are wrong", options(&[-1, 300]), vec!["spec", "spec"]),
            ("twice", options(&[240, 240]), vec!["spec"]),
            ("three times", options(&[240, 240, 240]), vec!["spec"]),
            ("servers", json!({ "ntpServers": ["192.0.2.1", "0192.0.2.2"] }), vec![]),
            ("a name", json!({ "ntpServers": ["time.example"] }), vec![first.as_str()]),
            ("IPv6", json!({ "ntpServers": ["192.0.2.1", "2001:db8::1"] }), vec![second.as_str()]),
        ];
        for (case, dhcp, expected) in cases {
            refused(case, with_interface(&json!({ "dhcpOptions": dhcp })), &expected);
        }
    }
}
