//! What enlightenments for Windows need from each other and from the CPU.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::cpu::CpuFeature;
use kubevirt_api::vmi::features::FeatureState;

/// The CPU feature that an enlightened VMCS is made with.
const VMX: &str = "vmx";
const REQUIRE: &str = "require";

/// Turns on what enlightenments need, unless the user turned it off: then validation has its say.
pub fn set_dependencies(spec: &mut VirtualMachineInstanceSpec) {
    let Some(hyperv) = spec.domain.features.as_mut().and_then(|features| features.hyperv.as_mut()) else {
        return;
    };
    let is_on =
        |state: &Option<FeatureState>| state.as_ref().is_some_and(|state| state.enabled == Some(true));
    let timer = hyperv.synictimer.as_ref().is_some_and(|timer| timer.enabled == Some(true));
    let flush = hyperv.tlbflush.as_ref().is_some_and(|flush| flush.enabled == Some(true));
    let mut met = need(is_on(&hyperv.evmcs), &mut hyperv.vapic);
    met &= need(timer, &mut hyperv.synic);
    met &= need(is_on(&hyperv.ipi) || flush || is_on(&hyperv.synic), &mut hyperv.vpindex);
    // A guest that will be refused anyway is left as its user wrote it.
    if met && hyperv.evmcs.as_ref().is_some_and(|evmcs| evmcs.enabled != Some(false)) {
        require_vmx(spec);
    }
}

/// Turns a feature on where it is needed, and says whether it is there if so.
fn need(needed: bool, state: &mut Option<FeatureState>) -> bool {
    !needed || *state.get_or_insert_default().enabled.get_or_insert(true)
}

fn require_vmx(spec: &mut VirtualMachineInstanceSpec) {
    let features = spec.domain.cpu.get_or_insert_default().features.get_or_insert_default();
    match features.iter_mut().find(|feature| feature.name == VMX) {
        Some(feature) => feature.policy = Some(REQUIRE.to_owned()),
        None => features.push(CpuFeature { name: VMX.to_owned(), policy: Some(REQUIRE.to_owned()) }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{patched, read};

    fn after(hyperv: &Value, cpu: &Value) -> (Value, Value) {
        let mut spec: VirtualMachineInstanceSpec =
            read(json!({ "domain": { "devices": {}, "features": { "hyperv": hyperv }, "cpu": cpu } }));
        set_dependencies(&mut spec);
        let domain = serde_json::to_value(spec.domain).unwrap();
        (domain["features"]["hyperv"].clone(), domain["cpu"]["features"].clone())
    }

    #[test]
    fn an_enlightenment_brings_what_it_needs() {
        let on = json!({ "enabled": true });
        let off = json!({ "enabled": false });
        let cases = [
            (json!({}), json!({})),
            (json!({ "vpindex": on }), json!({})),
            (json!({ "synic": on }), json!({ "vpindex": on })),
            (json!({ "synic": off }), json!({})),
            (json!({ "synictimer": on }), json!({ "synic": on, "vpindex": on })),
            (json!({ "synictimer": off }), json!({})),
            (json!({ "ipi": on }), json!({ "vpindex": on })),
            (json!({ "tlbflush": on }), json!({ "vpindex": on })),
            (json!({ "tlbflush": on, "vpindex": {} }), json!({ "vpindex": on })),
            (json!({ "tlbflush": on, "vpindex": off }), json!({})),
            (json!({ "synictimer": on, "synic": off }), json!({})),
            (json!({ "evmcs": on }), json!({ "vapic": on })),
            (json!({ "evmcs": off }), json!({})),
            (json!({ "reset": on, "relaxed": on }), json!({})),
        ];
        for (hyperv, added) in cases {
            assert_eq!(after(&hyperv, &Value::Null).0, patched(&hyperv, &added), "{hyperv}");
        }
    }

    #[test]
    fn an_enlightened_vmcs_requires_vmx() {
        let vmx = json!({ "name": "vmx", "policy": "require" });
        let other = json!({ "name": "apic", "policy": "optional" });
        let cases = [
            (json!({ "enabled": true }), Value::Null, json!([vmx])),
            (json!({}), Value::Null, json!([vmx])),
            (json!({ "enabled": false }), Value::Null, Value::Null),
            (json!({ "enabled": true }), json!([other]), json!([other, vmx])),
            (
                json!({ "enabled": true }),
                json!([{ "name": "vmx", "policy": "forbid" }, other]),
                json!([vmx, other]),
            ),
            (json!({ "enabled": true }), json!([{ "name": "vmx" }]), json!([vmx])),
        ];
        for (evmcs, features, expected) in cases {
            let found = after(&json!({ "evmcs": evmcs }), &json!({ "features": features })).1;
            assert_eq!(found, expected, "{evmcs} {features}");
        }
    }
}
