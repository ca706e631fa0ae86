//! Features of the hypervisor: one that is named without a switch is on.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::features::{FeatureHyperv, FeatureState};

use super::architecture;

/// How often a guest tries a lock before it tells the host.
const SPINLOCK_RETRIES: i32 = 4096;

/// Turns on what is named, and ACPI in any case except where there is none.
pub fn set(spec: &mut VirtualMachineInstanceSpec) {
    let has_acpi = !architecture::is_s390x(spec);
    let features = spec.domain.features.get_or_insert_default();
    features.acpi.get_or_insert_default().enabled.get_or_insert(has_acpi);
    if let Some(apic) = &mut features.apic {
        apic.enabled.get_or_insert(true);
    }
    switch_on(&mut features.smm);
    switch_on(&mut features.pvspinlock);
    if let Some(hyperv) = &mut features.hyperv {
        set_hyperv(hyperv);
    }
}

fn set_hyperv(hyperv: &mut FeatureHyperv) {
    for state in [
        &mut hyperv.relaxed,
        &mut hyperv.vapic,
        &mut hyperv.vpindex,
        &mut hyperv.runtime,
        &mut hyperv.synic,
        &mut hyperv.reset,
        &mut hyperv.frequencies,
        &mut hyperv.reenlightenment,
        &mut hyperv.ipi,
        &mut hyperv.evmcs,
    ] {
        switch_on(state);
    }
    if let Some(spinlocks) = &mut hyperv.spinlocks
        && *spinlocks.enabled.get_or_insert(true)
    {
        spinlocks.spinlocks.get_or_insert(SPINLOCK_RETRIES);
    }
    if let Some(timer) = &mut hyperv.synictimer {
        timer.enabled.get_or_insert(true);
        switch_on(&mut timer.direct);
    }
    if let Some(vendor) = &mut hyperv.vendorid {
        vendor.enabled.get_or_insert(true);
    }
    if let Some(flush) = &mut hyperv.tlbflush {
        flush.enabled.get_or_insert(true);
        switch_on(&mut flush.direct);
        switch_on(&mut flush.extended);
    }
}

/// Turns a feature on that is named without saying whether it is on.
pub fn switch_on(state: &mut Option<FeatureState>) {
    if let Some(state) = state {
        state.enabled.get_or_insert(true);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{patched, read};

    fn after(architecture: &str, features: &Value) -> Value {
        let mut spec: VirtualMachineInstanceSpec =
            read(json!({ "architecture": architecture, "domain": { "devices": {}, "features": features } }));
        set(&mut spec);
        serde_json::to_value(spec.domain.features).unwrap()
    }

    #[test]
    fn a_feature_that_is_named_is_on() {
        let on = json!({ "enabled": true });
        let off = json!({ "enabled": false });
        let acpi = |features: Value| patched(&json!({ "acpi": { "enabled": true } }), &features);
        let cases = [
            (Value::Null, acpi(json!({}))),
            (json!({ "acpi": {} }), acpi(json!({}))),
            (json!({ "acpi": off }), json!({ "acpi": off })),
            (
                json!({ "apic": { "endOfInterrupt": true } }),
                acpi(json!({ "apic": { "enabled": true, "endOfInterrupt": true } })),
            ),
            (json!({ "smm": {}, "pvspinlock": off }), acpi(json!({ "smm": on, "pvspinlock": off }))),
            (
                json!({ "kvm": {}, "hypervPassthrough": {} }),
                acpi(json!({ "kvm": {}, "hypervPassthrough": {} })),
            ),
            (
                json!({ "hyperv": { "relaxed": {}, "vapic": {}, "vpindex": {}, "runtime": {}, "synic": {}, "reset": {}, "frequencies": {}, "reenlightenment": {}, "ipi": {}, "evmcs": off } }),
                acpi(
                    json!({ "hyperv": { "relaxed": on, "vapic": on, "vpindex": on, "runtime": on, "synic": on, "reset": on, "frequencies": on, "reenlightenment": on, "ipi": on, "evmcs": off } }),
                ),
            ),
            (
                json!({ "hyperv": { "spinlocks": {}, "synictimer": { "direct": {} }, "vendorid": { "vendorid": "x" }, "tlbflush": { "direct": {}, "extended": off } } }),
                acpi(json!({ "hyperv": {
                    "spinlocks": { "enabled": true, "spinlocks": 4096 },
                    "synictimer": { "enabled": true, "direct": on },
                    "vendorid": { "enabled": true, "vendorid": "x" },
                    "tlbflush": { "enabled": true, "direct": on, "extended": off },
                } })),
            ),
            (json!({ "hyperv": { "spinlocks": off } }), acpi(json!({ "hyperv": { "spinlocks": off } }))),
            (
                json!({ "hyperv": { "spinlocks": { "spinlocks": 8191 } } }),
                acpi(json!({ "hyperv": { "spinlocks": { "enabled": true, "spinlocks": 8191 } } })),
            ),
        ];
        for (features, expected) in cases {
            assert_eq!(after("amd64", &features), expected, "{features}");
        }
    }

    #[test]
    fn s390x_has_no_acpi() {
        assert_eq!(after("s390x", &Value::Null), json!({ "acpi": { "enabled": false } }));
        assert_eq!(after("s390x", &json!({ "acpi": {} })), json!({ "acpi": { "enabled": false } }));
        let on = json!({ "acpi": { "enabled": true } });
        assert_eq!(after("s390x", &on), on);
    }
}
