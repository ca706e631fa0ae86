//! Instances and domains for tests.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use kubevirt_domain::domain::disk::ImageFormat;
use kubevirt_domain::facts::VolumeFacts;
use kubevirt_domain::{HostFacts, Layout, QemuFacts, convert};
use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::report::{DomainStatus, GracePeriod, Reason, ReportMetadata, State};
use serde_json::{Value, json};

use super::observe::{Observed, Reach};

pub const NODE: &str = "node1";

/// An instance on this node, and what is known of it.
#[derive(Clone, Debug)]
pub struct Case(Observed);

impl Case {
    pub fn new(phase: &VmiPhase) -> Self {
        let vmi = vmi(json!({}), json!({"phase": phase, "nodeName": NODE}));
        let reach = Reach::Connected;
        Self(Observed { node: NODE.into(), vmi: Some(Arc::new(vmi)), reach, ..Observed::default() })
    }

    pub fn scheduled() -> Self {
        Self::new(&VmiPhase::Scheduled)
    }

    pub fn running() -> Self {
        Self::new(&VmiPhase::Running)
    }

    pub fn ended() -> Self {
        Self::new(&VmiPhase::Succeeded)
    }

    /// There is no instance any more.
    pub fn gone() -> Self {
        let mut case = Self::running();
        case.0.vmi = None;
        case
    }

    pub fn change(mut self, change: impl FnOnce(&mut VirtualMachineInstance)) -> Self {
        if let Some(vmi) = &mut self.0.vmi {
            change(Arc::make_mut(vmi));
        }
        self
    }

    pub fn deleted(self) -> Self {
        self.change(|vmi| vmi.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH)))
    }

    pub fn grace(self, seconds: Option<i64>) -> Self {
        self.change(|vmi| vmi.spec.termination_grace_period_seconds = seconds)
    }

    pub fn on(self, node: &str) -> Self {
        self.change(|vmi| vmi.status.as_mut().unwrap().node_name = Some(node.into()))
    }

    pub fn domain(mut self, domain: DomainReport) -> Self {
        self.0.domain = Some(Arc::new(domain));
        self
    }

    pub fn reach(mut self, reach: Reach) -> Self {
        self.0.reach = reach;
        self
    }

    pub fn asked(mut self, second: i64) -> Self {
        self.0.asked = Some(at(second));
        self
    }

    pub fn resume_at(mut self, second: i64) -> Self {
        self.0.resume_at = Some(at(second));
        self
    }

    pub fn observed(self) -> Observed {
        self.0
    }
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// An instance with a disk and an interface, changed by merging.
pub fn vmi(spec: Value, status: Value) -> VirtualMachineInstance {
    let mut whole = json!({
        "domain": {"memory": {"guest": "128Mi"}, "devices": {}},
    });
    merge(&mut whole, spec);
    let metadata = json!({"name": "web", "namespace": "default", "uid": "ad00"});
    serde_json::from_value(json!({"metadata": metadata, "spec": whole, "status": status})).unwrap()
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// A domain that says no more than its state.
pub fn domain(state: State, reason: Reason) -> DomainReport {
    let ended = matches!(state, State::Shutoff | State::Crashed);
    DomainReport {
        metadata: ReportMetadata {
            uid: "ad00".into(),
            deletion_timestamp: ended.then(|| "2026-01-01T00:00:00Z".into()),
            ..ReportMetadata::default()
        },
        status: DomainStatus { status: state, reason, ..DomainStatus::default() },
        spec: None,
    }
}

/// The same with a machine that the instance describes.
pub fn machine(report: DomainReport, vmi: &VirtualMachineInstance) -> DomainReport {
    let mut host = HostFacts { kvm: true, ..HostFacts::default() };
    for volume in vmi.spec.volumes.iter().flatten() {
        let facts = VolumeFacts { format: Some(ImageFormat::Raw), ..VolumeFacts::default() };
        host.volumes.insert(volume.name.clone(), facts);
    }
    let spec = convert(vmi, &host, &QemuFacts::default(), &Layout::default()).unwrap();
    DomainReport { spec: Some(spec), ..report }
}

/// The same with a machine whose guest hears the power button.
pub fn with_acpi(report: DomainReport) -> DomainReport {
    let mut report = machine(report, &vmi(json!({}), json!({})));
    report.spec.as_mut().unwrap().machine.acpi = true;
    report
}

/// The same with a guest that was asked to shut down.
pub fn asked_at(mut report: DomainReport, second: i64, seconds: i64) -> DomainReport {
    report.status.grace_period = Some(GracePeriod { seconds, since: at(second).to_string() });
    report
}
