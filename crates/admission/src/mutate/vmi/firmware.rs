//! The firmware: what it boots with, and the numbers by which the guest knows its machine.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::firmware::{Efi, Firmware};
use uuid::{Uuid, uuid};

use super::architecture;

/// What the UUIDs of machines from before were made in.
const NAMESPACE: Uuid = uuid!("6a1a24a1-4061-4607-8bf4-a3963d0c5895");

/// Gives an instance a UUID if it has none, and on `arm64` the only boot loader that there is.
pub fn set(fresh_uuid: &dyn Fn() -> Uuid, spec: &mut VirtualMachineInstanceSpec) {
    let arm64 = architecture::is_arm64(spec);
    let firmware = spec.domain.firmware.get_or_insert_default();
    if is_empty(firmware.uuid.as_ref()) {
        firmware.uuid = Some(fresh_uuid().to_string());
    }
    if arm64 {
        set_arm64_loader(firmware);
    }
}

fn set_arm64_loader(firmware: &mut Firmware) {
    if firmware.bootloader.is_none() {
        firmware.bootloader.get_or_insert_default().efi = Some(Efi::default());
    }
    if let Some(efi) = firmware.bootloader.as_mut().and_then(|loader| loader.efi.as_mut()) {
        // Unset would mean secure boot, which there is no firmware for.
        efi.secure_boot.get_or_insert(false);
    }
}

/// Gives a new machine a UUID and a serial number that it keeps over all of its instances.
pub fn set_identity(fresh_uuid: &dyn Fn() -> Uuid, spec: &mut VirtualMachineInstanceSpec) {
    let firmware = spec.domain.firmware.get_or_insert_default();
    for number in [&mut firmware.uuid, &mut firmware.serial] {
        if is_empty(number.as_ref()) {
            *number = Some(fresh_uuid().to_string());
        }
    }
}

/// The UUID of a machine from before UUIDs were stored: the one that its name stands for.
pub fn uuid_by_name(machine: &str) -> Uuid {
    Uuid::new_v5(&NAMESPACE, machine.as_bytes())
}

fn is_empty(text: Option<&String>) -> bool {
    text.is_none_or(String::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::read;

    fn after(architecture: &str, firmware: Value) -> Value {
        let mut spec: VirtualMachineInstanceSpec =
            read(json!({ "architecture": architecture, "domain": { "devices": {}, "firmware": firmware } }));
        set(&|| Uuid::nil(), &mut spec);
        serde_json::to_value(spec.domain.firmware).unwrap()
    }

    #[test]
    fn an_instance_has_a_uuid_and_an_arm_guest_a_loader() {
        let nil = Uuid::nil().to_string();
        let cases = [
            ("amd64", Value::Null, json!({ "uuid": nil })),
            ("amd64", json!({ "uuid": "" }), json!({ "uuid": nil })),
            ("amd64", json!({ "uuid": "x", "serial": "y" }), json!({ "uuid": "x", "serial": "y" })),
            (
                "amd64",
                json!({ "bootloader": { "efi": {} } }),
                json!({ "uuid": nil, "bootloader": { "efi": {} } }),
            ),
            ("arm64", Value::Null, json!({ "uuid": nil, "bootloader": { "efi": { "secureBoot": false } } })),
            (
                "arm64",
                json!({ "bootloader": { "efi": { "secureBoot": true } } }),
                json!({ "uuid": nil, "bootloader": { "efi": { "secureBoot": true } } }),
            ),
            (
                "arm64",
                json!({ "bootloader": { "efi": { "persistent": true } } }),
                json!({ "uuid": nil, "bootloader": { "efi": { "secureBoot": false, "persistent": true } } }),
            ),
            (
                "arm64",
                json!({ "bootloader": { "bios": {} } }),
                json!({ "uuid": nil, "bootloader": { "bios": {} } }),
            ),
        ];
        for (architecture, firmware, expected) in cases {
            assert_eq!(after(architecture, firmware.clone()), expected, "{architecture} {firmware}");
        }
    }

    #[test]
    fn a_name_stands_for_one_uuid() {
        assert_eq!(uuid_by_name("testvm").to_string(), "5a9fc181-957e-5c32-9e5a-2de5e9673531");
        assert_eq!(uuid_by_name("").get_version_num(), 5);
    }
}
