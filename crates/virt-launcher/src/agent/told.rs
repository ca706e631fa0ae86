//! From the agent's answers to the report.

use std::net::IpAddr;

use kubevirt_launcher_rpc::report::{DomainStatus, GuestOs, InterfaceStatus};
use kubevirt_qemu::agent::{FreezeStatus, Info, Interface, OsInfo};

/// Word of the report for file systems that are held still.
pub(crate) const FROZEN: &str = "frozen";

/// What the agent answered; what it did not answer stays as it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Told {
    pub(super) info: Option<Info>,
    pub(super) os: Option<OsInfo>,
    pub(super) interfaces: Option<Vec<Interface>>,
    pub(super) freeze: Option<FreezeStatus>,
}

impl Told {
    /// Writes the answers into a report.
    pub(super) fn write(self, status: &mut DomainStatus) {
        if let Some(info) = self.info {
            status.agent_version = info.version;
            let enabled = info.supported_commands.into_iter().filter(|command| command.enabled);
            status.agent_commands = enabled.map(|command| command.name).collect();
            status.agent_commands.sort_unstable();
        }
        if let Some(os) = self.os {
            status.os_info = Some(guest_os(os));
        }
        if let Some(interfaces) = self.interfaces {
            status.interfaces = interfaces.into_iter().filter(|one| !is_loopback(one)).map(seen).collect();
        }
        if let Some(freeze) = self.freeze {
            status.freeze = freeze_word(freeze).to_owned();
        }
    }
}

/// How the report calls it.
pub(crate) fn freeze_word(freeze: FreezeStatus) -> &'static str {
    match freeze {
        FreezeStatus::Frozen => FROZEN,
        FreezeStatus::Thawed => "",
    }
}

fn guest_os(os: OsInfo) -> GuestOs {
    GuestOs {
        name: os.name.unwrap_or_default(),
        id: os.id.unwrap_or_default(),
        pretty_name: os.pretty_name.unwrap_or_default(),
        version: os.version.unwrap_or_default(),
        version_id: os.version_id.unwrap_or_default(),
        kernel_release: os.kernel_release.unwrap_or_default(),
        kernel_version: os.kernel_version.unwrap_or_default(),
        machine: os.machine.unwrap_or_default(),
    }
}

/// Windows has no common name for it, but its addresses tell.
fn is_loopback(interface: &Interface) -> bool {
    let local = |text: &str| text.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let addresses = &interface.ip_addresses;
    interface.name == "lo"
        || !addresses.is_empty() && addresses.iter().all(|address| local(&address.ip_address))
}

/// The first IPv4 address comes first; without one, any.
fn seen(interface: Interface) -> InterfaceStatus {
    let addresses = &interface.ip_addresses;
    let first = addresses.iter().find(|one| one.family == "ipv4").or(addresses.first());
    InterfaceStatus {
        ip: first.map(|one| one.ip_address.clone()).unwrap_or_default(),
        ips: addresses.iter().map(|one| one.ip_address.clone()).collect(),
        mac: interface.hardware_address.unwrap_or_default(),
        interface_name: interface.name,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn interfaces(answer: Value) -> Vec<InterfaceStatus> {
        let mut status = DomainStatus::default();
        let interfaces = Some(serde_json::from_value(answer).unwrap());
        Told { interfaces, ..Told::default() }.write(&mut status);
        status.interfaces
    }

    #[test]
    fn interfaces_are_told_without_loopbacks_and_ipv4_first() {
        let address = |family: &str, ip: &str, prefix: u8| json!({ "ip-address-type": family, "ip-address": ip, "prefix": prefix });
        let told = interfaces(json!([
            { "name": "lo", "hardware-address": "00:00:00:00:00:00" },
            { "name": "Loopback Pseudo-Interface 1",
              "ip-addresses": [address("ipv6", "::1", 128), address("ipv4", "127.0.0.1", 8)] },
            { "name": "eth0", "hardware-address": "02:00:00:00:00:01",
              "ip-addresses": [address("ipv6", "fe80::1", 64), address("ipv4", "10.0.2.2", 24)] },
            { "name": "eth1", "hardware-address": "02:00:00:00:00:02",
              "ip-addresses": [address("ipv6", "fd00::2", 64)] },
            { "name": "sit0" },
        ]));
        let interface = |name: &str, mac: &str, ip: &str, ips: &[&str]| InterfaceStatus {
            interface_name: name.into(),
            mac: mac.into(),
            ip: ip.into(),
            ips: ips.iter().map(|ip| (*ip).to_owned()).collect(),
        };
        let expected = [
            interface("eth0", "02:00:00:00:00:01", "10.0.2.2", &["fe80::1", "10.0.2.2"]),
            interface("eth1", "02:00:00:00:00:02", "fd00::2", &["fd00::2"]),
            interface("sit0", "", "", &[]),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_not_answered_stays() {
        let mut status = DomainStatus::default();
        let info = json!({ "version": "7.2.0", "supported_commands": [
            { "name": "guest-ping", "enabled": true, "success-response": true },
            { "name": "guest-exec", "enabled": false, "success-response": true },
            { "name": "guest-info", "enabled": true, "success-response": true },
        ]});
        let os = json!({ "id": "debian", "name": "Debian GNU/Linux", "kernel-release": "6.1.0" });
        let told = Told {
            info: serde_json::from_value(info).unwrap(),
            os: serde_json::from_value(os).unwrap(),
            interfaces: None,
            freeze: Some(FreezeStatus::Frozen),
        };
        told.write(&mut status);
        assert_eq!(status.agent_version, "7.2.0");
        assert_eq!(status.agent_commands, ["guest-info", "guest-ping"]);
        assert_eq!(status.freeze, "frozen");
        let before = status.clone();
        Told::default().write(&mut status);
        assert_eq!(status, before);
        let os = status.os_info.unwrap();
        assert_eq!(
            (os.id.as_str(), os.kernel_release.as_str(), os.version.as_str()),
            ("debian", "6.1.0", "")
        );
    }
}
