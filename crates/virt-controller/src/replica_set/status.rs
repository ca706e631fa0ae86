//! What a replica set says of itself.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::Selector;
use kubevirt_api::condition::{self, Condition};
use kubevirt_api::names::conditions::replica_set as conditions;
use kubevirt_api::names::reasons::replica_set as reasons;
use kubevirt_api::replica_set::{VirtualMachineInstanceReplicaSet, VirtualMachineInstanceReplicaSetStatus};

use super::decide::Plan;

/// The status that the set should have.
pub fn wanted(
    set: &VirtualMachineInstanceReplicaSet,
    selector: &Selector,
    plan: &Plan,
    failure: Option<&kube::Error>,
    now: Timestamp,
) -> VirtualMachineInstanceReplicaSetStatus {
    let mut status = set.status.clone().unwrap_or_default();
    status.replicas = i32::try_from(plan.replicas).ok();
    status.ready_replicas = i32::try_from(plan.ready).ok();
    status.label_selector = Some(selector.to_string());
    let paused = (set.spec.paused == Some(true)).then(|| (reasons::PAUSED, "the set is paused".to_owned()));
    let failed = failure.map(|error| {
        let reason = if plan.surplus < 0 { reasons::FAILED_CREATE } else { reasons::FAILED_DELETE };
        (reason, error.to_string())
    });
    report(&mut status.conditions, conditions::REPLICA_PAUSED, paused, now);
    report(&mut status.conditions, conditions::REPLICA_FAILURE, failed, now);
    status
}

/// A condition that is there while it holds, and gone otherwise. Its words stay as long as its reason does: they may
/// name another object each time, and each write brings the work up again, ahead of its pause.
pub(crate) fn report(
    all: &mut Option<Vec<Condition>>,
    type_: &str,
    holds: Option<(&str, String)>,
    now: Timestamp,
) {
    let Some((reason, message)) = holds else { return condition::remove(all, type_) };
    let told = condition::find(all.as_deref(), type_);
    if told.is_some_and(|told| told.is_true() && told.reason.as_deref() == Some(reason)) {
        return;
    }
    let condition = Condition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        ..Condition::default()
    };
    condition::set(all, condition, &Time(now));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_stays_while_its_reason_does() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut all = None;
        let steps: [(_, Option<(&str, &str)>); 5] = [
            (Some(("Full", "no room for a")), Some(("Full", "no room for a"))),
            (Some(("Full", "no room for b")), Some(("Full", "no room for a"))),
            (Some(("Refused", "b is refused")), Some(("Refused", "b is refused"))),
            (None, None),
            (Some(("Full", "no room for c")), Some(("Full", "no room for c"))),
        ];
        for (second, (holds, told)) in steps.into_iter().enumerate() {
            let holds = holds.map(|(reason, message): (&str, &str)| (reason, message.to_owned()));
            report(&mut all, "Failure", holds, at(i64::try_from(second).unwrap()));
            let condition = condition::find(all.as_deref(), "Failure");
            let words =
                condition.and_then(|found| Some((found.reason.as_deref()?, found.message.as_deref()?)));
            assert_eq!(words, told);
        }
    }
}
