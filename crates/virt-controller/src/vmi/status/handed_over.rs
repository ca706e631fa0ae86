//! An instance that its node looks after: the node leads, and the controller adds what the node cannot see.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kubevirt_api::condition;
use kubevirt_api::names::conditions::vmi::{HOT_MEMORY_CHANGE, HOT_VCPU_CHANGE, VOLUMES_CHANGE};
use kubevirt_api::names::labels;
use kubevirt_api::quantity::Amount;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{VirtualMachineInstanceStatus, VmiPhase};

use crate::context::claim_name;
use crate::vmi::observe::Observed;
use crate::vmi::plan::Plan;
use crate::vmi::{conditions, network, pods, volume_status};

/// Its node has not reported a running guest yet.
pub fn update_scheduled(
    observed: &Observed,
    vmi: &mut VirtualMachineInstance,
    plan: &mut Plan,
    now: Timestamp,
) {
    let status = vmi.status.get_or_insert_default();
    let receives = observed.is_receiver();
    let has_failed = status.migration_state.as_ref().and_then(|state| state.failed) == Some(true);
    let pod = observed.launcher().filter(|pod| !receives || !(pods::is_down(pod) || has_failed));
    match pod {
        Some(pod) => volume_status::update(observed, pod, status, plan),
        None if receives => {
            status.phase = Some(VmiPhase::WaitingForSync);
            if let Some(state) = &mut status.migration_state {
                state.failed = Some(true);
                state.completed = Some(true);
                state.end_timestamp.get_or_insert(Time(now));
            }
        }
        None => status.phase = Some(VmiPhase::Failed),
    }
}

/// Its guest runs.
pub fn update_running(
    observed: &Observed,
    vmi: &mut VirtualMachineInstance,
    plan: &mut Plan,
    now: Timestamp,
) {
    let status = vmi.status.get_or_insert_default();
    let Some(pod) = observed.launcher() else {
        status.phase = Some(VmiPhase::Failed);
        return;
    };
    if pods::phase(pod) == "Succeeded" && has_left_the_cluster(status) {
        status.phase = Some(VmiPhase::Succeeded);
        return;
    }
    volume_status::update(observed, pod, status, plan);
    network::update(&observed.vmi, pod, status);
    plug_cpus(&observed.vmi, status, now);
    exchange_volumes(&observed.vmi, status, now);
    if !is_migrating(status) && network::update_migration_required(&observed.vmi, pod, status, now) {
        plan.recheck = Some(network::RECHECK);
    }
    plug_memory(observed, vmi, now);
}

fn has_left_the_cluster(status: &VirtualMachineInstanceStatus) -> bool {
    let Some(state) = status.migration_state.as_ref().filter(|state| state.completed == Some(true)) else {
        return false;
    };
    let source = state.source_state.as_ref().map(|source| source.sync_address.is_some());
    let target = state.target_state.as_ref().map(|target| target.sync_address.is_some());
    // Each side knows only the address of the other.
    matches!((source, target), (Some(source), Some(target)) if source != target)
}

fn is_migrating(status: &VirtualMachineInstanceStatus) -> bool {
    let state = status.migration_state.as_ref();
    state.is_some_and(|state| state.start_timestamp.is_some() && state.end_timestamp.is_none())
}

/// What has to happen is told by a condition, which its doer takes away.
fn ask_for(type_: &str, status: &mut VirtualMachineInstanceStatus, now: Timestamp) {
    if condition::find(status.conditions.as_deref(), type_).is_none() {
        conditions::set(&mut status.conditions, conditions::new(type_, true, "", ""), now);
    }
}

fn plug_cpus(vmi: &VirtualMachineInstance, status: &mut VirtualMachineInstanceStatus, now: Timestamp) {
    let count = |parts: [Option<i32>; 3]| {
        parts.into_iter().flatten().filter(|part| *part > 0).map(i64::from).product::<i64>()
    };
    let Some(cpu) = vmi.spec.domain.cpu.as_ref().filter(|cpu| cpu.max_sockets.unwrap_or_default() > 0) else {
        return;
    };
    let Some(has) = &status.current_cpu_topology else { return };
    let has = count([has.cores, has.sockets, has.threads]);
    if count([cpu.cores, cpu.sockets, cpu.threads]) != has {
        ask_for(HOT_VCPU_CHANGE, status, now);
    }
}

fn plug_memory(observed: &Observed, vmi: &mut VirtualMachineInstance, now: Timestamp) {
    let Some(memory) = vmi.spec.domain.memory.as_ref().filter(|memory| memory.max_guest.is_some()) else {
        return;
    };
    let bytes = |quantity| Amount::of(quantity).ok().map(Amount::value);
    let wanted = memory.guest.as_ref().and_then(bytes);
    let status = vmi.status.get_or_insert_default();
    let asked = status.memory.as_ref().and_then(|memory| memory.guest_requested.as_ref());
    if wanted.is_none() || status.memory.is_none() || asked.and_then(bytes) == wanted {
        return;
    }
    ask_for(HOT_MEMORY_CHANGE, status, now);
    if let Some(ratio) = &observed.config.configuration().additional_guest_memory_overhead_ratio {
        vmi.labels_mut().insert(labels::MEMORY_HOTPLUG_OVERHEAD_RATIO.to_owned(), ratio.clone());
    }
}

/// Volumes that were announced as exchanged, while the instance names others too.
fn exchange_volumes(vmi: &VirtualMachineInstance, status: &mut VirtualMachineInstanceStatus, now: Timestamp) {
    let exchanged = status.migrated_volumes.as_deref().unwrap_or_default();
    if exchanged.is_empty() || condition::find(status.conditions.as_deref(), VOLUMES_CHANGE).is_some() {
        return;
    }
    let sources = exchanged.iter().filter_map(|it| it.source_pvc_info.as_ref()?.claim_name.as_deref());
    let sources: Vec<&str> = sources.collect();
    let volumes = vmi.spec.volumes.as_deref().unwrap_or_default();
    if volumes.iter().filter_map(claim_name).any(|claim| !sources.contains(&claim)) {
        let condition = conditions::new(VOLUMES_CHANGE, true, "", "migrate volumes");
        conditions::set(&mut status.conditions, condition, now);
    }
}
