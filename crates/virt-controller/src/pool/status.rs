//! What a pool says of itself.

use jiff::Timestamp;
use kube::ResourceExt;
use kube::core::SelectorExt;
use kubevirt_api::condition::{self, Condition};
use kubevirt_api::names::conditions::{pool as conditions, vm};
use kubevirt_api::names::reasons::pool as reasons;
use kubevirt_api::pool::VirtualMachinePoolStatus;

use super::decide::{Observed, Stage};
use crate::replica_set::report;

/// The status that the pool should have.
pub fn wanted(
    observed: &Observed,
    stage: Stage,
    failure: Option<&kube::Error>,
    now: Timestamp,
) -> VirtualMachinePoolStatus {
    let pool = &observed.pool;
    let members: Vec<_> =
        observed.machines.iter().filter(|machine| observed.selector.matches(machine.labels())).collect();
    let ready = members.iter().filter(|machine| {
        let all = machine.status.as_ref().and_then(|status| status.conditions.as_deref());
        condition::find(all, vm::READY).is_some_and(Condition::is_true)
    });
    let mut status = pool.status.clone().unwrap_or_default();
    status.ready_replicas = i32::try_from(ready.count()).ok();
    status.replicas = i32::try_from(members.len()).ok();
    status.label_selector = Some(observed.selector.to_string());
    let failed = failure.map(|error| (stage.reason(), error.to_string()));
    let paused = (pool.spec.paused == Some(true)).then(|| (reasons::PAUSED, "the pool is paused".to_owned()));
    report(&mut status.conditions, conditions::REPLICA_FAILURE, failed, now);
    report(&mut status.conditions, conditions::REPLICA_PAUSED, paused, now);
    status
}
