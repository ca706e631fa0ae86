//! Everything that is known about a machine when somebody asks why it does not run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kubevirt_api::condition::{self, Condition};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;

/// What was seen. A part that could not be looked at is empty, and named in `unseen`.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The name that was asked for.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// What this program is called.
    pub program: String,
    /// When it was seen.
    pub now: Timestamp,
    /// The machine.
    pub vm: Option<VirtualMachine>,
    /// Its instance.
    pub vmi: Option<VirtualMachineInstance>,
    /// The newest pod of the instance.
    pub pod: Option<Pod>,
    /// The node of the instance.
    pub node: Option<Node>,
    /// Events on the machine, the instance and the pod, the latest last.
    pub events: Vec<Event>,
    /// Claims of its volumes.
    pub claims: BTreeMap<String, Storage>,
    /// Data volumes of its volumes.
    pub data_volumes: BTreeMap<String, Storage>,
    /// Secrets and config maps of its volumes that do not exist, as in `secret data`.
    pub missing: Vec<String>,
    /// The last lines that the launcher logged.
    pub log: Vec<String>,
    /// What could not be looked at, and why not.
    pub unseen: Vec<String>,
}

/// An event on one of the objects.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Event {
    /// The kind of the object.
    pub about: String,
    /// Whether it is a warning.
    pub warning: bool,
    /// A word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

/// What has become of a claim or a data volume.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Storage {
    /// It does not exist.
    #[default]
    Missing,
    /// It is there, but not ready: its phase, and what is said about it.
    Waiting(String, String),
    /// It failed, and what is said about it.
    Failed(String),
    /// It can be used.
    Ready,
}

impl Evidence {
    /// The phase of the instance.
    pub fn phase(&self) -> Option<&VmiPhase> {
        self.vmi.as_ref()?.status.as_ref()?.phase.as_ref()
    }

    /// A condition of the instance.
    pub fn vmi_condition(&self, type_: &str) -> Option<&Condition> {
        condition::find(self.vmi.as_ref()?.status.as_ref()?.conditions.as_deref(), type_)
    }

    /// A condition of the machine.
    pub fn vm_condition(&self, type_: &str) -> Option<&Condition> {
        condition::find(self.vm.as_ref()?.status.as_ref()?.conditions.as_deref(), type_)
    }

    /// The latest warning with one of these reasons.
    pub fn warning(&self, reasons: &[&str]) -> Option<&Event> {
        self.events.iter().rev().find(|event| event.warning && reasons.contains(&event.reason.as_str()))
    }

    /// The node that the instance is on, or is to be on.
    pub fn node_name(&self) -> Option<&str> {
        let of_pod = || self.pod.as_ref()?.spec.as_ref()?.node_name.as_deref();
        let of_vmi = self.vmi.as_ref().and_then(|vmi| vmi.status.as_ref()?.node_name.as_deref());
        of_vmi.filter(|name| !name.is_empty()).or_else(of_pod)
    }

    /// The name of the pod.
    pub fn pod_name(&self) -> &str {
        self.pod.as_ref().and_then(|pod| pod.metadata.name.as_deref()).unwrap_or_default()
    }
}
