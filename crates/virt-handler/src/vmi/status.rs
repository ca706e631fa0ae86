//! The instance as it should be told, as a pure function of what is known of it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubevirt_admission::config::ClusterConfig;
use kubevirt_api::names::reasons;
use kubevirt_api::quantity::{Amount, Format};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::firmware::Machine;
use kubevirt_api::vmi::status::{
    GuestOsInfo, InitrdInfo, KernelBootStatus, KernelInfo, PhaseTransition, VirtualMachineInstanceStatus,
    VmiPhase,
};
use kubevirt_launcher_rpc::DomainReport;

use super::fate::Fate;
use super::memory::OnNode;
use super::observe::{Observed, Reach};
use super::phase::phase;
use super::{conditions, interfaces, migratable, tracking, volumes};
use crate::launchers::Loss;

/// What is known beside what is observed.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// What was made ready on the node.
    pub on_node: &'a OnNode,
    /// What became of the wish.
    pub fate: &'a Fate,
    /// What the installation is set to.
    pub config: &'a ClusterConfig,
    /// Whether this node's CPU has a name that other nodes know.
    pub host_model: bool,
}

/// The instance as it should be told; none if there is none, or it has come to its end.
pub fn told(observed: &Observed, facts: &Facts<'_>, now: Timestamp) -> Option<VirtualMachineInstance> {
    let vmi = observed.vmi.as_deref()?;
    if observed.is_final() {
        return None;
    }
    // Clusters tell time in whole seconds.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let mut told = vmi.clone();
    let hopeless = is_hopeless(observed, facts.fate);
    let phase = if hopeless { VmiPhase::Failed } else { phase(observed) };
    enter(told.status.get_or_insert_default(), phase, now);
    if let Some(report) = observed.living_or_ended() {
        of_domain(&mut told, report, facts, now);
    }
    let lost = told.status.as_ref().is_some_and(|status| status.phase == Some(VmiPhase::Failed));
    let status = told.status.get_or_insert_default();
    if let (true, None, Reach::Lost(loss)) = (lost, observed.living_or_ended(), &observed.reach) {
        status.reason = Some(reason(loss).to_owned());
    }
    if hopeless {
        status.reason = Some(reasons::vmi::DOMAIN_SYNC_FAILED.to_owned());
    }
    conditions::of_wish(&mut status.conditions, facts.fate, now);
    Some(told)
}

/// Whether there is no machine and will never be one. What became of one that there was is told by its domain.
fn is_hopeless(observed: &Observed, fate: &Fate) -> bool {
    matches!(fate, Fate::Hopeless(_)) && observed.living_or_ended().is_none()
}

fn reason(loss: &Loss) -> &'static str {
    match loss {
        Loss::Ended => reasons::vmi::LAUNCHER_ENDED,
        Loss::NeverReady(_) | Loss::Silent(_) => reasons::vmi::LAUNCHER_UNRESPONSIVE,
        Loss::Strange(_) => reasons::vmi::LAUNCHER_NOT_UNDERSTOOD,
    }
}

fn enter(status: &mut VirtualMachineInstanceStatus, phase: VmiPhase, now: Timestamp) {
    if status.phase.as_ref() == Some(&phase) || phase.is_empty() {
        return;
    }
    let times = status.phase_transition_timestamps.get_or_insert_default();
    if !times.iter().any(|time| time.phase.as_ref() == Some(&phase)) {
        let phase_transition_timestamp = Some(Time(now));
        times.push(PhaseTransition { phase: Some(phase.clone()), phase_transition_timestamp });
    }
    status.phase = Some(phase);
}

fn of_domain(told: &mut VirtualMachineInstance, report: &DomainReport, facts: &Facts<'_>, now: Timestamp) {
    let on_node = facts.on_node;
    let interfaces = interfaces::interfaces(told, report, on_node.network.as_deref());
    let volumes = volumes::volumes(told, Some(report), on_node, now);
    let tracking = tracking::tracking(told, report);
    let verdict = migratable::verdict(told, facts.config, facts.host_model);
    let mut status = told.status.take().unwrap_or_default();
    conditions::of_domain(&mut status.conditions, told, report, facts.config, now);
    conditions::of_verdict(&mut status.conditions, &verdict, now);
    status.interfaces = interfaces;
    status.volume_status = volumes;
    status.changed_block_tracking = tracking;
    status.migration_method = Some(verdict.method);
    if let Some(context) = &on_node.selinux {
        status.selinux_context = Some(context.clone());
    }
    if let (kernel, initrd) = on_node.kernel
        && (kernel.is_some() || initrd.is_some())
    {
        status.kernel_boot_status = Some(KernelBootStatus {
            kernel_info: kernel.map(|sum| KernelInfo { checksum: Some(sum.into()) }),
            initrd_info: initrd.map(|sum| InitrdInfo { checksum: Some(sum.into()) }),
        });
    }
    status.fs_freeze_status = Some(report.status.freeze.clone()).filter(|freeze| !freeze.is_empty());
    status.guest_os_info = Some(system(status.guest_os_info.take(), report));
    if let Some(domain) = &report.spec {
        status.machine = Some(Machine { type_: Some(domain.machine.machine_type.clone()) });
        let memory = report.status.memory.unwrap_or(domain.memory.size);
        let memory = Amount::from_int(i64::try_from(memory).unwrap_or(i64::MAX));
        status.memory.get_or_insert_default().guest_current = Some(memory.to_quantity(Format::BinarySi));
    }
    told.status = Some(status);
}

/// The guest's operating system. What was known stays known if the agent falls silent.
fn system(before: Option<GuestOsInfo>, report: &DomainReport) -> GuestOsInfo {
    let Some(os) = report.status.os_info.as_ref().filter(|os| !os.name.is_empty()) else {
        return before.unwrap_or_default();
    };
    let word = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    GuestOsInfo {
        name: word(&os.name),
        kernel_release: word(&os.kernel_release),
        version: word(&os.version),
        pretty_name: word(&os.pretty_name),
        version_id: word(&os.version_id),
        kernel_version: word(&os.kernel_version),
        machine: word(&os.machine),
        id: word(&os.id),
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
