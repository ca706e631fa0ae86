//! Hyper-V enlightenments, some of which need others.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::features::FeatureState;

use crate::{Path, Problems};

/// Whether an enlightenment is on; here one without a word is off.
fn is_on(state: Option<&FeatureState>) -> bool {
    state.is_some_and(|state| state.enabled == Some(true))
}

/// Finds numbers that cannot be, which holds for templates too.
pub(super) fn check_numbers(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let hyperv = spec.domain.features.as_ref().and_then(|features| features.hyperv.as_ref());
    let retries = hyperv.and_then(|hyperv| hyperv.spinlocks.as_ref()?.spinlocks);
    if let Some(retries) = retries.filter(|retries| *retries < 0) {
        let message = format!("a lock cannot be tried {retries} times");
        problems.invalid(&path.at("domain.features.hyperv.spinlocks.spinlocks"), message);
    }
}

/// Everything that is wrong with the enlightenments of an instance, after defaults have been filled in.
pub fn check(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let Some(features) = &spec.domain.features else { return };
    let Some(hyperv) = &features.hyperv else { return };
    let field = path.at("domain.features.hyperv");
    if features.hyperv_passthrough.is_some() {
        problems.invalid(&field, "hypervPassthrough offers all there is; remove it or hyperv");
    }
    let timer = hyperv.synictimer.as_ref().is_some_and(|timer| timer.enabled == Some(true));
    let flush = hyperv.tlbflush.as_ref().is_some_and(|flush| flush.enabled == Some(true));
    let (vapic, vpindex) = (is_on(hyperv.vapic.as_ref()), is_on(hyperv.vpindex.as_ref()));
    let synic = is_on(hyperv.synic.as_ref());
    // The path stands twice, as users of the original know it.
    let nested = field.at("domain.features.hyperv");
    for (name, on, needed, has) in [
        ("evmcs", is_on(hyperv.evmcs.as_ref()), "vapic", vapic),
        ("ipi", is_on(hyperv.ipi.as_ref()), "vpindex", vpindex),
        ("tlbflush", flush, "vpindex", vpindex),
        ("synictimer", timer, "synic", synic),
        ("synic", synic, "vpindex", vpindex),
    ] {
        if on && !has {
            problems.invalid(&nested.at(name), format!("{name} needs {needed}, which is off"));
        }
    }
    if hyperv.evmcs.as_ref().is_some_and(|evmcs| evmcs.enabled.unwrap_or(true)) {
        check_vmx(spec, problems);
    }
}

/// An enlightened VMCS is one of a nested Intel hypervisor, so the guest must have VMX.
fn check_vmx(spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let features = spec.domain.cpu.as_ref().and_then(|cpu| cpu.features.as_deref()).unwrap_or_default();
    let field = Path::new("spec.domain.cpu.features");
    if features.is_empty() {
        problems.required(&field, "evmcs needs the CPU feature vmx with the policy require");
    }
    for (index, feature) in features.iter().enumerate() {
        if feature.name == "vmx" && feature.policy.as_deref() != Some("require") {
            problems.invalid(&field.index(index).at("policy"), "evmcs needs vmx with the policy require");
        }
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_api::vmi::VirtualMachineInstanceSpec;
    use serde_json::{Value, json};

    use super::super::testing::{base, run_domain};
    use crate::testing::{World, assert_fields, patched, read};
    use crate::{Path, Problems};

    #[test]
    fn enlightenments_have_what_they_need() {
        let hyperv = |hyperv: Value| json!({ "features": { "hyperv": hyperv } });
        let (on, off) = (json!({ "enabled": true }), json!({ "enabled": false }));
        let evmcs = |state: Value, features: Value| json!({ "features": { "hyperv": { "evmcs": state, "vapic": { "enabled": true } } }, "cpu": { "features": features } });
        let vmx = |policy: &str| json!([{ "name": "other" }, { "name": "vmx", "policy": policy }]);
        let nested = |name: &str| format!("spec.domain.features.hyperv.domain.features.hyperv.{name}");
        for (name, patch, expected) in [
            ("none", hyperv(json!({})), vec![]),
            ("synic", hyperv(json!({ "synic": on, "vpindex": on })), vec![]),
            ("synic alone", hyperv(json!({ "synic": on })), vec![nested("synic")]),
            ("synic, index off", hyperv(json!({ "synic": on, "vpindex": off })), vec![nested("synic")]),
            ("synic without a word", hyperv(json!({ "synic": {} })), vec![]),
            ("ipi alone", hyperv(json!({ "ipi": on })), vec![nested("ipi")]),
            ("flush alone", hyperv(json!({ "tlbflush": on })), vec![nested("tlbflush")]),
            ("flush", hyperv(json!({ "tlbflush": on, "vpindex": on })), vec![]),
            ("timer alone", hyperv(json!({ "synictimer": on })), vec![nested("synictimer")]),
            ("timer without index", hyperv(json!({ "synictimer": on, "synic": on })), vec![nested("synic")]),
            ("timer", hyperv(json!({ "synictimer": on, "synic": on, "vpindex": on })), vec![]),
            ("evmcs", evmcs(on.clone(), vmx("require")), vec![]),
            ("evmcs without vmx", evmcs(on.clone(), json!([{ "name": "other" }])), vec![]),
            ("evmcs without features", evmcs(on.clone(), json!([])), vec!["spec.domain.cpu.features".into()]),
            (
                "evmcs with vmx off",
                evmcs(on.clone(), vmx("disable")),
                vec!["spec.domain.cpu.features[1].policy".into()],
            ),
            ("evmcs without a word", evmcs(json!({}), json!([])), vec!["spec.domain.cpu.features".into()]),
            ("evmcs off", evmcs(off.clone(), json!([])), vec![]),
            (
                "evmcs without vapic",
                json!({ "features": { "hyperv": { "evmcs": on } }, "cpu": { "features": vmx("require") } }),
                vec![nested("evmcs")],
            ),
            ("passthrough", json!({ "features": { "hypervPassthrough": on } }), vec![]),
            (
                "both",
                json!({ "features": { "hyperv": {}, "hypervPassthrough": on } }),
                vec!["spec.domain.features.hyperv".into()],
            ),
        ] {
            let spec: VirtualMachineInstanceSpec = read(patched(&base(), &json!({ "domain": patch })));
            let mut problems = Problems::default();
            super::check(&Path::new("spec"), &spec, &mut problems);
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            assert_fields(name, &problems, &expected);
        }
    }

    #[test]
    fn locks_are_not_tried_less_than_never() {
        let tries = |tries: i32| json!({ "features": { "hyperv": { "spinlocks": { "spinlocks": tries } } } });
        run_domain(
            &World::default(),
            &[
                ("tries", tries(8191), &[]),
                ("negative", tries(-1), &["spec.domain.features.hyperv.spinlocks.spinlocks"]),
            ],
        );
    }
}
