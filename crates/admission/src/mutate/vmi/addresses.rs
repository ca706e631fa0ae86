//! IP addresses as the node's programs read them.
//!
//! Manifests with zeros before the numbers of an address are as old as KubeVirt; no program has to know of them later.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use crate::validate::address::ip;

/// Writes the addresses of name servers, time servers and the guest's network without such zeros.
pub fn set(spec: &mut VirtualMachineInstanceSpec) {
    let names = spec.dns_config.iter_mut().flat_map(|config| config.nameservers.iter_mut().flatten());
    let interfaces = spec.domain.devices.interfaces.iter_mut().flatten();
    let options = interfaces.filter_map(|interface| interface.dhcp_options.as_mut());
    let times = options.flat_map(|options| options.ntp_servers.iter_mut().flatten());
    for server in names.chain(times) {
        if let Some(address) = ip(server) {
            *server = address.to_string();
        }
    }
    let pods = spec.networks.iter_mut().flatten().filter_map(|network| network.pod.as_mut());
    for range in pods.filter_map(|pod| pod.vm_network_cidr.as_mut()) {
        if let Some((address, size)) = range.split_once('/')
            && let Some(address) = ip(address)
        {
            *range = format!("{address}/{size}");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(server: &str, time: &str, range: &str) -> Value {
        json!({
            "dnsConfig": { "nameservers": [server] },
            "domain": { "devices": { "interfaces": [
                { "name": "a", "masquerade": {}, "dhcpOptions": { "ntpServers": [time] } },
            ] } },
            "networks": [{ "name": "a", "pod": { "vmNetworkCIDR": range } }],
        })
    }

    #[test]
    fn zeros_are_left_out_and_the_rest_is_kept() {
        let cases = [
            (("01.1.1.1", "0127.0.0.3", "10.10.010.0/24"), ("1.1.1.1", "127.0.0.3", "10.10.10.0/24")),
            (("fd00::a", "10.0.0.1", "10.11.12.5/24"), ("fd00::a", "10.0.0.1", "10.11.12.5/24")),
            (("dns", "", "everything"), ("dns", "", "everything")),
        ];
        for ((server, time, range), (after_server, after_time, after_range)) in cases {
            let mut before: VirtualMachineInstanceSpec =
                serde_json::from_value(spec(server, time, range)).unwrap();
            let after: VirtualMachineInstanceSpec =
                serde_json::from_value(spec(after_server, after_time, after_range)).unwrap();
            set(&mut before);
            assert_eq!(before, after);
        }
    }
}
