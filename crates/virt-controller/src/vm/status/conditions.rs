//! The conditions of a machine: its own, and those of its instance beside them.

use jiff::Timestamp;
use kubevirt_api::condition::{self, Condition};
use kubevirt_api::names::conditions::{vm, vmi};
use kubevirt_api::names::reasons;
use kubevirt_api::vm::status::VirtualMachineStatus;
use kubevirt_api::vmi::VirtualMachineInstance;

use crate::vm::plan::Failure;
use crate::vm::view;

/// The conditions that are not the instance's to say, or not in its words.
const OWN: [&str; 3] = [vm::READY, vm::FAILURE, vm::RESTART_REQUIRED];

/// Follows the instance and the outcome of the round. What an instance said stays when it goes: the machine's end of
/// an exchange of volumes is told from it.
pub fn follow(
    status: &mut VirtualMachineStatus,
    instance: Option<&VirtualMachineInstance>,
    failure: Option<&Failure>,
    now: Timestamp,
) {
    set(status, ready(instance, now));
    match failure {
        None => remove(status, vm::FAILURE),
        Some(failure) => {
            let mut failed = new(vm::FAILURE, "True", failure.reason, &failure.message);
            failed.last_transition_time = Some(view::second(now));
            set(status, failed);
        }
    }
    let Some(instance) = instance else { return };
    let said = instance.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    if let Some(all) = &mut status.conditions {
        all.retain(|old| {
            OWN.contains(&old.type_.as_str()) || said.iter().any(|condition| condition.type_ == old.type_)
        });
    }
    for condition in said.iter().filter(|condition| !OWN.contains(&condition.type_.as_str())) {
        set(status, condition.clone());
    }
}

fn ready(instance: Option<&VirtualMachineInstance>, now: Timestamp) -> Condition {
    let said = instance.and_then(|instance| view::condition(instance, vmi::READY));
    let (reason, message) = match (instance, said) {
        (_, Some(said)) => return Condition { type_: vm::READY.to_owned(), ..said.clone() },
        (None, None) => (reasons::vm::VMI_NOT_EXISTS, "VMI does not exist"),
        (Some(_), None) => (reasons::vm::VMI_CONDITION_MISSING, "VMI is missing the Ready condition"),
    };
    let time = Some(view::second(now));
    Condition {
        last_probe_time: time.clone(),
        last_transition_time: time,
        ..new(vm::READY, "False", reason, message)
    }
}

fn new(type_: &str, status: &str, reason: &str, message: &str) -> Condition {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: text(reason),
        message: text(message),
        ..Condition::default()
    }
}

/// Sets a condition; one that says the same already keeps its times.
pub fn set(status: &mut VirtualMachineStatus, condition: Condition) {
    let all = status.conditions.get_or_insert_default();
    let Some(old) = all.iter_mut().find(|old| old.type_ == condition.type_) else {
        all.push(condition);
        return;
    };
    if says(old) != says(&condition) {
        *old = condition;
    }
}

fn says(condition: &Condition) -> (&str, Option<&str>, Option<&str>) {
    (&condition.status, condition.reason.as_deref(), condition.message.as_deref())
}

/// Takes a condition away.
pub fn remove(status: &mut VirtualMachineStatus, type_: &str) {
    if let Some(all) = &mut status.conditions {
        all.retain(|condition| condition.type_ != type_);
    }
}

/// Gives a condition that was taken away and set again, and says what it said before, its times back.
pub fn keep_times(status: &mut VirtualMachineStatus, before: Option<&VirtualMachineStatus>, type_: &str) {
    let told = before.and_then(|before| condition::find(before.conditions.as_deref(), type_));
    let now = status.conditions.iter_mut().flatten().find(|condition| condition.type_ == type_);
    if let (Some(told), Some(now)) = (told, now)
        && says(told) == says(now)
    {
        now.clone_from(told);
    }
}

/// Whether a condition of the machine holds.
pub fn holds(status: &VirtualMachineStatus, type_: &str) -> bool {
    condition::find(status.conditions.as_deref(), type_).is_some_and(Condition::is_true)
}

/// Notes that a change takes effect only after a restart.
pub fn require_restart(status: &mut VirtualMachineStatus, why: &str, now: Timestamp) {
    let mut condition = new(vm::RESTART_REQUIRED, "True", "", why);
    condition.last_transition_time = Some(view::second(now));
    set(status, condition);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::testing::{at, read};
    use serde_json::{Value, json};

    fn after(before: Value, instance: Option<Value>, failure: Option<Failure>) -> Value {
        let mut status = read(json!({ "conditions": before }));
        let instance = instance.map(|conditions| read(json!({ "status": { "conditions": conditions } })));
        follow(&mut status, instance.as_ref(), failure.as_ref(), at(5));
        let mut all = json!(status.conditions);
        for condition in all.as_array_mut().unwrap() {
            let condition = condition.as_object_mut().unwrap();
            condition.remove("message");
            condition.remove("lastProbeTime");
            condition.remove("lastTransitionTime");
        }
        all
    }

    #[test]
    fn ready_is_the_instances_word_or_why_there_is_none() {
        let absent = json!([{ "type": "Ready", "status": "False", "reason": "VMINotExists" }]);
        assert_eq!(after(json!([]), None, None), absent);
        let silent = json!([{ "type": "Ready", "status": "False", "reason": "VMIConditionMissing" }]);
        assert_eq!(after(absent, Some(json!([])), None), silent);
        let ready = json!([{ "type": "Ready", "status": "True" }]);
        assert_eq!(after(silent, Some(ready.clone()), None), ready);
    }

    #[test]
    fn conditions_come_and_go_with_those_of_the_instance() {
        let migratable = json!({ "type": "LiveMigratable", "status": "True" });
        let restart = json!({ "type": "RestartRequired", "status": "True" });
        let ready = json!({ "type": "Ready", "status": "True" });
        let both = after(json!([restart]), Some(json!([ready, migratable])), None);
        assert_eq!(both, json!([restart, ready, migratable]));
        assert_eq!(after(both.clone(), Some(json!([ready])), None), json!([restart, ready]));
        let gone = json!({ "type": "Ready", "status": "False", "reason": "VMINotExists" });
        assert_eq!(after(both, None, None), json!([restart, gone, migratable]));
    }

    #[test]
    fn a_failure_is_there_as_long_as_it_lasts() {
        let failure = Failure::new("FailedCreate", "no");
        let ready = json!({ "type": "Ready", "status": "False", "reason": "VMINotExists" });
        let failed = after(json!([]), None, Some(failure));
        assert_eq!(failed, json!([ready, { "type": "Failure", "status": "True", "reason": "FailedCreate" }]));
        assert_eq!(after(failed, None, None), json!([ready]));
    }

    #[test]
    fn what_says_the_same_keeps_its_time() {
        let mut status = VirtualMachineStatus::default();
        follow(&mut status, None, None, at(1));
        let before = status.clone();
        follow(&mut status, None, None, at(2));
        assert_eq!(status, before);
    }
}
