//! Fills in what a preference prefers where an instance leaves it open.

mod devices;
mod features;

use std::collections::BTreeSet;

use kubevirt_api::preference::{FirmwarePreferences, VirtualMachinePreferenceSpec};
use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::domain::DomainSpec;
use kubevirt_api::vmi::firmware::{Bios, Bootloader, Efi};

use super::{Annotations, fill, fill_word};

pub use devices::attach_devices;

/// Applies a preference. It never conflicts: what the instance says itself counts, but for the few settings whose
/// absence cannot be told from a choice.
pub fn apply_preference(
    preference: &VirtualMachinePreferenceSpec,
    spec: &mut VirtualMachineInstanceSpec,
    annotations: &mut Annotations,
) {
    cpu_features(preference, &mut spec.domain);
    devices::apply(preference, spec);
    features::apply(preference, &mut spec.domain);
    if let Some(preferred) = &preference.firmware {
        firmware(preferred, &mut spec.domain);
    }
    if let Some(preferred) = &preference.machine
        && preferred.preferred_machine_type.as_ref().is_some_and(|machine| !machine.is_empty())
    {
        let machine = spec.domain.machine.get_or_insert_default();
        fill_word(&mut machine.type_, &preferred.preferred_machine_type);
    }
    clock(preference, &mut spec.domain);
    fill_word(&mut spec.subdomain, &preference.preferred_subdomain);
    fill(&mut spec.termination_grace_period_seconds, &preference.preferred_termination_grace_period_seconds);
    fill_word(&mut spec.architecture, &preference.preferred_architecture);
    fill(&mut spec.domain.launch_security, &preference.preferred_launch_security);
    for (key, value) in preference.annotations.iter().flatten() {
        annotations.get_or_insert_default().entry(key.clone()).or_insert_with(|| value.clone());
    }
}

fn cpu_features(preference: &VirtualMachinePreferenceSpec, domain: &mut DomainSpec) {
    let preferred = preference.cpu.as_ref().and_then(|cpu| cpu.preferred_cpu_features.as_deref());
    let Some(preferred) = preferred.filter(|preferred| !preferred.is_empty()) else { return };
    let own = domain.cpu.get_or_insert_default().features.get_or_insert_default();
    let named: BTreeSet<String> = own.iter().map(|feature| feature.name.clone()).collect();
    own.extend(preferred.iter().filter(|feature| !named.contains(&feature.name)).cloned());
}

fn clock(preference: &VirtualMachinePreferenceSpec, domain: &mut DomainSpec) {
    let Some(preferred) = &preference.clock else { return };
    let clock = domain.clock.get_or_insert_default();
    if let Some(offset) = &preferred.preferred_clock_offset {
        // Half of one offset and half of another would be no offset that anyone asked for.
        if clock.utc.is_none() && clock.timezone.is_none() {
            clock.utc.clone_from(&offset.utc);
            clock.timezone.clone_from(&offset.timezone);
        }
    }
    fill(&mut clock.timer, &preferred.preferred_timer);
}

fn firmware(preferred: &FirmwarePreferences, domain: &mut DomainSpec) {
    let bootloader = domain.firmware.get_or_insert_default().bootloader.get_or_insert_default();
    if let Bootloader { bios: None, efi: None } = bootloader {
        if preferred.preferred_use_bios == Some(true) {
            bootloader.bios = Some(Bios::default());
        } else if preferred.preferred_efi.is_some() {
            bootloader.efi.clone_from(&preferred.preferred_efi);
            // The older ways to say this do not count beside it.
            return;
        } else if preferred.preferred_use_efi == Some(true) {
            bootloader.efi = Some(Efi::default());
        }
    }
    if let Some(bios) = &mut bootloader.bios {
        fill(&mut bios.use_serial, &preferred.preferred_use_bios_serial);
    }
    if let Some(efi) = &mut bootloader.efi {
        fill(&mut efi.secure_boot, &preferred.preferred_use_secure_boot);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{patched, read};

    /// What a preference makes of an instance: its specification and its annotations.
    pub fn applied(preference: &Value, spec: &Value, annotations: &Value) -> (Value, Value) {
        let mut spec = read(patched(&json!({ "domain": { "devices": {} } }), spec));
        let mut annotations = read(annotations.clone());
        apply_preference(&read(preference.clone()), &mut spec, &mut annotations);
        (json!(spec), json!(annotations))
    }

    /// Checks cases of a preference, an instance, and what is different about it afterwards.
    pub fn assert_applied(cases: impl IntoIterator<Item = (&'static str, Value, Value, Value)>) {
        for (name, preference, before, change) in cases {
            let base = patched(&json!({ "domain": { "devices": {} } }), &before);
            assert_eq!(applied(&preference, &before, &Value::Null).0, patched(&base, &change), "{name}");
        }
    }

    #[test]
    fn an_instance_takes_what_it_leaves_open() {
        let domain = |domain: Value| json!({ "domain": domain });
        let features = |names: &[&str]| json!({ "cpu": { "preferredCPUFeatures": list(names, "require") } });
        assert_applied([
            ("nothing", json!({}), json!({}), json!({})),
            (
                "features",
                features(&["a"]),
                json!({}),
                domain(json!({ "cpu": { "features": list(&["a"], "require") } })),
            ),
            (
                "other features",
                features(&["a", "b"]),
                domain(json!({ "cpu": { "features": list(&["a"], "disable") } })),
                domain(json!({ "cpu": { "features": [
                    { "name": "a", "policy": "disable" }, { "name": "b", "policy": "require" },
                ] } })),
            ),
            ("no features", features(&[]), json!({}), json!({})),
            (
                "machine",
                json!({ "machine": { "preferredMachineType": "q35" } }),
                json!({}),
                domain(json!({ "machine": { "type": "q35" } })),
            ),
            (
                "empty machine",
                json!({ "machine": { "preferredMachineType": "q35" } }),
                domain(json!({ "machine": { "type": "" } })),
                domain(json!({ "machine": { "type": "q35" } })),
            ),
            (
                "own machine",
                json!({ "machine": { "preferredMachineType": "q35" } }),
                domain(json!({ "machine": { "type": "pc" } })),
                json!({}),
            ),
            ("no machine", json!({ "machine": {} }), json!({}), json!({})),
            ("subdomain", json!({ "preferredSubdomain": "a" }), json!({}), json!({ "subdomain": "a" })),
            ("own subdomain", json!({ "preferredSubdomain": "a" }), json!({ "subdomain": "b" }), json!({})),
            (
                "grace period",
                json!({ "preferredTerminationGracePeriodSeconds": 5 }),
                json!({}),
                json!({ "terminationGracePeriodSeconds": 5 }),
            ),
            (
                "own grace period",
                json!({ "preferredTerminationGracePeriodSeconds": 5 }),
                json!({ "terminationGracePeriodSeconds": 0 }),
                json!({}),
            ),
            (
                "architecture",
                json!({ "preferredArchitecture": "arm64" }),
                json!({}),
                json!({ "architecture": "arm64" }),
            ),
            (
                "own architecture",
                json!({ "preferredArchitecture": "arm64" }),
                json!({ "architecture": "amd64" }),
                json!({}),
            ),
            (
                "security",
                json!({ "preferredLaunchSecurity": { "snp": {} } }),
                json!({}),
                domain(json!({ "launchSecurity": { "snp": {} } })),
            ),
            (
                "own security",
                json!({ "preferredLaunchSecurity": { "snp": {} } }),
                domain(json!({ "launchSecurity": { "tdx": {} } })),
                json!({}),
            ),
        ]);
    }

    fn list(names: &[&str], policy: &str) -> Value {
        names.iter().map(|name| json!({ "name": name, "policy": policy })).collect()
    }

    #[test]
    fn a_clock_offset_is_taken_whole_or_not_at_all() {
        let domain = |clock: Value| json!({ "domain": { "clock": clock } });
        let offset = |offset: Value| json!({ "clock": { "preferredClockOffset": offset } });
        let timer = json!({ "clock": { "preferredTimer": { "hpet": { "present": false } } } });
        assert_applied([
            ("utc", offset(json!({ "utc": {} })), json!({}), domain(json!({ "utc": {} }))),
            (
                "timezone",
                offset(json!({ "timezone": "UTC" })),
                json!({}),
                domain(json!({ "timezone": "UTC" })),
            ),
            (
                "own utc",
                offset(json!({ "timezone": "UTC" })),
                domain(json!({ "utc": { "offsetSeconds": 1 } })),
                json!({}),
            ),
            ("own timezone", offset(json!({ "utc": {} })), domain(json!({ "timezone": "CET" })), json!({})),
            ("timer", timer.clone(), json!({}), domain(json!({ "timer": { "hpet": { "present": false } } }))),
            ("own timer", timer, domain(json!({ "timer": { "rtc": {} } })), json!({})),
        ]);
    }

    #[test]
    fn firmware_is_chosen_once() {
        let loader = |loader: Value| json!({ "domain": { "firmware": { "bootloader": loader } } });
        let firmware = |firmware: Value| json!({ "firmware": firmware });
        assert_applied([
            ("bios", firmware(json!({ "preferredUseBios": true })), json!({}), loader(json!({ "bios": {} }))),
            ("no bios", firmware(json!({ "preferredUseBios": false })), json!({}), loader(json!({}))),
            (
                "bios with serial",
                firmware(json!({ "preferredUseBios": true, "preferredUseBiosSerial": true })),
                json!({}),
                loader(json!({ "bios": { "useSerial": true } })),
            ),
            (
                "serial for the own bios",
                firmware(json!({ "preferredUseBiosSerial": true })),
                loader(json!({ "bios": {} })),
                loader(json!({ "bios": { "useSerial": true } })),
            ),
            (
                "own choice of serial",
                firmware(json!({ "preferredUseBiosSerial": true })),
                loader(json!({ "bios": { "useSerial": false } })),
                json!({}),
            ),
            (
                "efi",
                firmware(json!({ "preferredEfi": { "persistent": true } })),
                json!({}),
                loader(json!({ "efi": { "persistent": true } })),
            ),
            (
                "efi without the older settings",
                firmware(json!({ "preferredEfi": {}, "preferredUseSecureBoot": true })),
                json!({}),
                loader(json!({ "efi": {} })),
            ),
            (
                "efi for own bios",
                firmware(json!({ "preferredEfi": {}, "preferredUseEfi": true })),
                loader(json!({ "bios": {} })),
                json!({}),
            ),
            (
                "older efi",
                firmware(json!({ "preferredUseEfi": true })),
                json!({}),
                loader(json!({ "efi": {} })),
            ),
            (
                "older secure boot",
                firmware(json!({ "preferredUseEfi": true, "preferredUseSecureBoot": true })),
                json!({}),
                loader(json!({ "efi": { "secureBoot": true } })),
            ),
            (
                "secure boot for the own efi",
                firmware(json!({ "preferredEfi": { "persistent": true }, "preferredUseSecureBoot": false })),
                loader(json!({ "efi": {} })),
                loader(json!({ "efi": { "secureBoot": false } })),
            ),
            (
                "own secure boot",
                firmware(json!({ "preferredUseSecureBoot": false })),
                loader(json!({ "efi": { "secureBoot": true } })),
                json!({}),
            ),
            (
                "bios before efi",
                firmware(json!({ "preferredUseBios": true, "preferredEfi": {}, "preferredUseEfi": true })),
                json!({}),
                loader(json!({ "bios": {} })),
            ),
        ]);
    }

    #[test]
    fn own_annotations_stay() {
        let preference = json!({ "annotations": { "a": "1", "b": "2" } });
        assert_eq!(applied(&preference, &json!({}), &Value::Null).1, json!({ "a": "1", "b": "2" }));
        assert_eq!(applied(&preference, &json!({}), &json!({ "a": "3" })).1, json!({ "a": "3", "b": "2" }));
    }
}
