//! What is known of one instance on this node.

use std::sync::Arc;

use jiff::Timestamp;
use kubevirt_api::names::labels;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{VirtualMachineInstanceStatus, VmiPhase};
use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::report::State;

use crate::launchers::Loss;

/// How it stands with the launcher, without the means to speak to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// There is none that we know of.
    #[default]
    None,
    /// It is not there yet.
    Awaited,
    /// It answers.
    Connected,
    /// It will never answer again.
    Lost(Loss),
}

/// One instance on this node, as everyone sees it.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The node that we are on.
    pub node: String,
    /// The instance; none if it no longer exists.
    pub vmi: Option<Arc<VirtualMachineInstance>>,
    /// Its domain; none if none was made yet.
    pub domain: Option<Arc<DomainReport>>,
    /// Its launcher.
    pub reach: Reach,
    /// When the guest was last asked to shut down.
    pub asked: Option<Timestamp>,
    /// When a guest that stands still since a disk failed may go on.
    pub resume_at: Option<Timestamp>,
}

impl Observed {
    /// The status of the instance.
    pub fn status(&self) -> Option<&VirtualMachineInstanceStatus> {
        self.vmi.as_ref()?.status.as_ref()
    }

    /// The phase of the instance.
    pub fn phase(&self) -> Option<&VmiPhase> {
        self.status()?.phase.as_ref()
    }

    /// Whether the instance has come to its end.
    pub fn is_final(&self) -> bool {
        matches!(self.phase(), Some(VmiPhase::Succeeded | VmiPhase::Failed))
    }

    /// Whether the instance is to go.
    pub fn is_deleted(&self) -> bool {
        self.vmi.as_ref().is_some_and(|vmi| vmi.metadata.deletion_timestamp.is_some())
    }

    /// Whether the controller gave the instance to this node. Before that, it is not ours to write.
    pub fn is_ours(&self) -> bool {
        self.status().is_some_and(|status| status.node_name.as_deref() == Some(&*self.node))
    }

    /// Whether the instance is on its way to this node.
    pub fn is_on_its_way_here(&self) -> bool {
        let label = |vmi: &Arc<VirtualMachineInstance>| {
            vmi.metadata.labels.as_ref()?.get(labels::MIGRATION_TARGET_NODE_NAME).cloned()
        };
        !self.is_ours() && self.vmi.as_ref().and_then(label).is_some_and(|target| target == self.node)
    }

    /// Whether the instance is somewhere else.
    pub fn is_elsewhere(&self) -> bool {
        let node = self.status().and_then(|status| status.node_name.as_deref());
        node.is_some_and(|node| !node.is_empty() && node != self.node)
    }

    /// The domain, unless it died with its launcher before it could say so.
    pub fn living_or_ended(&self) -> Option<&DomainReport> {
        let domain = self.domain.as_deref()?;
        let orphaned = matches!(self.reach, Reach::Lost(_)) && domain.status.status.is_alive();
        (!orphaned && domain.status.status != State::NoState).then_some(domain)
    }

    /// Whether there is a machine.
    pub fn is_alive(&self) -> bool {
        self.living_or_ended().is_some_and(|domain| domain.status.status.is_alive())
    }

    /// Whether the guest's owner wants to see proof of the host first, and has not said yet how: that comes through
    /// the API, while the instance is scheduled.
    pub fn waits_for_session(&self) -> bool {
        let security = self.vmi.as_ref().and_then(|vmi| vmi.spec.domain.launch_security.as_ref());
        let sev = security.and_then(|security| security.sev.as_ref());
        let is_missing = |text: &Option<String>| text.as_deref().unwrap_or_default().is_empty();
        sev.is_some_and(|sev| {
            sev.attestation.is_some() && (is_missing(&sev.session) || is_missing(&sev.dh_cert))
        })
    }

    /// Seconds that the guest has to shut down.
    pub fn grace(&self) -> i64 {
        let told = self.domain.as_ref().and_then(|domain| domain.status.grace_period.as_ref());
        let wished = self.vmi.as_ref().and_then(|vmi| vmi.spec.termination_grace_period_seconds);
        wished.or(told.map(|told| told.seconds)).unwrap_or(DEFAULT_GRACE)
    }
}

/// Seconds that a guest has to shut down, if nobody says otherwise.
const DEFAULT_GRACE: i64 = 30;
