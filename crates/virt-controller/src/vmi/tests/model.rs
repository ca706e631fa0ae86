//! A cluster in memory: it stores what the controller writes, runs pods as a kubelet would, and shows the controller
//! what a store shows, be it up to date or not.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kubevirt_api::names::annotations;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::json;

use super::build::{claim, data_volume, now, observed, over, pod, temporary, vmi};
use super::plugged::held;
use crate::context::claim_name;
use crate::vmi::{NewPod, Observed, Plan, Step, Trouble, decide, pods};

/// Something that happens, by the hand of a user, the kubelet, the importer or the node's handler.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    Schedule,
    StartContainers,
    BecomeReady,
    EndWell,
    Fail,
    Evict,
    /// What was told to go is gone.
    Remove,
    DeleteVmi,
    GuestRuns,
    GuestStops,
    Pause,
    Unpause,
    Plug,
    Unplug,
    NodeMounts,
    NodeUnmounts,
    FillVolume,
}

pub const DEEDS: [Deed; 17] = [
    Deed::Schedule,
    Deed::StartContainers,
    Deed::BecomeReady,
    Deed::EndWell,
    Deed::Fail,
    Deed::Evict,
    Deed::Remove,
    Deed::DeleteVmi,
    Deed::GuestRuns,
    Deed::GuestStops,
    Deed::Pause,
    Deed::Unpause,
    Deed::Plug,
    Deed::Unplug,
    Deed::NodeMounts,
    Deed::NodeUnmounts,
    Deed::FillVolume,
];

/// What the cluster has.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    pub vmi: Option<VirtualMachineInstance>,
    pub pods: BTreeMap<String, Pod>,
    /// The instance as it was before its last change, for stores that lag behind.
    before: Option<VirtualMachineInstance>,
    pods_before: BTreeMap<String, Pod>,
    waits_for_consumer: bool,
    version: u64,
    pub writes: usize,
    pub most_launchers: usize,
}

/// How far a store lags behind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lag {
    pub vmi: bool,
    pub pods: bool,
}

impl World {
    pub fn new(waits_for_consumer: bool) -> Self {
        let more = match waits_for_consumer {
            true => json!({"spec": {"volumes": [{"name": "disk", "dataVolume": {"name": "disk"}}]}}),
            false => json!({}),
        };
        let more = over(more, json!({"status": {"phase": "Pending"}}));
        Self {
            vmi: Some(vmi("Pending", more)),
            pods: BTreeMap::new(),
            before: None,
            pods_before: BTreeMap::new(),
            waits_for_consumer,
            version: 1,
            writes: 0,
            most_launchers: 0,
        }
    }

    pub fn phase(&self) -> String {
        let status = self.vmi.as_ref().and_then(|vmi| vmi.status.as_ref());
        status.and_then(|status| status.phase.as_ref()).map(ToString::to_string).unwrap_or("gone".into())
    }

    fn write(&mut self, mut vmi: VirtualMachineInstance) {
        self.version += 1;
        vmi.metadata.resource_version = Some(self.version.to_string());
        let is_let_go = vmi.metadata.finalizers.as_ref().is_none_or(Vec::is_empty);
        let is_gone = vmi.metadata.deletion_timestamp.is_some() && is_let_go;
        self.before = self.vmi.take();
        self.vmi = (!is_gone).then_some(vmi);
    }

    fn change(&mut self, change: impl FnOnce(&mut VirtualMachineInstance)) {
        if let Some(mut vmi) = self.vmi.clone() {
            change(&mut vmi);
            self.write(vmi);
        }
    }

    fn observe(&self, lag: Lag) -> Option<Observed> {
        let vmi = if lag.vmi { self.before.clone().or(self.vmi.clone()) } else { self.vmi.clone() };
        let mut observed = observed(vmi?, None);
        observed.pods_confirmed = false;
        let pods = if lag.pods { &self.pods_before } else { &self.pods };
        show_pods(pods, &mut observed);
        let phase = if self.waits_for_consumer { "WaitForFirstConsumer" } else { "Succeeded" };
        observed.claims.insert("disk".into(), Arc::new(claim("disk", "Pending", Some("disk"))));
        observed.claims.insert("extra".into(), Arc::new(claim("extra", "Bound", None)));
        let uses = observed.vmi.spec.volumes.iter().flatten().any(|volume| volume.data_volume.is_some());
        if uses {
            observed.data_volumes.insert("disk".into(), Arc::new(data_volume("disk", phase)));
        }
        Some(observed)
    }

    /// What the controller does once. Whether it changed anything.
    pub fn reconcile(&mut self, lag: Lag) -> bool {
        let Some(mut observed) = self.observe(lag) else { return false };
        let before = (self.vmi.clone(), self.pods.clone());
        self.pods_before = self.pods.clone();
        let mut plan = decide(&observed, now());
        for _ in 0..8 {
            let again = plan.has_results();
            let failed = plan.steps.clone().iter().find_map(|step| self.carry_out(&mut observed, step).err());
            observed.trouble = observed.trouble.take().or(failed.clone());
            if failed.is_none() && !again {
                break;
            }
            plan = decide(&observed, now());
        }
        self.finish(&mut observed, &plan);
        before != (self.vmi.clone(), self.pods.clone())
    }

    fn finish(&mut self, observed: &mut Observed, plan: &Plan) {
        let wanted = plan.vmi.as_deref().expect("every decision ends with an instance");
        let is_current = self.vmi.as_ref().map(|vmi| &vmi.metadata.resource_version)
            == Some(&observed.vmi.metadata.resource_version);
        if *wanted != *observed.vmi {
            if !is_current {
                return;
            }
            self.writes += 1;
            self.write(wanted.clone());
        }
        for step in &plan.afterwards {
            let _ = self.carry_out(observed, step);
        }
    }

    fn carry_out(&mut self, observed: &mut Observed, step: &Step) -> Result<(), Trouble> {
        match step {
            Step::LookForPods => {
                show_pods(&self.pods, observed);
                observed.pods_confirmed = true;
            }
            Step::CreatePod(new) => self.create(observed, new)?,
            Step::DeletePod { pod, role } => {
                let name = pod.name_any();
                let found = self.pods.get_mut(&name).filter(|found| found.uid() == pod.uid());
                if let Some(found) = found {
                    found.metadata.deletion_timestamp.get_or_insert(Time(now()));
                    // Nothing has to be shut down where nothing runs.
                    if role.goes_at_once() || pods::node(found).is_empty() {
                        self.pods.remove(&name);
                    }
                }
            }
            Step::MarkPod { pod, labels, annotations, condition } => {
                if let Some(pod) = self.pods.get_mut(&pod.name_any()) {
                    mark(pod.metadata.labels.get_or_insert_default(), labels);
                    mark(pod.metadata.annotations.get_or_insert_default(), annotations);
                    if let Some(condition) = condition {
                        let all = pod.status.get_or_insert_default().conditions.get_or_insert_default();
                        all.retain(|known| known.type_ != condition.type_);
                        all.push((**condition).clone());
                    }
                }
            }
            Step::CreateStateClaim(_) | Step::AdoptStateClaim(_) | Step::DeleteStateClaim(_) => {}
        }
        Ok(())
    }

    fn create(&mut self, observed: &mut Observed, new: &NewPod) -> Result<(), Trouble> {
        let mut made = match new {
            NewPod::Launcher(_) => {
                let mut pod = pod("new");
                // A volume that can be plugged is never part of the launcher's own pod.
                let volumes =
                    observed.vmi.spec.volumes.iter().flatten().filter(|volume| volume.name != "extra");
                let disks = volumes.filter_map(|volume| Some(held(&volume.name, claim_name(volume)?)));
                pod.spec.as_mut().unwrap().volumes = Some(disks.collect());
                pod
            }
            NewPod::Provisioner(_) => temporary("new"),
            NewPod::Attachment { launcher, volumes } => {
                let disks = volumes.iter().filter_map(|volume| Some(held(&volume.name, claim_name(volume)?)));
                holder(launcher, disks.collect(), "hp-hold")
            }
            NewPod::Trigger { launcher, volume } => {
                let mut pod = holder(launcher, vec![held(&volume.name, "extra")], "hp-trigger");
                let mark = annotations::EPHEMERAL_PROVISIONING.to_owned();
                pod.metadata.annotations = Some([(mark, "true".to_owned())].into());
                pod
            }
        };
        let name = made.name_any();
        match self.pods.get(&name) {
            Some(found) if found.metadata.deletion_timestamp.is_some() => {
                return Err(Trouble::passing("FailedCreate", "in the way"));
            }
            Some(found) => made = found.clone(),
            None => {
                self.version += 1;
                made.metadata.uid = Some(format!("uid-{}", self.version));
                self.pods.insert(name, made.clone());
            }
        }
        self.count_launchers();
        match new {
            NewPod::Launcher(_) | NewPod::Provisioner(_) => observed.pods.push(Arc::new(made)),
            _ => observed.attachments.push(Arc::new(made)),
        }
        Ok(())
    }

    fn count_launchers(&mut self) {
        let alive = |pod: &&Pod| pod.name_any().starts_with("virt-launcher") && !pods::is_down(pod);
        let launchers = self.pods.values().filter(|pod| !pods::is_temporary(pod)).filter(alive).count();
        self.most_launchers = self.most_launchers.max(launchers);
    }

    /// Something happens, if it can.
    pub fn happen(&mut self, deed: &Deed) {
        self.pods_before = self.pods.clone();
        match deed {
            Deed::Schedule => self.run_pods("new", "creating"),
            Deed::StartContainers => self.run_pods("creating", "running"),
            Deed::BecomeReady => self.run_pods("running", "ready"),
            Deed::EndWell => self.run_pods("ready", "succeeded"),
            Deed::Fail => self.run_pods("creating", "failed"),
            Deed::Evict => {
                let launcher = self.pods.values_mut().find(|pod| pod.name_any().starts_with("virt-launcher"));
                if let Some(pod) = launcher {
                    pod.metadata.deletion_timestamp.get_or_insert(Time(now()));
                }
            }
            Deed::Remove => self.remove(),
            Deed::DeleteVmi => self.change(|vmi| {
                vmi.metadata.deletion_timestamp.get_or_insert(Time(now()));
            }),
            Deed::GuestRuns => self.hand_on("Scheduled", VmiPhase::Running),
            Deed::GuestStops => self.hand_on("Running", VmiPhase::Succeeded),
            Deed::Pause => self.pause("True"),
            Deed::Unpause => self.pause("False"),
            Deed::Plug => self.change(|vmi| {
                let claim = json!({"name": "extra", "persistentVolumeClaim": {"claimName": "extra", "hotpluggable": true}});
                let volumes = vmi.spec.volumes.get_or_insert_default();
                if !volumes.iter().any(|volume| volume.name == "extra") {
                    volumes.push(serde_json::from_value(claim).unwrap());
                }
            }),
            Deed::Unplug => self.change(|vmi| {
                vmi.spec.volumes.iter_mut().for_each(|volumes| volumes.retain(|volume| volume.name != "extra"));
            }),
            Deed::NodeMounts => self.volume("AttachedToNode", "Ready"),
            Deed::NodeUnmounts => self.volume("Ready", "UnMountedFromPod"),
            Deed::FillVolume => self.waits_for_consumer = false,
        }
        self.count_launchers();
    }

    fn run_pods(&mut self, from: &str, to: &str) {
        let (from, to) = (pod(from), pod(to));
        for pod in self.pods.values_mut() {
            let is_there = pods::phase(pod) == pods::phase(&from) && pods::node(pod) == pods::node(&from);
            let ready = |pod: &Pod| pods::condition(pod, "Ready").is_some();
            if is_there && ready(pod) == ready(&from) {
                let kept = pod.status.take().and_then(|status| status.conditions).unwrap_or_default();
                pod.status = to.status.clone();
                let conditions = pod.status.get_or_insert_default().conditions.get_or_insert_default();
                conditions.extend(kept.into_iter().filter(|condition| condition.type_ != "Ready"));
                pod.spec.get_or_insert_default().node_name = to.spec.as_ref().unwrap().node_name.clone();
            }
        }
    }

    /// The kubelet ends what was told to go, and the garbage collector what belonged to it.
    fn remove(&mut self) {
        self.pods.retain(|_, pod| pod.metadata.deletion_timestamp.is_none());
        let uids: Vec<_> = self.pods.values().filter_map(ResourceExt::uid).collect();
        let has_owner =
            |pod: &Pod| pod.owner_references().iter().all(|it| it.kind != "Pod" || uids.contains(&it.uid));
        self.pods.retain(|_, pod| has_owner(pod));
    }

    fn hand_on(&mut self, from: &str, to: VmiPhase) {
        if self.phase() == from {
            self.change(|vmi| vmi.status.get_or_insert_default().phase = Some(to));
        }
    }

    fn pause(&mut self, status: &str) {
        if self.phase() == "Running" {
            let condition = serde_json::from_value(json!({"type": "Paused", "status": status})).unwrap();
            self.change(|vmi| {
                let all = &mut vmi.status.get_or_insert_default().conditions;
                kubevirt_api::condition::set(all, condition, &Time(now()));
            });
        }
    }

    fn volume(&mut self, from: &str, to: &str) {
        if !matches!(self.phase().as_str(), "Scheduled" | "Running") {
            return;
        }
        self.change(|vmi| {
            let volumes = vmi.status.get_or_insert_default().volume_status.iter_mut().flatten();
            for volume in volumes.filter(|it| it.phase.as_ref().is_some_and(|phase| phase.as_str() == from)) {
                volume.phase = Some(to.into());
            }
        });
    }

    /// Reconciles until nothing changes any more.
    pub fn settle(&mut self, mut lag: impl FnMut() -> Lag) {
        for _ in 0..4 {
            self.reconcile(lag());
        }
        for _ in 0..10 {
            if !self.reconcile(Lag::default()) {
                return;
            }
        }
        panic!("still restless: {:#?}", self.vmi);
    }
}

fn show_pods(pods: &BTreeMap<String, Pod>, observed: &mut Observed) {
    let (own, held): (Vec<_>, Vec<_>) =
        pods.values().cloned().map(Arc::new).partition(|pod| !pod.name_any().starts_with("hp-"));
    observed.pods = own;
    observed.attachments = held;
}

fn mark(marks: &mut BTreeMap<String, String>, changes: &BTreeMap<String, Option<String>>) {
    for (name, value) in changes {
        match value {
            Some(value) => drop(marks.insert(name.clone(), value.clone())),
            None => drop(marks.remove(name)),
        }
    }
}

fn holder(launcher: &Pod, volumes: Vec<Volume>, name: &str) -> Pod {
    let mut holder = pod("new");
    let mut owner = holder.metadata.owner_references.take().unwrap_or_default();
    owner.iter_mut().for_each(|owner| {
        owner.kind = "Pod".into();
        owner.name = launcher.name_any();
        owner.uid = launcher.uid().unwrap_or_default();
    });
    holder.metadata.owner_references = Some(owner);
    holder.metadata.name = Some(name.to_owned());
    holder.spec.as_mut().unwrap().volumes = Some(volumes);
    holder
}
