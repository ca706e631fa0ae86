//! A cluster with one machine, as far as its controller can see it.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use kubevirt_api::names::finalizers;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::StateChangeRequest;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{PhaseTransition, VmiPhase};

use crate::vm::decide::decide;
use crate::vm::observe::Observed;
use crate::vm::plan::{Failure, Plan, Step};
use crate::vm::testing::{at, seen};
use crate::vm::{status, view};

/// The machine, its instance, and the course of time.
pub struct Cluster {
    pub vm: Option<VirtualMachine>,
    pub vmi: Option<VirtualMachineInstance>,
    pub now: i64,
    pub look_again: Option<i64>,
    pub machine_writes: usize,
    pub instance_writes: usize,
    revisions: Vec<Arc<ControllerRevision>>,
    /// What stores held before the last change.
    before: Option<Observed>,
    counter: u64,
}

/// The controller was killed, or saw that what it knew is outdated.
struct Over;

impl Cluster {
    pub fn new(vm: VirtualMachine) -> Self {
        let mut cluster = Self {
            vm: Some(vm),
            vmi: None,
            now: 1_000_000,
            look_again: None,
            machine_writes: 0,
            instance_writes: 0,
            revisions: Vec::new(),
            before: None,
            counter: 0,
        };
        cluster.change(|_| {});
        cluster
    }

    fn observed(&self) -> Option<Observed> {
        let mut observed = seen(self.vm.clone()?);
        observed.instance = self.vmi.clone().map(Arc::new);
        observed.revisions.clone_from(&self.revisions);
        Some(observed)
    }

    fn fresh(&mut self) -> String {
        self.counter += 1;
        self.counter.to_string()
    }

    /// What the stores hold is remembered before something is written.
    fn remember(&mut self) {
        self.before = self.observed();
    }

    /// Somebody changes the machine.
    pub fn change(&mut self, change: impl FnOnce(&mut VirtualMachine)) {
        self.remember();
        let version = self.fresh();
        let Some(vm) = &mut self.vm else { return };
        let before = vm.spec.clone();
        change(vm);
        vm.metadata.resource_version = Some(version);
        if vm.spec != before {
            *vm.metadata.generation.get_or_insert_default() += 1;
        }
        let finalizers = vm.metadata.finalizers.as_deref().unwrap_or_default();
        if view::is_deleting(&vm.metadata) && finalizers.is_empty() {
            self.vm = None;
        }
    }

    /// Somebody changes the instance.
    fn change_instance(&mut self, change: impl FnOnce(&mut VirtualMachineInstance)) {
        self.remember();
        let version = self.fresh();
        let Some(vmi) = &mut self.vmi else { return };
        change(vmi);
        vmi.metadata.resource_version = Some(version);
        let finalizers = vmi.metadata.finalizers.as_deref().unwrap_or_default();
        if view::is_deleting(&vmi.metadata) && finalizers.is_empty() {
            self.vmi = None;
        }
    }

    pub fn requests(&self) -> Vec<StateChangeRequest> {
        let status = self.vm.as_ref().and_then(|vm| vm.status.as_ref());
        status.and_then(|status| status.state_change_requests.clone()).unwrap_or_default()
    }

    pub fn request(&mut self, requests: Vec<StateChangeRequest>) {
        self.change(|vm| vm.status.get_or_insert_default().state_change_requests = Some(requests));
    }

    pub fn delete_machine(&mut self, finalizer: Option<&str>) {
        let time = view::second(at(self.now));
        self.change(|vm| {
            vm.metadata.deletion_timestamp = Some(time);
            vm.metadata.finalizers.get_or_insert_default().extend(finalizer.map(str::to_owned));
        });
    }

    pub fn delete_instance(&mut self) {
        let time = view::second(at(self.now));
        self.change_instance(|vmi| {
            vmi.metadata.deletion_timestamp.get_or_insert(time);
        });
    }

    fn enter(&mut self, phase: VmiPhase) {
        self.change_instance(|vmi| {
            let status = vmi.status.get_or_insert_default();
            status.phase = Some(phase.clone());
            let times = status.phase_transition_timestamps.get_or_insert_default();
            times.push(PhaseTransition { phase: Some(phase), phase_transition_timestamp: None });
        });
    }

    /// The guest ends by itself.
    pub fn end_guest(&mut self, phase: VmiPhase) {
        if self.vmi.as_ref().is_some_and(|vmi| !view::is_final(vmi)) {
            self.enter(phase);
        }
    }

    /// The next thing that the other components do. Whether there is one.
    pub fn progress(&mut self) -> bool {
        let Some(vmi) = &self.vmi else { return false };
        if self.vm.is_none() && !view::is_deleting(&vmi.metadata) && view::controller(&vmi.metadata).is_some()
        {
            // What the garbage collector does to what has lost its owner.
            self.delete_instance();
            return true;
        }
        let foreground = view::has_finalizer(&vmi.metadata, finalizers::FOREGROUND_DELETE);
        let deleting = view::is_deleting(&vmi.metadata);
        let next = match view::phase(vmi) {
            Some(VmiPhase::Succeeded | VmiPhase::Failed) if foreground => {
                let orphan = self.vm.is_none();
                self.change_instance(|vmi| {
                    view::remove_finalizer(&mut vmi.metadata, finalizers::FOREGROUND_DELETE);
                    if orphan {
                        view::remove_finalizer(&mut vmi.metadata, finalizers::VM_CONTROLLER);
                    }
                });
                return true;
            }
            Some(VmiPhase::Succeeded | VmiPhase::Failed) => return false,
            _ if deleting => VmiPhase::Succeeded,
            Some(VmiPhase::Pending) => VmiPhase::Scheduling,
            Some(VmiPhase::Scheduling) => VmiPhase::Scheduled,
            Some(VmiPhase::Scheduled) => VmiPhase::Running,
            _ => return false,
        };
        self.enter(next);
        true
    }

    /// One look of the controller. Whether it wrote anything.
    pub fn round(&mut self) -> bool {
        let before = self.counter;
        if let Some(observed) = self.observed() {
            self.carry_out(observed, usize::MAX);
        }
        self.counter != before
    }

    pub fn late_round(&mut self) {
        if let Some(observed) = self.before.clone() {
            self.carry_out(observed, usize::MAX);
        }
    }

    pub fn cut_short(&mut self, writes: usize) {
        if let Some(observed) = self.observed() {
            self.carry_out(observed, writes);
        }
    }

    /// Lets everybody do what there is to do, until nobody has anything to do.
    pub fn settle(&mut self) {
        self.settle_until(|_| false);
    }

    pub fn settle_until(&mut self, done: impl Fn(&Self) -> bool) {
        for _ in 0..300 {
            if done(self) {
                return;
            }
            let wrote = self.round();
            let went_on = self.progress();
            if !wrote && !went_on {
                match self.look_again.filter(|at| *at > self.now) {
                    Some(at) => self.now = at,
                    None => return,
                }
            }
        }
        panic!("does not come to rest: {:#?} {:#?}", self.vm, self.vmi);
    }

    fn carry_out(&mut self, seen: Observed, writes: usize) {
        let mut plan = decide(&seen, at(self.now));
        self.look_again = plan.look_again.map(jiff::Timestamp::as_second);
        let mut left = writes;
        let _ = self.write_all(&seen, &mut plan, &mut left);
    }

    fn write_all(&mut self, seen: &Observed, plan: &mut Plan, left: &mut usize) -> Result<(), Over> {
        let version = self.write_machine(seen, plan, left)?;
        let vm = self.vm.as_ref().ok_or(Over)?;
        if view::is_deleting(&vm.metadata) && !view::has_finalizer(&vm.metadata, finalizers::VM_CONTROLLER) {
            return Ok(());
        }
        for step in plan.steps.clone() {
            self.take(seen, plan, step, left)?;
        }
        self.write_status(seen, plan, version, left)?;
        self.write_instance(seen, plan, left)?;
        for name in &plan.outdated_revisions {
            spend(left)?;
            self.revisions.retain(|revision| revision.metadata.name.as_ref() != Some(name));
        }
        Ok(())
    }

    /// The version of the machine that the status is written over.
    fn write_machine(
        &mut self,
        seen: &Observed,
        plan: &Plan,
        left: &mut usize,
    ) -> Result<Option<String>, Over> {
        if plan.releases(&seen.vm) && seen.instance.is_none() && self.vmi.is_some() {
            return Err(Over);
        }
        let wanted = VirtualMachine { status: seen.vm.status.clone(), ..plan.machine.clone() };
        if wanted == *seen.vm {
            return Ok(seen.vm.metadata.resource_version.clone());
        }
        let current = self.vm.as_ref().ok_or(Over)?;
        if current.metadata.resource_version != seen.vm.metadata.resource_version {
            return Err(Over);
        }
        spend(left)?;
        self.machine_writes += 1;
        let (finalizers, annotations) = (wanted.metadata.finalizers, wanted.metadata.annotations);
        self.change(|vm| {
            vm.spec = wanted.spec;
            (vm.metadata.finalizers, vm.metadata.annotations) = (finalizers, annotations);
        });
        Ok(self.vm.as_ref().and_then(|vm| vm.metadata.resource_version.clone()))
    }

    fn take(&mut self, seen: &Observed, plan: &mut Plan, step: Step, left: &mut usize) -> Result<(), Over> {
        spend(left)?;
        match step {
            Step::CreateRevision(kept) => {
                let taken = self.revisions.iter().any(|other| other.metadata.name == kept.metadata.name);
                if !taken {
                    self.revisions.push(Arc::from(kept));
                }
            }
            Step::CreateInstance(vmi) => match &self.vmi {
                Some(existing) => {
                    let owner = view::controller(&existing.metadata).map(|owner| &owner.uid);
                    if owner != seen.vm.metadata.uid.as_ref() {
                        plan.failure = Some(Failure::new("FailedCreate", "taken"));
                    }
                }
                None => self.create(*vmi),
            },
            other => panic!("not in this model: {other:?}"),
        }
        Ok(())
    }

    /// What admission makes of a new instance.
    fn create(&mut self, mut vmi: VirtualMachineInstance) {
        self.remember();
        vmi.metadata.uid = Some(format!("uid-{}", self.fresh()));
        vmi.metadata.resource_version = Some(self.fresh());
        vmi.metadata.finalizers.get_or_insert_default().push(finalizers::FOREGROUND_DELETE.to_owned());
        vmi.status.get_or_insert_default().phase = Some(VmiPhase::Pending);
        self.vmi = Some(vmi);
    }

    fn write_status(
        &mut self,
        seen: &Observed,
        plan: &Plan,
        version: Option<String>,
        left: &mut usize,
    ) -> Result<(), Over> {
        let wanted = Some(status::after(seen, plan, at(self.now)));
        // The write of the machine itself left the status as it was seen.
        if wanted == seen.vm.status {
            return Ok(());
        }
        if self.vm.as_ref().ok_or(Over)?.metadata.resource_version != version {
            return Err(Over);
        }
        spend(left)?;
        self.machine_writes += 1;
        self.change(|vm| vm.status = wanted);
        Ok(())
    }

    fn write_instance(&mut self, seen: &Observed, plan: &Plan, left: &mut usize) -> Result<(), Over> {
        let (Some(old), Some(wanted)) = (&seen.instance, &plan.instance) else { return Ok(()) };
        if **old != *wanted {
            let Some(current) = &self.vmi else { return Ok(()) };
            if current.metadata.resource_version != old.metadata.resource_version {
                return Err(Over);
            }
            spend(left)?;
            self.instance_writes += 1;
            self.change_instance(|vmi| vmi.clone_from(wanted));
        }
        if plan.stops && self.vmi.as_ref().is_some_and(|vmi| vmi.metadata.uid == wanted.metadata.uid) {
            spend(left)?;
            self.delete_instance();
        }
        Ok(())
    }
}

/// Counts a write, as long as the controller is let write.
fn spend(left: &mut usize) -> Result<(), Over> {
    *left = left.checked_sub(1).ok_or(Over)?;
    Ok(())
}
