//! Which instances a replica set makes, deletes, takes over and lets go.

use std::cmp::Reverse;
use std::sync::Arc;

use kube::core::{Selector, SelectorExt};
use kube::{Resource, ResourceExt};
use kubevirt_api::condition;
use kubevirt_api::names::conditions::vmi as conditions;
use kubevirt_api::names::reasons::vmi as reasons;
use kubevirt_api::replica_set::VirtualMachineInstanceReplicaSet;
use kubevirt_api::vmi::VirtualMachineInstance;

use crate::owned::{controller_reference, suffix};

/// As many instances are made, deleted or claimed at a time.
const BURST: usize = 250;

/// What there is.
pub struct Observed {
    /// The set.
    pub set: Arc<VirtualMachineInstanceReplicaSet>,
    /// What it selects.
    pub selector: Selector,
    /// The instances that say that they belong to it.
    pub members: Vec<Arc<VirtualMachineInstance>>,
    /// The instances of its namespace that belong to nobody.
    pub orphans: Vec<Arc<VirtualMachineInstance>>,
    /// Whether there is an instance of this name already, whoever it belongs to.
    pub taken: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

/// What is to be done now. The next look, when the stores have followed, finds what comes after it.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Settle first which instances are the set's. Others may want the same ones, so whoever loses must find that out
    /// before it counts or deletes any.
    Claim(Vec<Claim>),
    /// Make and delete instances until there are as many as wanted.
    Scale(Vec<Action>),
}

/// A change of whose an instance is.
#[derive(Debug, PartialEq)]
pub enum Claim {
    /// Take over an instance that belongs to nobody.
    Adopt(Arc<VirtualMachineInstance>),
    /// Let go of an instance that is not selected any more.
    Release(Arc<VirtualMachineInstance>),
}

/// A change of how many instances there are.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Make this instance.
    Create(Box<VirtualMachineInstance>),
    /// Delete an instance, since there are too many.
    DeleteSurplus(Arc<VirtualMachineInstance>),
    /// Delete an instance that will not run again.
    DeleteFinished(Arc<VirtualMachineInstance>),
}

/// What is to be done, and what there is before it.
#[derive(Debug, PartialEq)]
pub struct Plan {
    /// What is to be done.
    pub step: Step,
    /// Instances that run or will.
    pub replicas: usize,
    /// Those of them that are ready.
    pub ready: usize,
    /// More of them than wanted, or fewer.
    pub surplus: i64,
}

/// Decides.
pub fn decide(observed: &Observed) -> Plan {
    let set = &observed.set;
    let (members, strangers): (Vec<_>, Vec<_>) =
        observed.members.iter().cloned().partition(|vmi| is_selected(observed, vmi));
    let (active, rest): (Vec<_>, Vec<_>) = members.into_iter().partition(|vmi| is_active(vmi));
    let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(0);
    let ready = active.iter().filter(|vmi| is_ready(vmi)).count();
    let replicas = active.len();
    let leaving = set.metadata.deletion_timestamp.is_some();
    let claims = if leaving { vec![] } else { claims(observed, strangers) };
    let step = if !claims.is_empty() {
        Step::Claim(claims)
    } else if leaving || set.spec.paused == Some(true) {
        Step::Scale(vec![])
    } else {
        let mut actions = scale(observed, active, wanted);
        let finished = rest.into_iter().filter(|vmi| !is_leaving(vmi)).take(BURST);
        actions.extend(finished.map(Action::DeleteFinished));
        Step::Scale(actions)
    };
    Plan { step, replicas, ready, surplus: replicas as i64 - wanted as i64 }
}

fn claims(observed: &Observed, strangers: Vec<Arc<VirtualMachineInstance>>) -> Vec<Claim> {
    let orphans = observed.orphans.iter().filter(|vmi| !is_leaving(vmi) && is_selected(observed, vmi));
    let adopted = orphans.cloned().map(Claim::Adopt);
    strangers.into_iter().map(Claim::Release).chain(adopted).take(BURST).collect()
}

fn is_selected(observed: &Observed, vmi: &VirtualMachineInstance) -> bool {
    observed.selector.matches(vmi.labels())
}

fn scale(observed: &Observed, mut active: Vec<Arc<VirtualMachineInstance>>, wanted: usize) -> Vec<Action> {
    if active.len() < wanted {
        let missing = (wanted - active.len()).min(BURST);
        return new_names(observed, missing)
            .map(|name| Action::Create(create(&observed.set, name)))
            .collect();
    }
    // Who is asked to go should be missed the least: what serves nobody yet, then what came last.
    active.sort_by_key(|vmi| {
        let born = vmi.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (is_ready(vmi), Reverse(born), vmi.name_any())
    });
    let surplus = (active.len() - wanted).min(BURST);
    active.into_iter().take(surplus).map(Action::DeleteSurplus).collect()
}

/// Names that follow from the set: a store that lags behind leads to the same names, and so to nothing twice.
fn new_names(observed: &Observed, count: usize) -> impl Iterator<Item = String> {
    let set = &observed.set;
    let uid = set.uid().unwrap_or_default();
    let base = base_name(set);
    (0u64..)
        .map(move |number| format!("{base}{}", suffix(&uid, number)))
        .filter(|name| !(observed.taken)(name))
        .take(count)
}

fn base_name(set: &VirtualMachineInstanceReplicaSet) -> String {
    let template = set.spec.template.metadata.as_ref();
    let given = template.and_then(|meta| {
        let name = meta.name.as_ref().filter(|name| !name.is_empty());
        name.or(meta.generate_name.as_ref()).filter(|name| !name.is_empty())
    });
    given.cloned().unwrap_or_else(|| set.name_any())
}

fn create(set: &VirtualMachineInstanceReplicaSet, name: String) -> Box<VirtualMachineInstance> {
    let template = &set.spec.template;
    let mut vmi = VirtualMachineInstance::new(&name, template.spec.clone().unwrap_or_default());
    vmi.metadata = template.metadata.clone().unwrap_or_default();
    vmi.metadata.generate_name = None;
    vmi.metadata.name = Some(name);
    vmi.metadata.namespace = set.namespace();
    vmi.metadata.owner_references = Some(vec![controller_reference(set)]);
    Box::new(vmi)
}

fn is_leaving(vmi: &VirtualMachineInstance) -> bool {
    vmi.meta().deletion_timestamp.is_some()
}

fn is_ready(vmi: &VirtualMachineInstance) -> bool {
    ready(vmi).is_some_and(condition::Condition::is_true)
}

fn is_active(vmi: &VirtualMachineInstance) -> bool {
    let pod_goes = ready(vmi).is_some_and(|ready| {
        ready.status == "False" && ready.reason.as_deref() == Some(reasons::POD_TERMINATING)
    });
    !vmi.is_final() && !is_leaving(vmi) && !pod_goes
}

fn ready(vmi: &VirtualMachineInstance) -> Option<&condition::Condition> {
    condition::find(vmi.status.as_ref()?.conditions.as_deref(), conditions::READY)
}

#[cfg(test)]
mod tests;
