//! Virtual CPUs: topology, model and flags.

use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vmi::cpu::CpuFeature as FeatureSpec;

use super::{Conversion, features};
use crate::domain::Architecture;
use crate::domain::cpu::{Cpu, CpuFeature, CpuHints, Topology};

/// Most virtual CPUs of any machine that QEMU makes.
const MAX_VCPUS: u32 = 4096;

/// Sockets, cores and threads; from the CPU request where the VMI gives none.
pub(super) fn topology(c: &mut Conversion<'_>) -> Topology {
    let cpu = c.spec.cpu.clone().unwrap_or_default();
    let number =
        |value: Option<i32>| value.and_then(|value| u32::try_from(value).ok()).filter(|value| *value > 0);
    let (sockets, cores, threads) = (number(cpu.sockets), number(cpu.cores), number(cpu.threads));
    let mut topology = Topology {
        sockets: sockets.unwrap_or(1),
        max_sockets: 1,
        cores: cores.unwrap_or(1),
        threads: threads.unwrap_or(1),
    };
    if sockets.or(cores).or(threads).is_none() {
        topology.sockets = from_resources(c).unwrap_or(1);
    }
    topology.max_sockets = topology.sockets;
    if let Some(most) = number(cpu.max_sockets) {
        match c.architecture {
            Architecture::Arm64 => {}
            _ if most < topology.sockets => {
                c.unsupported("spec.domain.cpu.maxSockets", "it is less than the number of sockets");
            }
            _ => topology.max_sockets = most,
        }
    }
    if topology.max_vcpus() > MAX_VCPUS {
        c.unsupported("spec.domain.cpu", format_args!("a machine has at most {MAX_VCPUS} virtual CPUs"));
        topology = Topology::default();
    }
    topology
}

/// Model, flags and hints.
pub(super) fn convert(c: &mut Conversion<'_>) -> Cpu {
    let (model, mut features) = model(c);
    for (index, feature) in c.spec.cpu.iter().flat_map(|cpu| cpu.features.iter().flatten()).enumerate() {
        if let Some(feature) = policy(c, index, feature) {
            features.retain(|known| known.name != feature.name);
            features.push(feature);
        }
    }
    Cpu {
        asked: asked(c),
        model,
        features,
        topology: c.topology,
        hints: hints(c),
        hyperv: features::hyperv(c),
        tsc_frequency: tsc_frequency(c),
    }
}

/// Model and flags in the words of the VMI.
fn asked(c: &Conversion<'_>) -> String {
    let Some(cpu) = &c.spec.cpu else { return String::new() };
    let flags = cpu
        .features
        .iter()
        .flatten()
        .map(|feature| format!(",{}={}", feature.name, feature.policy.as_deref().unwrap_or_default()));
    cpu.model.clone().into_iter().chain(flags).collect()
}

fn from_resources(c: &Conversion<'_>) -> Option<u32> {
    let resources = c.spec.resources.as_ref()?;
    let limit = resources.limits.as_ref().and_then(|limits| limits.get("cpu"));
    let request = resources.requests.as_ref().and_then(|requests| requests.get("cpu"));
    let cpus = limit.or(request)?.bytes().ok()?;
    u32::try_from(cpus).ok().filter(|cpus| *cpus > 0)
}

/// QEMU's name of the model, and the flags in which the host differs from it.
fn model(c: &mut Conversion<'_>) -> (String, Vec<CpuFeature>) {
    let asked = c.spec.cpu.as_ref().and_then(|cpu| cpu.model.as_deref()).filter(|model| !model.is_empty());
    let own = if c.is_kvm() { "host" } else { "max" };
    let foreign = c.architecture != c.host.architecture;
    let asked = asked.unwrap_or("host-model");
    if c.spec.launch_security.as_ref().is_some_and(|security| security.tdx.is_some()) {
        if !matches!(asked, "host-model" | "host-passthrough") {
            c.unsupported("spec.domain.cpu.model", "a TDX guest has the host's CPU");
        }
        return (own.into(), Vec::new());
    }
    match asked {
        "host-passthrough" => (own.into(), Vec::new()),
        "host-model" => match &c.host.cpu.model {
            Some(model) if !foreign && c.architecture == Architecture::Amd64 => {
                let required = c.host.cpu.require.iter().map(|name| flag(name, true));
                let disabled = c.host.cpu.disable.iter().map(|name| flag(name, false));
                (model.clone(), required.chain(disabled).collect())
            }
            _ => (own.into(), Vec::new()),
        },
        // Named models were defined with this flag when hosts had it; later hosts do not.
        named if c.architecture == Architecture::Amd64 => (named.to_owned(), vec![flag("mpx", false)]),
        named => (named.to_owned(), Vec::new()),
    }
}

/// What a flag's policy comes to on this host.
fn policy(c: &mut Conversion<'_>, index: usize, feature: &FeatureSpec) -> Option<CpuFeature> {
    let field = format!("spec.domain.cpu.features[{index}]");
    let known = !c.host.cpu.features.is_empty();
    let name = qemu_name(&feature.name);
    let has = c.host.cpu.features.iter().any(|feature| qemu_name(feature) == name);
    match feature.policy.as_deref().unwrap_or("require") {
        "force" => Some(flag(&name, true)),
        "" | "require" => {
            if known && !has {
                c.unsupported(field, format_args!("the host's CPU has no {name}"));
            }
            Some(flag(&name, true))
        }
        "optional" => (has || !known).then(|| flag(&name, true)),
        "disable" => Some(flag(&name, false)),
        "forbid" => {
            if has {
                c.unsupported(field, format_args!("the host's CPU has {name}, which the machine forbids"));
            }
            Some(flag(&name, false))
        }
        other => {
            c.unsupported(format!("{field}.policy"), format_args!("{other:?} is not known"));
            None
        }
    }
}

fn hints(c: &mut Conversion<'_>) -> CpuHints {
    let kvm_timer = c.spec.clock.as_ref().and_then(|clock| clock.timer.as_ref()?.kvm.as_ref());
    let kvm_clock = kvm_timer.map(|timer| timer.present.unwrap_or(true));
    let is_tdx = c.spec.launch_security.as_ref().is_some_and(|security| security.tdx.is_some());
    let x86 = c.architecture == Architecture::Amd64;
    let mut hints = features::hints(c);
    hints.kvm_clock = kvm_clock;
    hints.dedicated = x86 && c.has_dedicated_cpus();
    hints.pmu = (c.is_realtime() || is_tdx).then_some(false);
    hints
}

/// The frequency is fixed only where a guest depends on it.
fn tsc_frequency(c: &Conversion<'_>) -> Option<i64> {
    let hints = c.vmi.status.as_ref()?.topology_hints.as_ref()?;
    let invariant = c.spec.cpu.iter().flat_map(|cpu| cpu.features.iter().flatten()).any(|feature| {
        feature.name == "invtsc" && matches!(feature.policy.as_deref(), None | Some("" | "require"))
    });
    let hyperv = c.spec.features.as_ref().and_then(|features| features.hyperv.as_ref());
    let reenlightened = hyperv.is_some_and(|hyperv| super::switch(&hyperv.reenlightenment) == Some(true));
    hints.tsc_frequency.filter(|_| invariant || reenlightened)
}

fn flag(name: &str, enabled: bool) -> CpuFeature {
    CpuFeature { name: qemu_name(name), enabled }
}

/// Users write flags as libvirt does, which differs from QEMU in underscores and one name.
fn qemu_name(name: &str) -> String {
    match name {
        "pclmuldq" => "pclmulqdq".into(),
        name => name.replace('_', "-"),
    }
}
