//! The card itself: name, model, MAC address and place on the PCI bus.

use super::Nic;
use crate::Problems;
use crate::validate::address::{is_mac, is_pci};

/// The models that the hypervisor has.
const MODELS: [&str; 7] = ["e1000", "e1000e", "igb", "ne2k_pci", "pcnet", "rtl8139", "virtio"];

/// Checks what an interface says of its card.
pub fn check(nic: &Nic<'_>, problems: &mut Problems) {
    let interface = nic.interface;
    let name = &interface.name;
    if !is_name(name) {
        problems.invalid(
            &nic.path.at("name"),
            format!("interface name {name:?} may hold only letters, digits, '-' and '_', and not be empty"),
        );
    }
    if let Some(model) =
        interface.model.as_deref().filter(|model| !model.is_empty() && !MODELS.contains(model))
    {
        problems.not_supported(
            &nic.path.at("model"),
            format!("there is no interface model {model:?}; choose one of {}", MODELS.join(", ")),
        );
    }
    if let Some(mac) = interface.mac_address.as_deref().filter(|mac| !mac.is_empty() && !is_mac(mac)) {
        problems.invalid(
            &nic.path.at("macAddress"),
            format!("{mac:?} is not a MAC address of six bytes, such as 02:00:00:12:34:56"),
        );
    }
    if let Some(pci) = interface.pci_address.as_deref().filter(|pci| !pci.is_empty() && !is_pci(pci)) {
        problems.invalid(
            &nic.path.at("pciAddress"),
            format!("{pci:?} is not a PCI address, such as 0000:81:01.0"),
        );
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{refused, with_interface};

    #[test]
    fn a_name_is_made_of_letters_digits_dashes_and_underscores() {
        for (name, good) in
            [("a", true), ("Net_1-x", true), ("", false), ("a.b", false), ("a b", false), ("ä", false)]
        {
            let patch = json!({
                "networks": [{ "name": name, "pod": {} }],
                "domain": { "devices": { "interfaces": [{ "name": name, "masquerade": {} }] } },
            });
            refused(name, patch, if good { &[] } else { &["spec.domain.devices.interfaces[0].name"] });
        }
    }

    #[test]
    fn model_and_addresses_are_well_formed() {
        let cases: &[(Value, Option<&str>)] = &[
            (json!({ "model": "virtio" }), None),
            (json!({ "model": "e1000" }), None),
            (json!({ "model": "e1000e" }), None),
            (json!({ "model": "igb" }), None),
            (json!({ "model": "ne2k_pci" }), None),
            (json!({ "model": "pcnet" }), None),
            (json!({ "model": "rtl8139" }), None),
            (json!({ "model": "" }), None),
            (json!({ "model": "VIRTIO" }), Some("model")),
            (json!({ "model": "vmxnet3" }), Some("model")),
            (json!({ "macAddress": "" }), None),
            (json!({ "macAddress": "de:ad:00:00:be:af" }), None),
            (json!({ "macAddress": "de-ad-00-00-be-af" }), None),
            (json!({ "macAddress": "de:ad:00:00:be" }), Some("macAddress")),
            (json!({ "macAddress": "de:ad:00:00:be:af:be:af" }), Some("macAddress")),
            (json!({ "pciAddress": "" }), None),
            (json!({ "pciAddress": "0000:81:11.1" }), None),
            (json!({ "pciAddress": "0000:81:100.a" }), Some("pciAddress")),
            (json!({ "pciAddress": "81:11.1" }), Some("pciAddress")),
        ];
        for (patch, field) in cases {
            let field = field.map(|field| format!("spec.domain.devices.interfaces[0].{field}"));
            let expected: Vec<&str> = field.iter().map(String::as_str).collect();
            refused(&patch.to_string(), with_interface(patch), &expected);
        }
    }
}
