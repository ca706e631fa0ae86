//! How requests are answered.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;

use crate::launchers::CommandError;

/// A request that is not granted: a status and a sentence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) why: String,
}

pub(super) type Answer = Result<Response<Body>, Refusal>;

impl Refusal {
    pub(super) fn new(status: StatusCode, why: impl ToString) -> Self {
        Self { status, why: why.to_string() }
    }

    /// The request makes no sense.
    pub(super) fn bad(why: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, why)
    }

    /// The request makes sense, but it does not work.
    pub(super) fn failed(why: impl ToString) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, why)
    }
}

impl From<CommandError> for Refusal {
    fn from(error: CommandError) -> Self {
        Self::failed(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        (self.status, [(CONTENT_TYPE, text)], self.why).into_response()
    }
}

/// It is on its way.
pub(super) fn accepted() -> Answer {
    Ok(StatusCode::ACCEPTED.into_response())
}

/// What a launcher says, which is JSON.
pub(super) fn json(text: impl Into<Vec<u8>>) -> Answer {
    let text = text.into();
    if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(&text) {
        return Err(CommandError::Unreadable(error).into());
    }
    Ok(([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response())
}
