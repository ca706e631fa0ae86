//! How the outcome of a command is told.

use kubevirt_launcher_rpc::cmd::Response;
use serde::Serialize;

use crate::error::CommandError;

/// The answer to a command that has no other result.
pub(super) fn done(outcome: Result<(), CommandError>) -> Response {
    split(outcome).0
}

/// The answer, and the result if there is one.
pub(super) fn split<T>(outcome: Result<T, CommandError>) -> (Response, Option<T>) {
    match outcome {
        Ok(result) => (Response { success: true, message: String::new() }, Some(result)),
        Err(error) => {
            tracing::warn!(%error, "a command was not carried out");
            (Response { success: false, message: error.to_string() }, None)
        }
    }
}

/// The answer, and the result as JSON; empty if there is none.
pub(super) fn json<T: Serialize>(outcome: Result<T, CommandError>) -> (Response, String) {
    let text = outcome.and_then(|result| Ok(serde_json::to_string(&result)?));
    let (response, text) = split(text);
    (response, text.unwrap_or_default())
}
