//! Bindings whose feature gates are gone: still named in the configuration, they are refused by name.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use crate::{Context, Gate, Path, Problems};

/// Finds what an installation still asks for with a feature gate that no longer does anything.
pub fn check(cx: &Context<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let interfaces = spec.domain.devices.interfaces.as_deref().unwrap_or_default();
    for (gate, used, instead) in [
        (
            Gate::Macvtap,
            interfaces.iter().any(|interface| interface.macvtap.is_some()),
            "use a network binding plugin",
        ),
        (Gate::Passt, interfaces.iter().any(|interface| interface.passt.is_some()), "use passtBinding"),
    ] {
        // A gate that is gone is on only where it is listed.
        if used && cx.config.enabled(gate) {
            let message = format!("the {} binding is gone since v1.3; {instead}", gate.name());
            problems.not_supported(&Path::WHOLE, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_api::vmi::VirtualMachineInstanceSpec;
    use serde_json::{Value, json};

    use super::super::testing::base;
    use crate::Problems;
    use crate::testing::{World, assert_fields, patched, read};

    #[test]
    fn bindings_that_are_gone() {
        let nic = |binding: Value| json!({ "domain": { "devices": { "interfaces": [patched(&json!({ "name": "n" }), &binding)] } } });
        let (macvtap, passt) = (json!({ "macvtap": {} }), json!({ "passt": {} }));
        for (name, gates, binding, expected) in [
            ("macvtap", &["Macvtap"][..], &macvtap, &[""][..]),
            ("passt", &["Passt"], &passt, &[""]),
            ("other gate", &["Passt"], &macvtap, &[]),
            ("no gate", &[], &passt, &[]),
            ("bridge", &["Passt", "Macvtap"], &json!({ "bridge": {} }), &[]),
        ] {
            let spec: VirtualMachineInstanceSpec = read(patched(&base(), &nic(binding.clone())));
            let mut problems = Problems::default();
            World::default().with_gates(gates).run(|cx| super::check(cx, &spec, &mut problems));
            assert_fields(name, &problems, expected);
        }
    }
}
