//! What is to be done for a machine: steps, what should be written, and what went wrong.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kubevirt_api::data_volume::DataVolume;
use kubevirt_api::names::{conditions, events, finalizers};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::VirtualMachineStatus;
use kubevirt_api::vmi::VirtualMachineInstance;

use super::observe::Observed;
use super::view;

/// All that is to be done for a machine, in the order of its fields.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// What is made before anything is written.
    pub steps: Vec<Step>,
    /// The machine as it should be; its status is what decisions noted, [`super::status::after`] completes it.
    pub machine: VirtualMachine,
    /// The machine's instance as it should be, if it has one. Written once the status is.
    pub instance: Option<VirtualMachineInstance>,
    /// Whether the instance is new to the machine.
    pub adopts: bool,
    /// Whether the instance is deleted, once the status is written.
    pub stops: bool,
    /// Revisions that nothing refers to once all else is done.
    pub outdated_revisions: Vec<String>,
    /// What users are told.
    pub events: Vec<Event>,
    /// What stands against the machine's wish.
    pub failure: Option<Failure>,
    /// When to look again although nothing changed.
    pub look_again: Option<Timestamp>,
}

/// Something to make.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A DataVolume of the machine.
    CreateDataVolume(Box<DataVolume>),
    /// A DataVolume that belongs to nobody becomes the machine's.
    AdoptDataVolume(Box<DataVolume>),
    /// A revision that the machine or its instance refers to.
    CreateRevision(Box<ControllerRevision>),
    /// A claim is marked with the outcome of a memory dump.
    MarkDump {
        /// The claim.
        claim: String,
        /// The file with the dump, or that it failed.
        outcome: String,
    },
    /// The instance.
    CreateInstance(Box<VirtualMachineInstance>),
}

/// Why a machine cannot have what it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// One word for programs.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

impl Failure {
    /// A failure with its reason and message.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// Something users are told about a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether something is wrong.
    pub warning: bool,
    /// One word for programs.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

impl Plan {
    /// A plan in which everything stays as it is.
    pub fn keeping(seen: &Observed) -> Self {
        let mut machine = VirtualMachine::clone(&seen.vm);
        machine.status.get_or_insert_default();
        Self { machine, ..Self::default() }
    }

    /// What has been decided of the status so far.
    pub fn status(&mut self) -> &mut VirtualMachineStatus {
        self.machine.status.get_or_insert_default()
    }

    /// Tells users of something that went well.
    pub fn tell(&mut self, reason: &'static str, message: String) {
        self.events.push(Event { warning: false, reason, message });
    }

    /// Tells users of something that went wrong.
    pub fn warn(&mut self, reason: &'static str, message: String) {
        self.events.push(Event { warning: true, reason, message });
    }

    /// Deletes the instance, unless that is under way.
    pub fn stop(&mut self) {
        let Some(vmi) = &self.instance else { return };
        if vmi.metadata.deletion_timestamp.is_some() {
            return;
        }
        let uid = vmi.metadata.uid.clone().unwrap_or_default();
        self.stops = true;
        self.forget_restart();
        self.tell(
            events::objects::SUCCESSFUL_DELETE,
            format!("Stopped the machine by deleting its instance {uid}"),
        );
    }

    /// A machine that starts or stops has nothing left to be restarted for.
    pub fn forget_restart(&mut self) {
        let status = self.status();
        if let Some(all) = &mut status.conditions {
            all.retain(|condition| condition.type_ != conditions::vm::RESTART_REQUIRED);
        }
    }

    /// Whether something that belongs to nobody becomes the machine's.
    pub fn takes_over(&self) -> bool {
        self.adopts || self.steps.iter().any(|step| matches!(step, Step::AdoptDataVolume(_)))
    }

    /// Whether the machine is let go of, for good.
    pub fn releases(&self, seen: &VirtualMachine) -> bool {
        let holds = |vm: &VirtualMachine| view::has_finalizer(&vm.metadata, finalizers::VM_CONTROLLER);
        view::is_deleting(&seen.metadata) && holds(seen) && !holds(&self.machine)
    }

    /// Whether an instance is made.
    pub fn starts(&self) -> bool {
        self.failure.is_none() && self.steps.iter().any(|step| matches!(step, Step::CreateInstance(_)))
    }
}
