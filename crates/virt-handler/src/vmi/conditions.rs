//! The conditions of an instance that are the handler's to report.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubevirt_admission::config::{ClusterConfig, HOST_ARCHITECTURE};
use kubevirt_admission::gates::Gate;
use kubevirt_api::condition::{self, Condition};
use kubevirt_api::names::{conditions, reasons};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::report::{Reason, State};

use super::agent;
use super::fate::Fate;
use super::migratable::{Tie, Verdict};

type Conditions = Option<Vec<Condition>>;

fn holds(type_: &str) -> Condition {
    Condition { type_: type_.to_owned(), status: "True".to_owned(), ..Condition::default() }
}

fn holds_not(type_: &str, reason: &str, message: &str) -> Condition {
    let (reason, message) = (Some(reason.to_owned()), Some(message.to_owned()));
    let (type_, status) = (type_.to_owned(), "False".to_owned());
    Condition { type_, status, reason, message, ..Condition::default() }
}

/// What the domain says.
pub fn of_domain(
    all: &mut Conditions,
    vmi: &VirtualMachineInstance,
    report: &DomainReport,
    config: &ClusterConfig,
    now: Timestamp,
) {
    let now = Time(now);
    credentials(all, report, &now);
    agent(all, vmi, report, &now);
    paused(all, report, &now);
    emulated(all, vmi, report, config, &now);
}

fn credentials(all: &mut Conditions, report: &DomainReport, now: &Time) {
    let Some(outcome) = &report.status.access_credential else { return };
    let type_ = conditions::vmi::ACCESS_CREDENTIALS_SYNCHRONIZED;
    let status = if outcome.succeeded { "True" } else { "False" }.to_owned();
    let message = Some(outcome.message.clone()).filter(|message| !message.is_empty());
    condition::set(all, Condition { type_: type_.to_owned(), status, message, ..Condition::default() }, now);
}

fn agent(all: &mut Conditions, vmi: &VirtualMachineInstance, report: &DomainReport, now: &Time) {
    let (connected, unsupported) =
        (conditions::vmi::AGENT_CONNECTED, conditions::vmi::AGENT_VERSION_NOT_SUPPORTED);
    if !report.status.agent_connected {
        condition::remove(all, connected);
        return;
    }
    if condition::find(all.as_deref(), connected).is_none() {
        condition::set(all, Condition { last_probe_time: Some(now.clone()), ..holds(connected) }, now);
    }
    match agent::lacks(vmi, &report.status.agent_commands) {
        Some(what) => {
            let reason = Some(what.to_owned());
            condition::set(all, Condition { reason, ..holds(unsupported) }, now);
        }
        None => condition::remove(all, unsupported),
    }
}

fn paused(all: &mut Conditions, report: &DomainReport, now: &Time) {
    let type_ = conditions::vmi::PAUSED;
    if report.status.status != State::Paused {
        condition::remove(all, type_);
        return;
    }
    let (reason, message) = match report.status.reason {
        Reason::User => (reasons::vmi::PAUSED_BY_USER, "The guest was paused by a user"),
        Reason::IoError => (reasons::vmi::PAUSED_IO_ERROR, "The guest was paused because a disk failed"),
        // What stands still for a moment, on its way or at its start, is not paused.
        _ => return,
    };
    // Why it was paused first is what counts.
    if condition::find(all.as_deref(), type_).is_none() {
        let (reason, message) = (Some(reason.to_owned()), Some(message.to_owned()));
        let last_probe_time = Some(now.clone());
        condition::set(all, Condition { reason, message, last_probe_time, ..holds(type_) }, now);
    }
}

fn emulated(
    all: &mut Conditions,
    vmi: &VirtualMachineInstance,
    report: &DomainReport,
    config: &ClusterConfig,
    now: &Time,
) {
    if !config.enabled(Gate::CrossArchitectureVirtualization) {
        return;
    }
    let type_ = conditions::vmi::SOFTWARE_EMULATION;
    let foreign =
        vmi.spec.architecture.as_deref().filter(|name| !name.is_empty() && *name != HOST_ARCHITECTURE);
    match foreign.filter(|_| report.status.accelerator == "tcg") {
        Some(guest) => {
            let message = Some(format!("The guest is of {guest} and is emulated on {HOST_ARCHITECTURE}"));
            let reason = Some(reasons::vmi::CROSS_ARCHITECTURE_EMULATION.to_owned());
            condition::set(all, Condition { reason, message, ..holds(type_) }, now);
        }
        None => condition::remove(all, type_),
    }
}

/// Whether the instance could move.
pub fn of_verdict(all: &mut Conditions, verdict: &Verdict, now: Timestamp) {
    let now = Time(now);
    let migratable = match &verdict.tie {
        None => holds(conditions::vmi::LIVE_MIGRATABLE),
        Some(tie) => holds_not(conditions::vmi::LIVE_MIGRATABLE, tie.reason, &tie.message),
    };
    condition::set(all, migratable, &now);
    let said: Vec<String> =
        verdict.with_storage.iter().map(|Tie { reason, message }| format!("{reason}: {message}")).collect();
    let type_ = conditions::vmi::STORAGE_LIVE_MIGRATABLE;
    let with_storage = if said.is_empty() {
        holds(type_)
    } else {
        holds_not(type_, reasons::vmi::NOT_MIGRATABLE, &said.join(", "))
    };
    condition::set(all, with_storage, &now);
}

/// Whether the wish could be carried out. What somebody else reports of it is left alone.
pub fn of_wish(all: &mut Conditions, fate: &Fate, now: Timestamp) {
    let type_ = conditions::vmi::SYNCHRONIZED;
    let ours = reasons::vmi::DOMAIN_SYNC_FAILED;
    match fate {
        Fate::Overdue(why) | Fate::Failed(why) | Fate::Hopeless(why) => {
            condition::set(all, holds_not(type_, ours, why), &Time(now));
        }
        Fate::Waits => {}
        Fate::Fulfilled => {
            let old = condition::find(all.as_deref(), type_);
            if old.is_some_and(|old| old.reason.as_deref() == Some(ours)) {
                condition::remove(all, type_);
            }
        }
    }
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
