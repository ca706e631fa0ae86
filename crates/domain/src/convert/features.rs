//! Hypervisor features: what KVM hides or offers, and the Hyper-V enlightenments.

use kubevirt_api::vmi::features::FeatureHyperv;

use super::{Conversion, switch};
use crate::domain::Architecture;
use crate::domain::cpu::{CpuFeature, CpuHints, Hyperv};

/// Retries at a lock when the VMI gives none.
const DEFAULT_SPINLOCKS: u32 = 4096;

/// What the features say about KVM and the interrupt controller.
pub(super) fn hints(c: &mut Conversion<'_>) -> CpuHints {
    let Some(features) = &c.spec.features else { return CpuHints::default() };
    let apic = features.apic.as_ref();
    if c.architecture != Architecture::Amd64 {
        refuse_on_other(c);
        return CpuHints::default();
    }
    CpuHints {
        kvm_hidden: features.kvm.as_ref().is_some_and(|kvm| kvm.hidden == Some(true)),
        pv_spinlock: switch(&features.pvspinlock),
        pv_eoi: apic.and_then(|apic| apic.end_of_interrupt).filter(|eoi| *eoi),
        apic: apic.and_then(|apic| apic.enabled).filter(|enabled| !enabled),
        ..CpuHints::default()
    }
}

/// Hyper-V enlightenments.
pub(super) fn hyperv(c: &mut Conversion<'_>) -> Hyperv {
    let features = c.spec.features.as_ref();
    let timer = c.spec.clock.as_ref().and_then(|clock| clock.timer.as_ref()?.hyperv.as_ref());
    let mut hyperv = Hyperv::default();
    if c.architecture == Architecture::Amd64 {
        let passthrough = features.and_then(|features| features.hyperv_passthrough.as_ref());
        hyperv.passthrough = passthrough.is_some_and(|passthrough| passthrough.enabled == Some(true));
        if let Some(wanted) = features.and_then(|features| features.hyperv.as_ref()) {
            one_by_one(wanted, &mut hyperv);
            vendor(c, wanted, &mut hyperv);
        }
        if let Some(timer) = timer {
            hyperv.switches.push(named("hv-time", timer.present.unwrap_or(true)));
        }
        if !c.is_kvm() {
            refuse_without_kvm(c, &hyperv);
        }
    } else if timer.is_some_and(|timer| timer.present.unwrap_or(true)) {
        c.unsupported("spec.domain.clock.timer.hyperv", "only amd64 machines have it");
    }
    hyperv
}

/// KVM speaks Hyper-V to the guest; without it nobody does.
fn refuse_without_kvm(c: &mut Conversion<'_>, hyperv: &Hyperv) {
    let has_time = hyperv.switches.iter().any(|switch| switch.name == "hv-time" && switch.enabled);
    let mut others = hyperv.switches.iter().filter(|switch| switch.name != "hv-time");
    let any = others.any(|switch| switch.enabled) || hyperv.spinlocks.is_some() || hyperv.vendor_id.is_some();
    let asked = [
        ("spec.domain.features.hypervPassthrough", hyperv.passthrough),
        ("spec.domain.features.hyperv", any),
        ("spec.domain.clock.timer.hyperv", has_time),
    ];
    for (field, _) in asked.into_iter().filter(|(_, asked)| *asked) {
        c.unsupported(field, "it needs KVM");
    }
}

fn one_by_one(wanted: &FeatureHyperv, hyperv: &mut Hyperv) {
    let synictimer = wanted.synictimer.as_ref();
    let tlbflush = wanted.tlbflush.as_ref();
    let all = [
        ("hv-relaxed", switch(&wanted.relaxed)),
        ("hv-vapic", switch(&wanted.vapic)),
        ("hv-vpindex", switch(&wanted.vpindex)),
        ("hv-runtime", switch(&wanted.runtime)),
        ("hv-synic", switch(&wanted.synic)),
        ("hv-stimer", synictimer.map(|timer| timer.enabled.unwrap_or(true))),
        ("hv-stimer-direct", synictimer.and_then(|timer| switch(&timer.direct))),
        ("hv-reset", switch(&wanted.reset)),
        ("hv-frequencies", switch(&wanted.frequencies)),
        ("hv-reenlightenment", switch(&wanted.reenlightenment)),
        ("hv-tlbflush", tlbflush.map(|flush| flush.enabled.unwrap_or(true))),
        ("hv-tlbflush-direct", tlbflush.and_then(|flush| switch(&flush.direct))),
        ("hv-tlbflush-ext", tlbflush.and_then(|flush| switch(&flush.extended))),
        ("hv-ipi", switch(&wanted.ipi)),
        ("hv-evmcs", switch(&wanted.evmcs)),
    ];
    hyperv.switches = all.into_iter().filter_map(|(name, state)| Some(named(name, state?))).collect();
    hyperv.spinlocks = wanted.spinlocks.as_ref().filter(|locks| locks.enabled.unwrap_or(true)).map(|locks| {
        locks
            .spinlocks
            .and_then(|tries| u32::try_from(tries).ok())
            .filter(|tries| *tries > 0)
            .unwrap_or(DEFAULT_SPINLOCKS)
    });
}

fn vendor(c: &mut Conversion<'_>, wanted: &FeatureHyperv, hyperv: &mut Hyperv) {
    let vendor = wanted.vendorid.as_ref().filter(|vendor| vendor.enabled.unwrap_or(true));
    let Some(vendor) = vendor.and_then(|vendor| super::text(&vendor.vendorid)) else { return };
    if vendor.len() > 12 || vendor.contains(',') {
        let field = "spec.domain.features.hyperv.vendorid.vendorid";
        c.unsupported(field, "a vendor has at most 12 characters and no comma");
    }
    hyperv.vendor_id = Some(vendor);
}

fn refuse_on_other(c: &mut Conversion<'_>) {
    let Some(features) = &c.spec.features else { return };
    let architecture = c.architecture.as_str();
    let asked = [
        ("hyperv", features.hyperv.is_some()),
        (
            "hypervPassthrough",
            features.hyperv_passthrough.as_ref().is_some_and(|it| it.enabled == Some(true)),
        ),
        ("kvm", features.kvm.as_ref().is_some_and(|kvm| kvm.hidden == Some(true))),
        ("pvspinlock", switch(&features.pvspinlock) == Some(true)),
        ("apic", features.apic.as_ref().is_some_and(|apic| apic.end_of_interrupt == Some(true))),
    ];
    for (name, _) in asked.into_iter().filter(|(_, asked)| *asked) {
        c.unsupported(
            format!("spec.domain.features.{name}"),
            format_args!("{architecture} machines have no such feature"),
        );
    }
}

fn named(name: &str, enabled: bool) -> CpuFeature {
    CpuFeature { name: name.to_owned(), enabled }
}
