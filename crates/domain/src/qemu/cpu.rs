//! CPU model, flags, topology and IO threads.

use super::args::{Args, Object, escape, on_off};
use super::names;
use crate::domain::Domain;
use crate::domain::devices::PanicDevice;

pub(super) fn add(domain: &Domain, args: &mut Args) {
    args.option("-cpu", model(domain));
    let topology = &domain.cpu.topology;
    let mut smp = format!("cpus={}", topology.vcpus());
    if topology.max_sockets > topology.sockets {
        smp.push_str(&format!(",maxcpus={}", topology.max_vcpus()));
    }
    let (sockets, cores, threads) = (topology.max_sockets, topology.cores, topology.threads);
    args.option("-smp", format!("{smp},sockets={sockets},cores={cores},threads={threads}"));
    for number in 1..=domain.io_threads {
        args.object("-object", &Object::qom("iothread", names::io_thread(number)));
    }
}

fn model(domain: &Domain) -> String {
    let cpu = &domain.cpu;
    let mut parts = vec![escape(&cpu.model)];
    let mut flag = |name: &str, on: bool| parts.push(format!("{}={}", escape(name), on_off(on)));
    for feature in &cpu.features {
        flag(&feature.name, feature.enabled);
    }
    let hints = &cpu.hints;
    if hints.kvm_hidden {
        flag("kvm", false);
    }
    let kvm = domain.is_kvm();
    let switches = [
        ("kvmclock", hints.kvm_clock.filter(|_| kvm)),
        ("kvm-pv-unhalt", hints.pv_spinlock.filter(|_| kvm)),
        ("kvm-pv-eoi", hints.pv_eoi.filter(|_| kvm)),
        ("kvm-hint-dedicated", Some(true).filter(|_| kvm && hints.dedicated)),
        ("pmu", hints.pmu),
        ("apic", hints.apic),
    ];
    for (name, on) in switches.into_iter().filter_map(|(name, on)| Some((name, on?))) {
        flag(name, on);
    }
    let hyperv = &cpu.hyperv;
    if hyperv.passthrough {
        flag("hv-passthrough", true);
    }
    for switch in &hyperv.switches {
        flag(&switch.name, switch.enabled);
    }
    if domain.devices.panic.contains(&PanicDevice::Hyperv) {
        flag("hv-crash", true);
    }
    if let Some(tries) = hyperv.spinlocks {
        parts.push(format!("hv-spinlocks={tries:#x}"));
    }
    if let Some(vendor) = &hyperv.vendor_id {
        parts.push(format!("hv-vendor-id={}", escape(vendor)));
    }
    if let Some(frequency) = cpu.tsc_frequency {
        parts.push(format!("tsc-frequency={frequency}"));
    }
    parts.join(",")
}
