//! The features of the hypervisor that a preference turns on or off.

use kubevirt_api::preference::VirtualMachinePreferenceSpec;
use kubevirt_api::vmi::domain::DomainSpec;
use kubevirt_api::vmi::features::FeatureHyperv;

use super::super::{fill, overlay};

/// Fills in features.
pub(super) fn apply(preference: &VirtualMachinePreferenceSpec, domain: &mut DomainSpec) {
    let Some(preferred) = &preference.features else { return };
    let own = domain.features.get_or_insert_default();
    // Users see ACPI as always there, so its absence says nothing.
    overlay(&mut own.acpi, &preferred.preferred_acpi);
    fill(&mut own.apic, &preferred.preferred_apic);
    fill(&mut own.kvm, &preferred.preferred_kvm);
    fill(&mut own.pvspinlock, &preferred.preferred_pvspinlock);
    fill(&mut own.smm, &preferred.preferred_smm);
    if let Some(preferred) = &preferred.preferred_hyperv {
        hyperv(preferred, own.hyperv.get_or_insert_default());
    }
}

fn hyperv(preferred: &FeatureHyperv, own: &mut FeatureHyperv) {
    fill(&mut own.relaxed, &preferred.relaxed);
    fill(&mut own.vapic, &preferred.vapic);
    fill(&mut own.spinlocks, &preferred.spinlocks);
    fill(&mut own.vpindex, &preferred.vpindex);
    fill(&mut own.runtime, &preferred.runtime);
    fill(&mut own.synic, &preferred.synic);
    fill(&mut own.synictimer, &preferred.synictimer);
    fill(&mut own.reset, &preferred.reset);
    fill(&mut own.vendorid, &preferred.vendorid);
    fill(&mut own.frequencies, &preferred.frequencies);
    fill(&mut own.reenlightenment, &preferred.reenlightenment);
    fill(&mut own.tlbflush, &preferred.tlbflush);
    fill(&mut own.ipi, &preferred.ipi);
    fill(&mut own.evmcs, &preferred.evmcs);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::assert_applied;

    #[test]
    fn each_feature_is_used_unless_the_instance_sets_it() {
        let features = |features: Value| json!({ "domain": { "features": features } });
        let (on, off) = (json!({ "enabled": true }), json!({ "enabled": false }));
        for (preferred, own) in
            [("preferredApic", "apic"), ("preferredPvspinlock", "pvspinlock"), ("preferredSmm", "smm")]
        {
            let preference = json!({ "features": { preferred: on } });
            assert_applied([
                ("open", preference.clone(), json!({}), features(json!({ own: on }))),
                ("set", preference, features(json!({ own: off })), json!({})),
            ]);
        }
        let kvm = json!({ "features": { "preferredKvm": { "hidden": true } } });
        let acpi = json!({ "features": { "preferredAcpi": on } });
        assert_applied([
            ("kvm", kvm.clone(), json!({}), features(json!({ "kvm": { "hidden": true } }))),
            ("own kvm", kvm, features(json!({ "kvm": {} })), json!({})),
            ("acpi", acpi.clone(), json!({}), features(json!({ "acpi": on }))),
            ("own acpi", acpi, features(json!({ "acpi": off })), features(json!({ "acpi": on }))),
        ]);
    }

    #[test]
    fn enlightenments_are_mixed_with_those_of_the_instance() {
        let hyperv = |hyperv: Value| json!({ "domain": { "features": { "hyperv": hyperv } } });
        let names = [
            "relaxed",
            "vapic",
            "spinlocks",
            "vpindex",
            "runtime",
            "synic",
            "synictimer",
            "reset",
            "vendorid",
            "frequencies",
            "reenlightenment",
            "tlbflush",
            "ipi",
            "evmcs",
        ];
        for name in names {
            let preference = json!({ "features": { "preferredHyperv": { name: { "enabled": true } } } });
            assert_applied([
                ("open", preference.clone(), json!({}), hyperv(json!({ name: { "enabled": true } }))),
                ("set", preference.clone(), hyperv(json!({ name: { "enabled": false } })), json!({})),
            ]);
            let other = if name == "ipi" { "evmcs" } else { "ipi" };
            assert_applied([(
                "beside",
                preference,
                hyperv(json!({ other: {} })),
                hyperv(json!({ other: {}, name: { "enabled": true } })),
            )]);
        }
    }
}
