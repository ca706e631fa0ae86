//! Rules for `VirtualMachineInstancePreset`.

use kubevirt_api::preset::VirtualMachineInstancePreset;

use super::vmi_spec::domain::firmware;
use super::vmi_spec::storage::disks;
use crate::{Context, Path, Problems};

/// Everything that is wrong with a preset.
pub fn check(
    _cx: &Context<'_>,
    new: &VirtualMachineInstancePreset,
    _old: Option<&VirtualMachineInstancePreset>,
) -> Problems {
    let mut problems = Problems::default();
    let path = Path::new("spec.domain");
    let Some(domain) = &new.spec.domain else {
        problems.required(&path, "is missing: it holds the settings that the preset merges in");
        return problems;
    };
    let disks = domain.devices.disks.as_deref().unwrap_or_default();
    disks::check(&path.at("devices.disks"), disks, &mut problems);
    if let Some(firmware) = &domain.firmware {
        firmware::check_boot(&path.at("firmware"), firmware, &mut problems);
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{World, assert_fields, read};

    #[test]
    fn a_preset_is_held_to_its_disks_and_its_firmware() {
        let preset = |domain: serde_json::Value| json!({ "spec": { "selector": {}, "domain": domain } });
        let twice = json!([{ "name": "a", "disk": {} }, { "name": "a", "disk": {} }]);
        let cases = [
            (
                "disks",
                preset(json!({ "devices": { "disks": twice } })),
                &["spec.domain.devices.disks[1].name"][..],
            ),
            (
                "firmware",
                preset(json!({ "devices": {}, "firmware": { "bootloader": { "bios": {}, "efi": {} } } })),
                &["spec.domain.firmware.bootloader"],
            ),
            ("with", json!({ "spec": { "selector": {}, "domain": { "devices": {} } } }), &[]),
            ("without", json!({ "spec": { "selector": {} } }), &["spec.domain"]),
        ];
        for (case, preset, expected) in cases {
            let preset = read(preset);
            assert_fields(case, &World::default().run(|cx| check(cx, &preset, None)), expected);
        }
    }
}
