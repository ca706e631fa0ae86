//! What is to be done for an instance.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodCondition};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_component::events::Kind;

/// What is to be done for an instance: steps, events, and the instance as it should be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What to do first, in this order.
    pub steps: Vec<Step>,
    /// What to tell, once the steps are done.
    pub events: Vec<Event>,
    /// The instance as it should be. Nothing while steps have results that it depends on.
    pub vmi: Option<Box<VirtualMachineInstance>>,
    /// What to do when the instance has been written, since no guest waits for it.
    pub afterwards: Vec<Step>,
    /// What keeps the instance from getting on.
    pub trouble: Option<Trouble>,
    /// When to look again although nothing changes.
    pub recheck: Option<Duration>,
}

impl Plan {
    /// Whether there is something to be learnt from the steps, so that one has to decide again after them.
    pub fn has_results(&self) -> bool {
        self.steps.iter().any(Step::has_result)
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Ask the API server for the pods of the instance: the store knows none, although there should be one.
    LookForPods,
    /// Make a claim for firmware and TPM state.
    CreateStateClaim(Box<PersistentVolumeClaim>),
    /// Mark a claim of an older release as what it is.
    AdoptStateClaim(Arc<PersistentVolumeClaim>),
    /// Delete the claim for state that is no longer needed.
    DeleteStateClaim(Arc<PersistentVolumeClaim>),
    /// Make a pod.
    CreatePod(NewPod),
    /// Delete a pod.
    DeletePod {
        /// The pod.
        pod: Arc<Pod>,
        /// What it is, in the words of the event.
        role: Role,
    },
    /// Change labels and annotations of a pod, of which nothing removes, and report a condition on it.
    MarkPod {
        /// The pod.
        pod: Arc<Pod>,
        /// Labels.
        labels: BTreeMap<String, Option<String>>,
        /// Annotations.
        annotations: BTreeMap<String, Option<String>>,
        /// The condition, if one changes.
        condition: Option<Box<PodCondition>>,
    },
}

impl Step {
    fn has_result(&self) -> bool {
        matches!(self, Self::LookForPods | Self::CreateStateClaim(_) | Self::CreatePod(_))
    }
}

/// A pod to be made.
#[derive(Clone, Debug, PartialEq)]
pub enum NewPod {
    /// The pod that runs the guest.
    Launcher(Box<VirtualMachineInstance>),
    /// A pod like it that only has volumes provisioned where the guest will run.
    Provisioner(Box<VirtualMachineInstance>),
    /// A pod that holds plugged volumes on the node of the launcher.
    Attachment {
        /// The launcher pod.
        launcher: Arc<Pod>,
        /// The volumes.
        volumes: Vec<Volume>,
    },
    /// A pod that only has a plugged volume provisioned.
    Trigger {
        /// The launcher pod.
        launcher: Arc<Pod>,
        /// The volume.
        volume: Box<Volume>,
    },
}

/// What a pod is to its instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Runs the guest.
    Launcher,
    /// Has volumes provisioned.
    Temporary,
    /// Holds plugged volumes.
    Attachment,
}

impl Role {
    /// In the words of events.
    pub fn words(self) -> &'static str {
        match self {
            Self::Launcher => "virtual machine pod",
            Self::Temporary => "WaitForFirstConsumer temporary pod",
            Self::Attachment => "attachment pod",
        }
    }

    /// Whether the pod goes at once: only a guest needs time to shut down.
    pub fn goes_at_once(self) -> bool {
        self != Self::Launcher
    }
}

/// Something to tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// How it is meant.
    pub kind: Kind,
    /// A word for programs.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// What keeps the instance from getting on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct Trouble {
    /// A word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// Whether to try again although nothing changes.
    pub retry: bool,
}

impl Trouble {
    /// Trouble that something else has to end, which will be noticed.
    pub fn waiting(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into(), retry: false }
    }

    /// Trouble that may be over with the next attempt.
    pub fn passing(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into(), retry: true }
    }
}
