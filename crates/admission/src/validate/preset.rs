//! Rules for `VirtualMachineInstancePreset`.

use kubevirt_api::preset::VirtualMachineInstancePreset;

use crate::{Context, Path, Problems};

/// Everything that is wrong with a preset.
pub fn check(
    _cx: &Context<'_>,
    new: &VirtualMachineInstancePreset,
    _old: Option<&VirtualMachineInstancePreset>,
) -> Problems {
    let mut problems = Problems::default();
    if new.spec.domain.is_none() {
        problems.required(
            &Path::new("spec.domain"),
            "is missing: it holds the settings that the preset merges in",
        );
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{World, assert_fields, read};

    #[test]
    fn a_preset_needs_a_domain() {
        let cases = [
            ("with", json!({ "spec": { "selector": {}, "domain": { "devices": {} } } }), &[][..]),
            ("without", json!({ "spec": { "selector": {} } }), &["spec.domain"]),
        ];
        for (case, preset, expected) in cases {
            let preset = read(preset);
            assert_fields(case, &World::default().run(|cx| check(cx, &preset, None)), expected);
        }
    }
}
