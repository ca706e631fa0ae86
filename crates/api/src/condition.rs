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
