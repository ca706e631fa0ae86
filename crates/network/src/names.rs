//! How the interfaces of a pod and of a VM are named.
//!
//! Multus calls the pod's interfaces by the names that it is given; these are the names that KubeVirt gives.

use ring::digest::{SHA256, digest};

/// The interface of a pod's own network.
pub const PRIMARY: &str = "eth0";

const HASHED_PREFIX: &str = "pod";

/// The longest name that Linux allows.
pub(crate) const LONGEST: usize = 15;

/// The name of the pod interface of a secondary network: `pod` and a hash of the network's name.
#[must_use]
pub fn hashed(network: &str) -> String {
    let hash = digest(&SHA256, network.as_bytes());
    let hex: String = hash.as_ref()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{HASHED_PREFIX}{}", &hex[..11])
}

/// The name that pods of old VMs have instead: `net` and the place among the secondary networks, from 1.
#[must_use]
pub fn ordinal(place: usize) -> String {
    format!("net{place}")
}

/// Whether a name is one of [`ordinal`]'s.
#[must_use]
pub fn is_ordinal(name: &str) -> bool {
    name.strip_prefix("net").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// The names that the pod interface of a secondary network can have, likeliest first.
///
/// `place` is that of the network among the VM's secondary networks, from 1.
#[must_use]
pub fn candidates(network: &str, place: usize) -> Vec<String> {
    vec![hashed(network), ordinal(place)]
}

/// The tap of a VM's interface.
#[must_use]
pub fn tap(pod_interface: &str, primary: bool) -> String {
    if primary { "tap0".to_owned() } else { format!("tap{}", pod_interface.get(3..).unwrap_or_default()) }
}

/// The bridge between the tap and the pod.
#[must_use]
pub fn bridge(pod_interface: &str) -> String {
    format!("k6t-{}", stem(pod_interface))
}

/// What a pod's interface is called once it is a port of the bridge and its name belongs to a stand-in.
#[must_use]
pub fn port(pod_interface: &str) -> String {
    format!("{}-nic", stem(pod_interface))
}

fn stem(pod_interface: &str) -> &str {
    pod_interface.strip_prefix(HASHED_PREFIX).unwrap_or(pod_interface)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_multus_annotations() {
        // sha256("red") starts with b1f51a511f1
        assert_eq!(hashed("red"), "podb1f51a511f1");
        assert_eq!(candidates("red", 2), ["podb1f51a511f1", "net2"]);
    }

    #[test]
    fn derived_names() {
        let cases = [
            ("eth0", true, "tap0", "k6t-eth0", "eth0-nic"),
            ("ovn-udn1", true, "tap0", "k6t-ovn-udn1", "ovn-udn1-nic"),
            ("podb1f51a511f1", false, "tapb1f51a511f1", "k6t-b1f51a511f1", "b1f51a511f1-nic"),
            ("net1", false, "tap1", "k6t-net1", "net1-nic"),
            ("ne", false, "tap", "k6t-ne", "ne-nic"),
        ];
        for (pod, primary, expected_tap, expected_bridge, expected_port) in cases {
            assert_eq!(tap(pod, primary), expected_tap);
            assert_eq!(bridge(pod), expected_bridge);
            assert_eq!(port(pod), expected_port);
            assert!(bridge(pod).len() <= LONGEST && port(pod).len() <= LONGEST);
        }
    }

    #[test]
    fn ordinals() {
        assert!(is_ordinal("net1") && is_ordinal("net12"));
        assert!(!is_ordinal("net") && !is_ordinal("net1a") && !is_ordinal("eth0") && !is_ordinal("podabc"));
    }
}
