//! Brings machines, and then their running instances, in line with the template.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{Resource, ResourceExt};
use kubevirt_api::condition;
use kubevirt_api::names::conditions::vmi::READY;
use kubevirt_api::pool::VirtualMachinePoolSpec;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;

use super::decide::{Action, BURST, Observed, Plan, Stage};
use super::{choose, member, revision};

/// When to look again while too many machines are not there.
const PAUSE: Duration = Duration::from_secs(3);

/// Decides which machines change now.
pub fn update(observed: &Observed, machines: &[Arc<VirtualMachine>]) -> Plan {
    let strategy = observed.pool.spec.update_strategy.as_ref();
    if strategy.is_some_and(|it| it.unmanaged.is_some()) {
        return Plan::default();
    }
    let policy = strategy.and_then(|it| it.proactive.as_ref()?.selection_policy.as_ref());
    let staying: Vec<_> =
        machines.iter().filter(|vm| vm.meta().deletion_timestamp.is_none()).cloned().collect();
    let (outdated, current): (Vec<_>, Vec<_>) =
        choose::order(staying, policy).into_iter().partition(|vm| is_outdated(observed, vm));
    let opportunistic = strategy.is_some_and(|it| it.opportunistic.is_some());
    let mut plan = Plan { stage: Stage::Update, ..Plan::default() };
    if !outdated.is_empty() {
        plan.actions = machine_updates(observed, &outdated);
    } else if !opportunistic {
        restart(observed, &current, &mut plan);
    }
    plan
}

fn machine_updates(observed: &Observed, outdated: &[Arc<VirtualMachine>]) -> Vec<Action> {
    let (mut actions, name) = revision::current(observed);
    actions.extend(outdated.iter().take(BURST).filter_map(|seen| {
        let index = member::index(&seen.name_any())?;
        let wanted = Box::new(member::update(seen, &observed.pool, index, &name));
        Some(Action::Update { seen: seen.clone(), wanted })
    }));
    actions
}

fn is_outdated(observed: &Observed, vm: &VirtualMachine) -> bool {
    let then = revision::of(vm).and_then(|name| revision::find(observed, name));
    then.is_none_or(|then| then.virtual_machine_template != observed.pool.spec.virtual_machine_template)
}

/// Restarts instances that run an older template, as many as may be away at a time.
fn restart(observed: &Observed, machines: &[Arc<VirtualMachine>], plan: &mut Plan) {
    let instances: Vec<_> = machines.iter().map(|vm| (vm, (observed.instance)(&vm.name_any()))).collect();
    let away = instances.iter().filter(|(_, vmi)| vmi.as_deref().is_none_or(|vmi| !is_ready(vmi))).count();
    let mut budget = may_be_away(&observed.pool.spec).saturating_sub(away);
    for (vm, vmi) in instances {
        let Some(vmi) = vmi.filter(|vmi| vmi.metadata.deletion_timestamp.is_none()) else { continue };
        let Some(step) = step(observed, vm, &vmi) else { continue };
        // What is not ready anyway costs nothing; a new name on a label costs nothing either.
        let free = !is_ready(&vmi) || matches!(step, Action::Relabel { .. });
        if !free && budget == 0 {
            plan.again = Some(PAUSE);
            continue;
        }
        budget -= usize::from(!free);
        plan.actions.push(step);
    }
}

/// What an instance needs that was made from another revision than its machine.
fn step(observed: &Observed, vm: &Arc<VirtualMachine>, vmi: &Arc<VirtualMachineInstance>) -> Option<Action> {
    let wanted = revision::of(&**vm)?;
    let Some(has) = revision::of(&**vmi) else { return Some(Action::Restart(vmi.clone())) };
    if has == wanted {
        return None;
    }
    let new = revision::find(observed, wanted)?.virtual_machine_template.spec.unwrap_or_default();
    let Some(old) = revision::find(observed, has) else { return Some(Action::Restart(vmi.clone())) };
    let old = old.virtual_machine_template.spec.unwrap_or_default();
    if old.data_volume_templates != new.data_volume_templates {
        return Some(Action::Delete { machine: vm.clone(), foreground: true });
    }
    if old.template != new.template {
        return Some(Action::Restart(vmi.clone()));
    }
    Some(Action::Relabel { instance: vmi.clone(), revision: wanted.to_owned() })
}

fn is_ready(vmi: &VirtualMachineInstance) -> bool {
    let Some(status) = &vmi.status else { return false };
    let ready = condition::find(status.conditions.as_deref(), READY);
    vmi.metadata.deletion_timestamp.is_none()
        && status.phase == Some(VmiPhase::Running)
        && ready.is_some_and(condition::Condition::is_true)
}

fn may_be_away(spec: &VirtualMachinePoolSpec) -> usize {
    let replicas = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
    let most = match &spec.max_unavailable {
        None => replicas,
        Some(IntOrString::Int(count)) => usize::try_from(*count).unwrap_or(0),
        Some(IntOrString::String(text)) => {
            let percent: usize = text.trim_end_matches('%').parse().unwrap_or(0);
            replicas.saturating_mul(percent) / 100
        }
    };
    most.max(1)
}
