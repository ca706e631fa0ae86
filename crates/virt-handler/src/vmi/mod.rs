//! The instances of this node: what is known of each, what to do about it, and what to tell of it.
//!
//! [`observe`] gathers, [`decide`] decides, [`apply`] does and [`status`] describes. Between the first and the last
//! nothing is written to the API, so an instance on its way to Running is written once.

mod agent;
mod apply;
mod checksums;
mod conditions;
mod decide;
mod events;
mod fate;
mod interfaces;
mod memory;
mod migratable;
mod observe;
mod options;
mod phase;
mod plugging;
mod status;
mod telling;
#[cfg(test)]
mod testing;
mod tracking;
mod volumes;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube::{Api, Client};
use kubevirt_admission::ClusterConfig;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_component::events::Kind;
use kubevirt_component::{Configuration, NamespacedName, Next, Queue, Recorder, Store, patch};
use kubevirt_launcher_rpc::cmd::Topology;

use crate::domains::{Domains, Owner};
use crate::downward_metrics::Tellers;
use crate::launchers::folders::Opened;
use crate::launchers::{Contact, Launchers, Notice};
use crate::metrics::Own;
use crate::prepare::Folders;
pub use decide::{Plan, Step, decide};
use events::Say;
use fate::Fate;
use memory::Memory;
pub use observe::{Observed, Reach};
pub use options::topology;
use status::Facts;

/// Everything that is needed to look after the instances of a node.
pub struct Instances {
    /// The node.
    pub node: String,
    /// The API.
    pub client: Client,
    /// Instances that were given to this node.
    pub here: Store<VirtualMachineInstance>,
    /// Instances that are on their way to it.
    pub coming: Store<VirtualMachineInstance>,
    /// Their domains.
    pub domains: Arc<Domains>,
    /// Their launchers.
    pub launchers: Arc<Launchers>,
    /// What is to be looked at.
    pub queue: Queue,
    /// Where things lie on the node.
    pub folders: Folders,
    /// Tells users what happens.
    pub recorder: Recorder,
    /// What the installation is set to.
    pub configuration: Configuration,
    /// The NUMA nodes of this host.
    pub topology: Topology,
    /// What QEMU was asked on this node, as launchers are told; empty if it was not.
    pub qemu: Vec<u8>,
    /// Whether this node's CPU has a name that other nodes know.
    pub host_model: Arc<AtomicBool>,
    /// What the handler counts.
    pub own: Own,
    /// Whoever tells guests of their host.
    pub tellers: Tellers,
    /// What is remembered, by the UID of the instance.
    pub memory: Memories,
}

/// What is remembered of all instances, by UID; clones are the same.
#[derive(Clone, Default)]
pub struct Memories(Arc<Mutex<BTreeMap<String, Memory>>>);

impl Memories {
    /// What is remembered of an instance; nothing of one that is not known.
    fn of(&self, uid: &str) -> Memory {
        self.lock().get(uid).cloned().unwrap_or_default()
    }

    /// Changes what is remembered of an instance.
    fn change<T>(&self, uid: &str, change: impl FnOnce(&mut Memory) -> T) -> T {
        change(self.lock().entry(uid.to_owned()).or_default())
    }

    /// Changes what is remembered of an instance, unless it was forgotten meanwhile.
    fn change_known(&self, uid: &str, change: impl FnOnce(&mut Memory)) {
        if let Some(known) = self.lock().get_mut(uid) {
            change(known);
        }
    }

    fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Memory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why an instance has to be looked at again.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// The API did not take what we tell.
    #[error("the instance cannot be written: {0}")]
    Api(#[from] kube::Error),
    /// The wish could not be carried out.
    #[error("{0}")]
    Wish(String),
    /// The node is in the way.
    #[error("the node cannot be looked after: {0}")]
    Node(#[from] std::io::Error),
}

/// What came of a step.
#[derive(Debug, Default)]
struct Outcome {
    /// What users are told.
    say: Vec<Say>,
    /// What became of the wish.
    fate: Fate,
    /// When to look again.
    again: Option<Duration>,
}

impl Instances {
    /// Looks after all instances of this name. There may be several: one may just have taken another's place.
    pub async fn look_after(&self, key: &NamespacedName) -> Result<Next, LookError> {
        let vmi = self.find(key).await?;
        let current = vmi.as_ref().and_then(|vmi| vmi.metadata.uid.clone());
        let mut uids: BTreeSet<String> =
            self.domains.owners(key).into_iter().map(|owner| owner.uid).collect();
        uids.extend(current.clone());
        let mut next: Option<Duration> = None;
        let mut failure = None;
        for uid in uids {
            let vmi = vmi.clone().filter(|_| current.as_ref() == Some(&uid));
            match self.look_at(key, &uid, vmi).await {
                Ok(again) => next = next.into_iter().chain(again).min(),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(LookError::Api(error)) if patch::is_conflict(&error) => {
                // Somebody else was faster. We hear of it, and look again.
                tracing::debug!(vmi = %key, "the instance has changed meanwhile");
                Ok(Next::After(Duration::from_millis(200)))
            }
            Some(error) => Err(error),
            None => Ok(next.map_or(Next::Wait, Next::After)),
        }
    }

    /// The instance. That there is none is believed only to the API itself, since a machine may end by it.
    async fn find(&self, key: &NamespacedName) -> Result<Option<Arc<VirtualMachineInstance>>, kube::Error> {
        if let Some(vmi) = self.here.get(key).or_else(|| self.coming.get(key)) {
            return Ok(Some(vmi));
        }
        if self.domains.owners(key).is_empty() {
            return Ok(None);
        }
        let vmi = self.api(key).get_opt(&key.name).await?;
        Ok(vmi.map(Arc::new))
    }

    /// What the installation is set to.
    fn config(&self) -> Arc<ClusterConfig> {
        self.configuration.now()
    }

    fn api(&self, key: &NamespacedName) -> Api<VirtualMachineInstance> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }

    async fn look_at(
        &self,
        key: &NamespacedName,
        uid: &str,
        vmi: Option<Arc<VirtualMachineInstance>>,
    ) -> Result<Option<Duration>, LookError> {
        let version = vmi.as_ref().and_then(|vmi| vmi.metadata.resource_version.clone());
        if version.is_some() && self.memory.of(uid).overwritten == version {
            // We have written it since; what we wrote is on its way to us.
            return Ok(None);
        }
        let observed = self.observe(uid, vmi);
        self.count_panics(key, uid, &observed);
        let plan = decide(&observed, Timestamp::now());
        tracing::debug!(vmi = %key, uid, ?plan, "looked at an instance");
        let known = self.domains.owner(uid);
        let mut outcome = self.carry_out(key, uid, &observed, &plan.step).await?;
        self.tell_guest(uid, observed.vmi.clone());
        if plan.step == Step::LeaveMigrationSource || plan.step == Step::CleanUp {
            self.memory.forget(uid);
            self.own.syncs.forget(key);
        }
        if let Some(vmi) = &observed.vmi {
            self.say(vmi, events::failed(&outcome.fate));
        }
        let subject = observed.vmi.clone().or_else(|| known.map(|owner| Arc::new(reference(&owner))));
        if let Some(subject) = &subject {
            self.say(subject, std::mem::take(&mut outcome.say));
        }
        if plan.note && observed.is_ours() {
            self.tell(key, uid, &observed, &outcome.fate).await?;
        }
        match outcome.fate {
            Fate::Failed(why) => Err(LookError::Wish(why)),
            _ => Ok(plan.again.into_iter().chain(outcome.again).min()),
        }
    }

    fn observe(&self, uid: &str, vmi: Option<Arc<VirtualMachineInstance>>) -> Observed {
        let reach = match self.launchers.contact(uid) {
            Contact::None => Reach::None,
            Contact::Awaited => Reach::Awaited,
            Contact::Connected(_) => Reach::Connected,
            Contact::Lost(loss) => Reach::Lost(loss),
        };
        let memory = self.memory.of(uid);
        let (asked, resume_at) = (memory.asked, memory.resume.map(|(at, _)| at));
        Observed { node: self.node.clone(), vmi, domain: self.domains.of(uid), reach, asked, resume_at }
    }

    /// Tells the API what has become of the instance, if that is news.
    async fn tell(
        &self,
        key: &NamespacedName,
        uid: &str,
        before: &Observed,
        fate: &Fate,
    ) -> Result<(), LookError> {
        // What the step led to is known by now.
        let observed = self.observe(uid, before.vmi.clone());
        let Some(seen) = observed.vmi.clone() else { return Ok(()) };
        let on_node = self.memory.of(uid).on_node;
        let config = self.config();
        let host_model = self.host_model.load(Ordering::Relaxed);
        let facts = Facts { on_node: &on_node, fate, config: &config, host_model };
        let Some(told) = status::told(&observed, &facts, Timestamp::now()) else { return Ok(()) };
        let written = patch::write(&self.api(key), &seen, &told).await;
        match written {
            Ok(None) => {}
            Ok(Some(written)) => {
                let version = &seen.metadata.resource_version;
                if written.metadata.resource_version != *version {
                    self.memory.change(uid, |memory| memory.overwritten.clone_from(version));
                }
                self.own.syncs.written(key);
                self.say(&seen, events::changes(&seen, &told, &observed));
            }
            Err(error) if patch::is_gone(&error) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn say(&self, vmi: &VirtualMachineInstance, all: impl IntoIterator<Item = Say>) {
        for Say { kind, reason, message } in all {
            self.recorder.event(vmi, kind, &reason, message);
        }
    }

    /// Counts what is new of a guest whose system gave up. How often it did before we came is not known, so it
    /// counts as once.
    fn count_panics(&self, key: &NamespacedName, uid: &str, observed: &Observed) {
        let Some(status) = observed.domain.as_ref().map(|domain| &domain.status) else { return };
        if status.panic_count <= self.memory.of(uid).panics {
            return;
        }
        self.memory.change(uid, |memory| memory.panics = status.panic_count);
        let panic = status.panic.clone().unwrap_or_default();
        let kind = if panic.kind.is_empty() { "unknown" } else { &panic.kind };
        self.own.guest_panicked(&key.namespace, &key.name, kind, panic.arguments.first().copied());
    }

    /// The instances that run here and the sockets of their launchers.
    pub fn sockets(&self) -> Vec<(Arc<VirtualMachineInstance>, Opened)> {
        let socket = |vmi: Arc<VirtualMachineInstance>| {
            let owner = self.domains.owner(vmi.metadata.uid.as_deref()?)?;
            let socket = self.launchers.folders().socket(&owner.pod).ok().flatten()?;
            Some((vmi, socket))
        };
        self.here.all().into_iter().filter_map(socket).collect()
    }

    /// Tells users what a launcher has for them.
    pub fn pass_on(&self, notice: Notice) {
        let kind = if notice.warning { Kind::Warning } else { Kind::Normal };
        self.recorder.event(&reference(&notice.owner), kind, &notice.reason, notice.message);
    }
}

/// As much of an instance as is known without it.
fn reference(owner: &Owner) -> VirtualMachineInstance {
    let mut vmi = VirtualMachineInstance::default();
    vmi.metadata.name = Some(owner.key.name.clone());
    vmi.metadata.namespace = Some(owner.key.namespace.clone());
    vmi.metadata.uid = Some(owner.uid.clone());
    vmi
}

/// The pod of this node that the instance's launcher runs in.
fn pod_here<'a>(vmi: &'a VirtualMachineInstance, node: &str) -> Option<&'a str> {
    let pods = vmi.status.as_ref()?.active_pods.as_ref()?;
    let mut here = pods.iter().filter(|(_, on)| *on == node).map(|(pod, _)| pod.as_str());
    // While there are two, it is not clear which is meant.
    here.next().filter(|_| here.next().is_none())
}
