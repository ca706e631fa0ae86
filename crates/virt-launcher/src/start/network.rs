//! Phase 2 of the network: what phase 1 made goes to QEMU, and the guest is told its address.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::network::DhcpOptions;
use kubevirt_domain::facts::InterfaceFacts;
use kubevirt_network::dhcp::{self, ExtraOptions, Settings};
use kubevirt_network::resolv::ResolvConf;
use kubevirt_network::{BindingKind, Wiring};

use crate::error::CommandError;
use crate::launcher::Launcher;

/// Reads what the handler tells of phase 1.
pub(super) fn wirings(json: &[u8]) -> Result<Vec<Wiring>, CommandError> {
    if json.is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_slice(json).map_err(|source| {
        CommandError::Unsupported(format!("what the handler tells of the network cannot be read: {source}"))
    })
}

/// What QEMU has to know of each network.
pub(super) fn facts(wirings: &[Wiring]) -> BTreeMap<String, InterfaceFacts> {
    let fact = |wiring: &Wiring| {
        let mac = (wiring.binding != BindingKind::Passt).then(|| wiring.mac.to_string());
        let facts = InterfaceFacts {
            tap: wiring.tap.clone(),
            mtu: Some(wiring.mtu),
            mac,
            ..InterfaceFacts::default()
        };
        (wiring.network.clone(), facts)
    };
    wirings.iter().map(fact).collect()
}

impl Launcher {
    /// Begins to tell the guest its addresses. A network that is served already stays as it is.
    pub(crate) fn serve_dhcp(
        &self,
        vmi: &VirtualMachineInstance,
        wirings: &[Wiring],
    ) -> Result<(), CommandError> {
        let resolv = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let resolv = ResolvConf::parse(&resolv);
        let mut served = crate::launcher::lock(&self.dhcp);
        for wiring in wirings {
            if served.contains_key(&wiring.network) {
                continue;
            }
            let settings = settings(vmi, &wiring.network, resolv.clone());
            let server = dhcp::serve(wiring, &settings)
                .map_err(|error| CommandError::Unsupported(format!("network {}: {error}", wiring.network)))?;
            served.insert(wiring.network.clone(), server);
        }
        Ok(())
    }
}

fn settings(vmi: &VirtualMachineInstance, network: &str, resolv: ResolvConf) -> Settings {
    let interfaces = vmi.spec.domain.devices.interfaces.iter().flatten();
    let options = interfaces
        .filter(|interface| interface.name == network)
        .find_map(|interface| interface.dhcp_options.as_ref());
    Settings {
        hostname: vmi.hostname(),
        resolv,
        subdomain: vmi.spec.subdomain.clone(),
        extra: options.map(extra).unwrap_or_default(),
    }
}

/// What the VMI adds. Admission has refused what makes no sense.
fn extra(options: &DhcpOptions) -> ExtraOptions {
    let servers = options.ntp_servers.iter().flatten();
    let private = options.private_options.iter().flatten();
    ExtraOptions {
        boot_file_name: options.boot_file_name.clone(),
        tftp_server_name: options.tftp_server_name.clone(),
        ntp_servers: servers.filter_map(|server| server.parse::<Ipv4Addr>().ok()).collect(),
        private: private
            .filter_map(|option| Some((u8::try_from(option.option).ok()?, option.value.clone())))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_vmi_says_of_dhcp_is_told() {
        let vmi = serde_json::from_value(json!({
            "metadata": {"name": "web.example", "namespace": "default"},
            "spec": {"subdomain": "sub", "domain": {"devices": {"interfaces": [
                {"name": "default", "masquerade": {}},
                {"name": "boot", "bridge": {}, "dhcpOptions": {
                    "bootFileName": "pxe", "tftpServerName": "tftp", "ntpServers": ["10.0.0.1", "ntp"],
                    "privateOptions": [{"option": 240, "value": "a"}, {"option": 1000, "value": "b"}]}},
            ]}}},
        }));
        let vmi: VirtualMachineInstance = vmi.unwrap();
        let resolv = ResolvConf::parse("");
        let plain = settings(&vmi, "default", resolv.clone());
        assert_eq!((plain.hostname.as_str(), plain.subdomain.as_deref()), ("web", Some("sub")));
        assert_eq!(plain.extra, ExtraOptions::default());
        let expected = ExtraOptions {
            boot_file_name: Some("pxe".into()),
            tftp_server_name: Some("tftp".into()),
            ntp_servers: vec![Ipv4Addr::new(10, 0, 0, 1)],
            private: BTreeMap::from([(240, "a".to_owned())]),
        };
        assert_eq!(settings(&vmi, "boot", resolv).extra, expected);
    }

    #[test]
    fn an_unreadable_wiring_is_said_so() {
        assert!(wirings(b"").unwrap().is_empty());
        assert!(wirings(b"{").unwrap_err().to_string().contains("network"));
    }
}
