//! Conditions, which every kind reports in the same shape.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// One aspect of an object's state, with the time and the reason of its last change.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Which aspect this is about.
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// When the aspect was last looked at.
    #[schemars(extend("nullable" = true))]
    pub last_probe_time: Option<Time>,
    /// When the status last changed.
    #[schemars(extend("nullable" = true))]
    pub last_transition_time: Option<Time>,
    /// A word for programs that says why the status is what it is.
    pub reason: Option<String>,
    /// A sentence for people that says why the status is what it is.
    pub message: Option<String>,
}

impl Condition {
    /// Whether the condition holds.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }
}

/// The condition of this type, if it is reported.
pub fn find<'a>(conditions: Option<&'a [Condition]>, type_: &str) -> Option<&'a Condition> {
    conditions.unwrap_or_default().iter().find(|condition| condition.type_ == type_)
}

/// Reports a condition in place of the one of its type. What only repeats itself keeps the time of its last change,
/// and a report that says nothing new changes nothing.
pub fn set(conditions: &mut Option<Vec<Condition>>, mut condition: Condition, now: &Time) {
    let all = conditions.get_or_insert_default();
    let Some(old) = all.iter_mut().find(|old| old.type_ == condition.type_) else {
        condition.last_transition_time.get_or_insert_with(|| now.clone());
        all.push(condition);
        return;
    };
    condition.last_transition_time = if old.status == condition.status {
        old.last_transition_time.clone()
    } else {
        condition.last_transition_time.or_else(|| Some(now.clone()))
    };
    if condition.last_probe_time.is_none() {
        condition.last_probe_time = old.last_probe_time.clone();
    }
    *old = condition;
}

/// Takes the condition of this type away. A list that was absent stays absent.
pub fn remove(conditions: &mut Option<Vec<Condition>>, type_: &str) {
    if let Some(all) = conditions {
        all.retain(|condition| condition.type_ != type_);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Time {
        Time(k8s_openapi::jiff::Timestamp::from_second(second).unwrap())
    }

    fn ready(status: &str, reason: &str) -> Condition {
        let reason = Some(reason.to_owned());
        Condition { type_: "Ready".into(), status: status.into(), reason, ..Condition::default() }
    }

    #[test]
    fn the_time_of_the_last_change_is_that_of_the_status() {
        let mut conditions = None;
        set(&mut conditions, ready("True", "a"), &at(1));
        set(&mut conditions, ready("True", "b"), &at(2));
        let found = find(conditions.as_deref(), "Ready").unwrap();
        assert_eq!((found.reason.as_deref(), &found.last_transition_time), (Some("b"), &Some(at(1))));
        set(&mut conditions, ready("False", "b"), &at(3));
        assert_eq!(find(conditions.as_deref(), "Ready").unwrap().last_transition_time, Some(at(3)));
        assert_eq!(conditions.as_ref().map(Vec::len), Some(1));
        remove(&mut conditions, "Ready");
        assert_eq!(conditions, Some(vec![]));
    }
}
