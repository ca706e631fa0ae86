//! What went wrong, and what to do next, in words for a terminal.

use http::StatusCode;

use crate::program::Program;

/// A failure whose next step is known where it happens.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Failure {
    what: String,
    next: String,
}

impl Failure {
    /// What happened and, as a whole sentence, what to do.
    pub fn new(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self { what: what.into(), next: next.into() }
    }
}

/// A request that the cluster has refused: the `Status` that it answered.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The HTTP status.
    pub code: u16,
    /// A word for programs, such as `NotFound`.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl Refusal {
    /// Whether the object is not there.
    pub fn is_not_found(&self) -> bool {
        self.code == StatusCode::NOT_FOUND.as_u16()
    }
}

/// Whether it was the cluster that refused something, and so is there to be asked for more.
pub fn is_refused(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.is::<Refusal>() || matches!(cause.downcast_ref(), Some(kube::Error::Api(_))))
}

/// Everything that is known about a failure, with a line that names a next step where there is one.
pub fn words(error: &anyhow::Error) -> String {
    let what = causes(error).join(": ");
    let what = what.trim_end();
    match next_step(error) {
        Some(next) => format!("error: {what}\n{next}"),
        None => format!("error: {what}"),
    }
}

/// The same, with our own commands as a user has to type them.
pub fn words_of(program: &Program, error: &anyhow::Error) -> String {
    words(error).replace("`virtctl ", &format!("`{} ", program.name))
}

/// From the outermost context to the innermost cause; what only repeats its cause is told once.
fn causes(error: &anyhow::Error) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for cause in error.chain() {
        let (text, last) = match cause.downcast_ref::<kube::Error>() {
            Some(kube::Error::Api(status)) => (status.message.clone(), true),
            Some(other) => (transport(other), true),
            None => (cause.to_string(), false),
        };
        if !text.is_empty() && !told.iter().any(|before| before.contains(&text)) {
            told.push(text);
        }
        if last {
            break;
        }
    }
    told
}

/// The innermost reason of a failed connection: the layers above it only say that there was one.
fn transport(error: &kube::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn next_step(error: &anyhow::Error) -> Option<String> {
    for cause in error.chain() {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return Some(failure.next.clone());
        }
        if let Some(refusal) = cause.downcast_ref::<Refusal>() {
            return after_status(refusal.code, &refusal.reason, &refusal.message).map(str::to_owned);
        }
        match cause.downcast_ref::<kube::Error>() {
            Some(kube::Error::Api(status)) => {
                return after_status(status.code, &status.reason, &status.message).map(str::to_owned);
            }
            Some(kube::Error::HyperError(_) | kube::Error::Service(_)) => {
                return Some(
                    "The API server does not answer: check --server, --context and KUBECONFIG, or try \
                     `kubectl version`."
                        .to_owned(),
                );
            }
            Some(kube::Error::Auth(_)) => {
                return Some(
                    "The kubeconfig's credentials could not be obtained: try `kubectl auth whoami`."
                        .to_owned(),
                );
            }
            _ => {}
        }
    }
    None
}

fn after_status(code: u16, reason: &str, message: &str) -> Option<&'static str> {
    Some(match code {
        401 => "Log in again, or name another user with --user, --context or --token.",
        403 => {
            "Ask an administrator of the namespace for a role such as kubevirt.io:edit; `kubectl auth can-i` tells \
             what you may do."
        }
        404 if message.contains("could not find the requested resource")
            || message.starts_with("404 page not found")
            || reason == "NotFound" && message.starts_with("404") =>
        {
            "KubeVirt does not seem to be installed, or its API is too old: see `kubectl get kubevirt -A`."
        }
        404 => "See what there is with `kubectl get vm,vmi`; -n names another namespace.",
        409 if reason == "AlreadyExists" => "Choose another name, or delete what is there.",
        409 => "See what state it is in with `kubectl get vm,vmi`.",
        429 => "The API server has too much to do: try again in a moment.",
        // A handler's refusal comes through virt-api as a failure of its own.
        500 | 503 if message.contains("connection. Request denied") => {
            "Somebody else is connected: without --preserve-session you take their place."
        }
        500 | 503 if message.contains("devices are in use") => "Wait until one is free, or disconnect one.",
        500 | 502 => "Try again; if it stays, an administrator finds more in the log of virt-api.",
        501 => {
            "This cluster's KubeVirt does not have that: see with `virtctl version` which it is, and ask an \
             administrator for an update."
        }
        503 => {
            "KubeVirt's API is not available right now: see `kubectl get pods -A -l kubevirt.io=virt-api`."
        }
        504 => "It took too long, but may have been done: look before you try again.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    fn words(error: &anyhow::Error) -> String {
        words_of(&Program { name: "kubectl virt".into() }, error)
    }

    fn refusal(code: u16, message: &str) -> Refusal {
        Refusal { code, reason: String::new(), message: message.to_owned() }
    }

    #[test]
    fn a_failure_is_told_once_and_with_a_next_step() {
        let error =
            anyhow::Error::from(refusal(404, "virtualmachine \"a\" not found")).context("error stopping");
        let text = words(&error);
        assert!(
            text.starts_with("error: error stopping: virtualmachine \"a\" not found\nSee what"),
            "{text}"
        );

        let text = words(&refusal(404, "404 page not found").into());
        assert!(text.contains("KubeVirt does not seem to be installed"), "{text}");

        let text = words(&refusal(501, "vnc is not done here").into());
        assert!(text.contains("see with `kubectl virt version`"), "{text}");

        let error = anyhow::Error::from(Failure::new("no viewer", "Try `virtctl vnc`.")).context("vnc");
        assert_eq!(words(&error), "error: vnc: no viewer\nTry `kubectl virt vnc`.");

        let repeated = Err::<(), _>(anyhow::anyhow!("inner")).context("outer: inner").unwrap_err();
        assert_eq!(words(&repeated), "error: outer: inner");
    }

    #[test]
    fn a_refusal_leads_to_a_next_step() {
        for (code, reason, message, expected) in [
            (401, "", "Unauthorized", "Log in again"),
            (404, "NotFound", "vm \"a\" not found", "kubectl get vm,vmi"),
            (409, "Conflict", "VM is not running", "what state"),
            (409, "AlreadyExists", "services \"a\" already exists", "another name"),
            (429, "", "too many requests", "try again"),
            (500, "", "Internal error occurred", "log of virt-api"),
            (501, "", "not done here", "virtctl version"),
            (503, "", "no endpoints available for service", "not available right now"),
            (
                500,
                "InternalError",
                "Internal error occurred: Can't connect to websocket (503): bad handshake: application info: Active \
                 VNC connection. Request denied.",
                "--preserve-session",
            ),
            (503, "", "All USB devices are in use.", "disconnect one"),
            (504, "Timeout", "timed out", "look before"),
        ] {
            let next = after_status(code, reason, message).unwrap_or_default();
            assert!(next.contains(expected), "{code} {message}: {next}");
        }
        assert_eq!(after_status(422, "Invalid", "spec.running: it is both"), None);
    }

    #[test]
    fn a_status_is_shown_by_its_sentence_only() {
        let status = kube::core::Status::failure("pods is forbidden", "Forbidden").with_code(403);
        let error = anyhow::Error::from(kube::Error::Api(status.boxed()));
        let text = words(&error);
        assert!(text.starts_with("error: pods is forbidden\nAsk an administrator"), "{text}");
    }
}
