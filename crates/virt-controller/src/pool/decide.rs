//! What becomes of a pool's machines: first how many there are, then what they are, then what is left over.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::core::{Selector, SelectorExt};
use kube::{Resource, ResourceExt};
use kubevirt_api::names::{finalizers, reasons};
use kubevirt_api::pool::{StatePreservation, VirtualMachinePool};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;

use super::{choose, member, revision, update};

/// As many machines are made or deleted at a time.
pub const BURST: usize = 250;

/// The finalizer of an object that is deleted after all that it owns.
const FOREGROUND: &str = "foregroundDeletion";

/// Finds the instance of a machine by its name.
pub type FindInstance = Box<dyn Fn(&str) -> Option<Arc<VirtualMachineInstance>> + Send + Sync>;

/// What there is.
pub struct Observed {
    /// The pool.
    pub pool: Arc<VirtualMachinePool>,
    /// What it selects.
    pub selector: Selector,
    /// The machines that say that they belong to it.
    pub machines: Vec<Arc<VirtualMachine>>,
    /// The machines of its namespace that a pool holds and nothing controls: whoever deletes a pool may have its
    /// machines orphaned before we have let go of them.
    pub abandoned: Vec<Arc<VirtualMachine>>,
    /// How the pool looked when machines were made.
    pub revisions: Vec<Arc<ControllerRevision>>,
    /// The instance of a machine.
    pub instance: FindInstance,
    /// Whether there is a machine of this name already, whoever it belongs to.
    pub taken: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

/// Something to be done.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Write the pool with or without our finalizer.
    HoldPool(bool),
    /// Keep how the pool looks now.
    KeepRevision(Box<ControllerRevision>),
    /// Make this machine.
    Create(Box<VirtualMachine>),
    /// Delete a machine; in the foreground if its successor needs its names.
    Delete {
        /// Which.
        machine: Arc<VirtualMachine>,
        /// Wait for what it owns.
        foreground: bool,
    },
    /// Let a machine go that is being deleted, with or without its disks.
    LetGo {
        /// Which.
        machine: Arc<VirtualMachine>,
        /// The disks stay.
        keep_disks: bool,
    },
    /// A machine is not selected any more and belongs to nobody.
    Release(Arc<VirtualMachine>),
    /// Bring a machine in line with the template.
    Update {
        /// As it is.
        seen: Arc<VirtualMachine>,
        /// As it should be.
        wanted: Box<VirtualMachine>,
    },
    /// Have a machine start anew by deleting its instance.
    Restart(Arc<VirtualMachineInstance>),
    /// An instance is as the new revision wants it already.
    Relabel {
        /// Which.
        instance: Arc<VirtualMachineInstance>,
        /// The revision.
        revision: String,
    },
    /// Nobody needs to know how the pool looked then.
    ForgetRevision(String),
}

/// What is being done, for the reason of a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Machines are added.
    #[default]
    ScaleOut,
    /// Machines are taken away.
    ScaleIn,
    /// Machines are changed.
    Update,
    /// Revisions are forgotten.
    Prune,
}

impl Stage {
    /// The reason of a failure in this stage.
    pub fn reason(self) -> &'static str {
        match self {
            Self::ScaleOut => reasons::pool::FAILED_SCALE_OUT,
            Self::ScaleIn => reasons::pool::FAILED_SCALE_IN,
            Self::Update => reasons::pool::FAILED_UPDATE,
            Self::Prune => reasons::pool::FAILED_REVISION_PRUNING,
        }
    }
}

/// What is to be done now. The next look, when the stores have followed, finds what comes after it.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// In this order.
    pub actions: Vec<Action>,
    /// What they are part of.
    pub stage: Stage,
    /// When to look again, though nothing changes.
    pub again: Option<Duration>,
}

impl Plan {
    fn of(stage: Stage, actions: Vec<Action>) -> Self {
        Self { actions, stage, again: None }
    }
}

/// Decides.
pub fn decide(observed: &Observed, now: Timestamp) -> Plan {
    let pool = &observed.pool;
    let held = pool.finalizers().iter().any(|finalizer| finalizer == finalizers::POOL);
    if pool.metadata.deletion_timestamp.is_some() {
        return Plan::of(Stage::ScaleIn, deletion(observed, held));
    }
    if !held {
        return Plan::of(Stage::ScaleOut, vec![Action::HoldPool(true)]);
    }
    let (machines, strangers): (Vec<_>, Vec<_>) =
        observed.machines.iter().cloned().partition(|vm| observed.selector.matches(vm.labels()));
    let parting: Vec<_> = strangers.into_iter().map(Action::Release).chain(abandoned(observed)).collect();
    if !parting.is_empty() {
        return Plan::of(Stage::ScaleIn, parting);
    }
    if pool.spec.paused == Some(true) {
        return Plan::default();
    }
    let healing = heal(observed, &machines, now);
    // Whatever else is to be done, machines may run out of patience meanwhile.
    let patience = healing.again;
    let mut plan = if healing.actions.is_empty() { settle(observed, &machines) } else { healing };
    plan.again = plan.again.into_iter().chain(patience).min();
    plan
}

/// The first of the steps that has something to do.
fn settle(observed: &Observed, machines: &[Arc<VirtualMachine>]) -> Plan {
    let steps = [scale, update::update, prune];
    let mut plans = steps.iter().map(|step| step(observed, machines));
    plans.find(|plan| !plan.actions.is_empty() || plan.again.is_some()).unwrap_or_default()
}

/// Machines that nobody but us would ever let go.
fn abandoned(observed: &Observed) -> impl Iterator<Item = Action> {
    let own = observed.abandoned.iter().filter(|vm| observed.selector.matches(vm.labels())).cloned();
    own.map(|machine| Action::LetGo { machine, keep_disks: false })
}

/// A pool that goes lets its machines go; the cluster's garbage collection deletes them, or not, as the user said.
fn deletion(observed: &Observed, held: bool) -> Vec<Action> {
    let machines = observed.machines.iter().filter(|vm| is_held(vm)).cloned();
    let machines = machines.map(|machine| Action::LetGo { machine, keep_disks: false });
    let mut actions: Vec<_> = machines.chain(abandoned(observed)).collect();
    // They would outlive a pool whose machines are orphaned.
    if actions.is_empty() {
        actions.extend(observed.revisions.iter().map(|kept| Action::ForgetRevision(kept.name_any())));
    }
    if actions.is_empty() && held {
        actions.push(Action::HoldPool(false));
    }
    actions
}

/// Replaces machines that do not come up, and says when the next one will have had its time.
fn heal(observed: &Observed, machines: &[Arc<VirtualMachine>], now: Timestamp) -> Plan {
    let Some(healing) = &observed.pool.spec.autohealing else { return Plan::default() };
    let failing = machines.iter().filter(|vm| !is_leaving(vm));
    let failing = failing.filter_map(|vm| Some((vm, choose::patience(vm, healing, now)?)));
    let (sick, doubtful): (Vec<_>, Vec<_>) = failing.partition(|(_, patience)| patience.is_zero());
    let sick = sick.into_iter().map(|(vm, _)| Action::Delete { machine: vm.clone(), foreground: false });
    let again = doubtful.into_iter().map(|(_, patience)| patience).min();
    Plan { again, ..Plan::of(Stage::ScaleIn, sick.take(BURST).collect()) }
}

/// Makes or deletes machines until there are as many as wanted. Those that are being deleted still count: their
/// names and disks are in use.
fn scale(observed: &Observed, machines: &[Arc<VirtualMachine>]) -> Plan {
    let spec = &observed.pool.spec;
    let gone = leaving(observed, machines);
    if !gone.is_empty() {
        return Plan::of(Stage::ScaleIn, gone);
    }
    let wanted = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
    if machines.len() < wanted {
        let count = (wanted - machines.len()).min(BURST);
        return Plan::of(Stage::ScaleOut, additions(observed, count));
    }
    let strategy = spec.scale_in_strategy.as_ref();
    let by_hand = strategy.is_some_and(|it| it.unmanaged.is_some() || it.opportunistic.is_some());
    let staying: Vec<_> = machines.iter().filter(|vm| !is_leaving(vm)).cloned().collect();
    // Those that leave already are part of the surplus.
    let surplus = staying.len().saturating_sub(wanted).min(BURST);
    if by_hand || surplus == 0 {
        return Plan::default();
    }
    let policy = strategy.and_then(|it| it.proactive.as_ref()?.selection_policy.as_ref());
    let chosen = choose::order(staying, policy).into_iter().take(surplus);
    Plan::of(Stage::ScaleIn, chosen.map(|machine| Action::Delete { machine, foreground: false }).collect())
}

fn additions(observed: &Observed, count: usize) -> Vec<Action> {
    let pool = &observed.pool;
    let (mut actions, name) = revision::current(observed);
    let free = (0usize..).filter(|index| !(observed.taken)(&member::name(pool, *index)));
    actions
        .extend(free.take(count).map(|index| Action::Create(Box::new(member::create(pool, index, &name)))));
    actions
}

/// Machines that are being deleted, by us or somebody else, and still held by us.
fn leaving(observed: &Observed, machines: &[Arc<VirtualMachine>]) -> Vec<Action> {
    let strategy = observed.pool.spec.scale_in_strategy.as_ref();
    let proactive = strategy.and_then(|it| it.proactive.as_ref()?.state_preservation.as_ref());
    let opportunistic = strategy.and_then(|it| it.opportunistic.as_ref()?.state_preservation.as_ref());
    let kept = proactive.or(opportunistic);
    let keep_disks = kept.is_some_and(|kept| *kept != StatePreservation::Disabled);
    let going = machines.iter().filter(|vm| is_leaving(vm) && is_held(vm)).cloned();
    // One that goes last, after all that it owns, takes its disks along: they may be those of another template.
    let goes_last = |vm: &VirtualMachine| vm.finalizers().iter().any(|finalizer| finalizer == FOREGROUND);
    let keeps = |vm: &VirtualMachine| keep_disks && !goes_last(vm);
    going.map(|machine| Action::LetGo { keep_disks: keeps(&machine), machine }).collect()
}

/// Forgets revisions that no machine and no instance was made from.
fn prune(observed: &Observed, machines: &[Arc<VirtualMachine>]) -> Plan {
    let current = revision::name(&observed.pool);
    let used = |name: &str| {
        let of_instance = |vm: &VirtualMachine| {
            (observed.instance)(&vm.name_any()).is_some_and(|vmi| revision::of(&*vmi) == Some(name))
        };
        name == current || machines.iter().any(|vm| revision::of(&**vm) == Some(name) || of_instance(vm))
    };
    let unused = observed.revisions.iter().map(|revision| revision.name_any()).filter(|name| !used(name));
    Plan::of(Stage::Prune, unused.map(Action::ForgetRevision).collect())
}

fn is_leaving(vm: &VirtualMachine) -> bool {
    vm.meta().deletion_timestamp.is_some()
}

fn is_held(vm: &VirtualMachine) -> bool {
    vm.finalizers().iter().any(|finalizer| finalizer == finalizers::POOL)
}

#[cfg(test)]
mod tests;
