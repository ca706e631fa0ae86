//! Which nodes can run a VMI, as labels that they must have.

use std::collections::BTreeMap;

use kubevirt_admission::{ClusterConfig, Gate};
use kubevirt_api::names::external::kubernetes;
use kubevirt_api::names::labels;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::features::FeatureState;

use super::{instance, text};

/// Labels that a node must have to run this VMI.
pub(super) fn selector(vmi: &VirtualMachineInstance, config: &ClusterConfig) -> BTreeMap<String, String> {
    let mut all = BTreeMap::from([(labels::NODE_SCHEDULABLE.to_owned(), "true".to_owned())]);
    architecture(vmi, config, &mut all);
    let developer = config.configuration().developer_configuration.as_ref();
    all.extend(developer.and_then(|developer| developer.node_selectors.clone()).unwrap_or_default());
    all.extend(vmi.spec.node_selector.clone().unwrap_or_default());
    let needed = [cpu(vmi), machine(vmi), clock(vmi), security(vmi), hyperv(vmi, config)];
    all.extend(needed.into_iter().flatten().map(|label| (label, "true".to_owned())));
    all
}

/// Guests of any architecture run on any node where the cluster emulates them; the node says which it can.
fn architecture(vmi: &VirtualMachineInstance, config: &ClusterConfig, all: &mut BTreeMap<String, String>) {
    let Some(architecture) = text(&vmi.spec.architecture) else { return };
    if config.enabled(Gate::CrossArchitectureVirtualization) {
        all.insert(format!("{}{architecture}", labels::VM_ARCH_PREFIX), "true".to_owned());
    } else {
        all.insert(kubernetes::ARCH.to_owned(), architecture.to_lowercase());
    }
}

/// The model and the flags of the CPU, CPUs of its own, real-time priority.
fn cpu(vmi: &VirtualMachineInstance) -> Vec<String> {
    let Some(cpu) = &vmi.spec.domain.cpu else { return Vec::new() };
    let mut all = Vec::new();
    if let Some(model) = text(&cpu.model) {
        if !["host-model", "host-passthrough"].contains(&model.as_str()) {
            all.push(format!("{}{model}", labels::CPU_MODEL_PREFIX));
        }
        let required = |policy: Option<&str>| ["", "require"].contains(&policy.unwrap_or_default());
        let features = cpu.features.iter().flatten().filter(|flag| required(flag.policy.as_deref()));
        all.extend(features.map(|flag| format!("{}{}", labels::CPU_FEATURE_PREFIX, flag.name)));
    }
    all.extend(instance::dedicated(vmi).then(|| labels::CPU_MANAGER.to_owned()));
    all.extend(cpu.realtime.as_ref().map(|_| labels::REALTIME.to_owned()));
    all
}

/// The machine type: the one that runs, where the VMI moves, or the one asked for.
fn machine(vmi: &VirtualMachineInstance) -> Vec<String> {
    let running = vmi.status.as_ref().and_then(|status| status.machine.as_ref());
    let kind = running.and_then(|machine| text(&machine.type_));
    let asked = || vmi.spec.domain.machine.as_ref().and_then(|machine| text(&machine.type_));
    kind.or_else(asked).map(|kind| format!("{}{kind}", labels::MACHINE_TYPE_PREFIX)).into_iter().collect()
}

/// The frequency of the time stamp counter, where the guest depends on it and it is known.
fn clock(vmi: &VirtualMachineInstance) -> Vec<String> {
    let cpu = vmi.spec.domain.cpu.as_ref();
    let features = cpu.and_then(|cpu| cpu.features.as_ref()).into_iter().flatten();
    let invariant = features.into_iter().any(|flag| {
        flag.name == "invtsc" && ["require", "force"].contains(&flag.policy.as_deref().unwrap_or_default())
    });
    let hyperv = vmi.spec.domain.features.as_ref().and_then(|features| features.hyperv.as_ref());
    let told = hyperv.is_some_and(|hyperv| enabled(hyperv.reenlightenment.as_ref()));
    let hints = vmi.status.as_ref().and_then(|status| status.topology_hints.as_ref());
    let frequency = hints.and_then(|hints| hints.tsc_frequency).filter(|frequency| *frequency > 0);
    frequency
        .filter(|_| invariant || told)
        .map(|frequency| format!("{}{frequency}", labels::TSC_FREQUENCY_SCHEDULING_PREFIX))
        .into_iter()
        .collect()
}

/// Memory that is kept from the host.
fn security(vmi: &VirtualMachineInstance) -> Vec<String> {
    let Some(security) = instance::launch_security(vmi) else { return Vec::new() };
    let state = security.sev.as_ref().and_then(|sev| sev.policy.as_ref()?.encrypted_state);
    let s390x = vmi.spec.architecture.as_deref() == Some("s390x");
    let all = [
        (security.sev.is_some() || security.snp.is_some(), labels::SEV),
        (state == Some(true), labels::SEV_ES),
        (security.snp.is_some(), labels::SEV_SNP),
        (s390x, labels::SECURE_EXECUTION),
        (security.tdx.is_some(), labels::TDX),
    ];
    all.into_iter().filter(|(needed, _)| *needed).map(|(_, label)| label.to_owned()).collect()
}

/// Help of the kernel for Windows guests, where the cluster checks it.
fn hyperv(vmi: &VirtualMachineInstance, config: &ClusterConfig) -> Vec<String> {
    let features = vmi.spec.domain.features.as_ref().and_then(|features| features.hyperv.as_ref());
    let Some(hyperv) = features.filter(|_| config.enabled(Gate::HypervStrictCheck)) else {
        return Vec::new();
    };
    let timer = hyperv.synictimer.as_ref().is_some_and(|timer| timer.enabled == Some(true));
    let flush = hyperv.tlbflush.as_ref().is_some_and(|flush| flush.enabled == Some(true));
    let all = [
        (enabled(hyperv.vpindex.as_ref()), "vpindex"),
        (enabled(hyperv.runtime.as_ref()), "runtime"),
        (enabled(hyperv.reset.as_ref()), "reset"),
        (enabled(hyperv.synic.as_ref()), "synic"),
        (timer, "synictimer"),
        (enabled(hyperv.frequencies.as_ref()), "frequencies"),
        (enabled(hyperv.reenlightenment.as_ref()), "reenlightenment"),
        (flush, "tlbflush"),
        (enabled(hyperv.ipi.as_ref()), "ipi"),
    ];
    let nested = hyperv.evmcs.as_ref().is_some_and(|evmcs| evmcs.enabled != Some(false));
    let intel = nested.then(|| format!("{}Intel", labels::CPU_VENDOR_PREFIX));
    let all =
        all.into_iter().filter(|(on, _)| *on).map(|(_, name)| format!("{}{name}", labels::HYPERV_PREFIX));
    all.chain(intel).collect()
}

fn enabled(state: Option<&FeatureState>) -> bool {
    state.and_then(|state| state.enabled) == Some(true)
}
