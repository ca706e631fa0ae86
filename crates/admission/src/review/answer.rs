//! The answer to a review: allowed or not, with a patch, causes and warnings.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::{API_VERSION, Incoming, Outcome};
use crate::Problem;

/// A refusal as a whole, such as one of an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status code.
    pub code: u16,
    /// One word for programs.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// The answer to a review.
#[derive(Debug)]
pub struct Answer {
    /// The id of the request.
    pub uid: String,
    /// What is wrong with the object.
    pub problems: Vec<Problem>,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// What the defaults change, as a JSON patch; none if nothing.
    pub patch: Option<json_patch::Patch>,
    /// A refusal that is not about the object's fields.
    pub refusal: Option<Refusal>,
}

impl Answer {
    pub(super) fn from(incoming: &Incoming, outcome: Outcome) -> Self {
        let patch = outcome.change.map(|(before, after)| json_patch::diff(&before, &after));
        let warnings = outcome.problems.warnings().to_vec();
        Self {
            uid: incoming.uid.clone(),
            problems: outcome.problems.into_iter().collect(),
            warnings,
            patch: patch.filter(|patch| !patch.0.is_empty()),
            refusal: outcome.refusal,
        }
    }

    /// Whether the request may go on.
    pub fn allowed(&self) -> bool {
        self.problems.is_empty() && self.refusal.is_none()
    }

    /// The answered `AdmissionReview`.
    pub fn to_review(&self) -> Value {
        let mut response = json!({ "uid": self.uid, "allowed": self.allowed() });
        if let Some(refusal) = &self.refusal {
            response["status"] = status(refusal);
        } else if !self.problems.is_empty() {
            response["status"] = self.invalid();
        }
        if let Some(patch) = &self.patch {
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(ByteString(json!(patch).to_string().into_bytes()));
        }
        if !self.warnings.is_empty() {
            response["warnings"] = json!(self.warnings);
        }
        review(response)
    }

    fn invalid(&self) -> Value {
        let messages: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
        let cause = |problem: &Problem| {
            json!({
                "reason": problem.reason.as_str(), "field": problem.field, "message": problem.message,
            })
        };
        json!({
            "status": "Failure",
            "code": 422,
            "reason": "Invalid",
            "message": messages.join("; "),
            "details": { "causes": self.problems.iter().map(cause).collect::<Value>() },
        })
    }
}

/// The answer to what is not a review that could be answered otherwise.
pub(super) fn bad_request(message: &str) -> Value {
    let refusal = Refusal { code: 400, reason: "BadRequest", message: message.to_owned() };
    review(json!({ "uid": "", "allowed": false, "status": status(&refusal) }))
}

fn status(refusal: &Refusal) -> Value {
    json!({
        "status": "Failure", "code": refusal.code, "reason": refusal.reason, "message": refusal.message,
    })
}

fn review(response: Value) -> Value {
    json!({ "apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response })
}

impl super::NotAReview {
    /// The review that answers bytes which are none.
    pub fn to_review(&self) -> Value {
        bad_request(&self.to_string())
    }
}
