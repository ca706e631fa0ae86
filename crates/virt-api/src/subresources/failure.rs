//! Why something was not done, as Kubernetes says it: a `Status`.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response, StatusCode};
use kubevirt_api::names::groups;
use serde_json::{Value, json};

/// Why something was not done.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The HTTP status.
    pub code: u16,
    /// A word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// The object that it is about, and causes.
    pub details: Value,
}

/// The kinds that failures are about, as KubeVirt names them there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// A virtual machine.
    Machine,
    /// An instance.
    Instance,
    /// A claim of a volume.
    Claim,
}

impl About {
    fn name(self) -> &'static str {
        match self {
            Self::Machine => "virtualmachine",
            Self::Instance => "virtualmachineinstance",
            Self::Claim => "persistentvolumeclaim",
        }
    }

    fn details(self, name: &str) -> Value {
        json!({ "group": groups::KUBEVIRT, "kind": self.name(), "name": name })
    }

    fn of(self, name: &str) -> String {
        format!("{}.{} {name:?}", self.name(), groups::KUBEVIRT)
    }
}

impl Failure {
    fn new(code: u16, reason: &str, message: String, details: Value) -> Self {
        Self { code, reason: reason.to_owned(), message, details }
    }

    /// There is no such object.
    pub fn not_found(about: About, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} not found", about.of(name)), about.details(name))
    }

    /// The object is not in a state for it.
    pub fn conflict(about: About, name: &str, why: impl std::fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {}: {why}", about.of(name));
        Self::new(409, "Conflict", message, about.details(name))
    }

    /// It is not allowed for this object.
    pub fn forbidden(about: About, name: &str, why: &str) -> Self {
        Self::new(403, "Forbidden", format!("{} is forbidden: {why}", about.of(name)), about.details(name))
    }

    /// The request is wrong.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into(), Value::Null)
    }

    /// Something of ours does not work.
    pub fn internal(why: impl std::fmt::Display) -> Self {
        let why = why.to_string();
        let details = json!({ "causes": [{ "message": why }] });
        Self::new(500, "InternalError", format!("Internal error occurred: {why}"), details)
    }

    /// Something of ours does not work; the message is the whole sentence.
    pub fn broken(message: String) -> Self {
        Self::new(500, "InternalError", message, Value::Null)
    }

    /// Nobody knows who asks.
    pub fn unauthorized(why: &str) -> Self {
        Self::new(401, "Unauthorized", why.to_owned(), Value::Null)
    }

    /// The one who asks may not; the message is the whole sentence.
    pub fn denied(message: String, details: Value) -> Self {
        Self::new(403, "Forbidden", message, details)
    }

    /// There is nothing at this path.
    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource".to_owned();
        Self::new(404, "NotFound", message, json!({}))
    }

    /// There is something at this path, but not for this method.
    pub fn wrong_method(method: &str, allowed: &str) -> Self {
        let message = format!("{method} is not done here: the method is {allowed}");
        Self::new(405, "MethodNotAllowed", message, Value::Null)
    }

    /// This version has not what is asked for.
    pub fn not_implemented(message: String) -> Self {
        Self::new(501, "NotImplemented", message, Value::Null)
    }

    /// The body is too large.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("the body of the request is larger than {limit} bytes");
        Self::new(413, "RequestEntityTooLarge", message, Value::Null)
    }

    /// With these causes, each a field and what is wrong with it.
    pub fn because(mut self, causes: impl IntoIterator<Item = (String, String)>) -> Self {
        let causes = causes.into_iter().map(|(field, message)| json!({ "field": field, "message": message }));
        self.details = json!({ "causes": causes.collect::<Vec<_>>() });
        self
    }

    /// What the API server answered, taken over where it is about what the user asked for.
    pub fn from_api(error: &kube::Error, what: &str) -> Self {
        match error {
            // A verdict of admission names fields that the user gave.
            kube::Error::Api(status) if status.reason == "Invalid" || status.reason == "Forbidden" => {
                let details = serde_json::to_value(&status.details).unwrap_or_default();
                Self::new(status.code, &status.reason, status.message.clone(), details)
            }
            other => Self::internal(format!("{what}: {other}")),
        }
    }

    /// As it is sent.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }

    /// The whole answer.
    pub fn response(&self) -> Response<Body> {
        let code = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        json_response(code, &self.status())
    }
}

/// An answer in JSON.
pub fn json_response(code: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An answer without a word.
pub fn empty_response(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_those_of_kubernetes() {
        let cases = [
            (Failure::not_found(About::Machine, "a"), 404, "virtualmachine.kubevirt.io \"a\" not found"),
            (
                Failure::conflict(About::Instance, "a", "VMI is paused"),
                409,
                "Operation cannot be fulfilled on virtualmachineinstance.kubevirt.io \"a\": VMI is paused",
            ),
            (
                Failure::forbidden(About::Instance, "a", "no"),
                403,
                "virtualmachineinstance.kubevirt.io \"a\" is forbidden: no",
            ),
            (Failure::internal("broken"), 500, "Internal error occurred: broken"),
            (Failure::bad_request("no"), 400, "no"),
        ];
        for (failure, code, message) in cases {
            let status = failure.status();
            assert_eq!((&status["code"], &status["message"]), (&json!(code), &json!(message)));
            assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Failure")));
        }
        let details = Failure::not_found(About::Claim, "c").status()["details"].clone();
        let expected = json!({ "group": "kubevirt.io", "kind": "persistentvolumeclaim", "name": "c" });
        assert_eq!(details, expected);
    }
}
