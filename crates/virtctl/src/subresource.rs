//! What is asked of a virtual machine through the aggregated API.

use http::{Method, Request, Response, StatusCode, header};
use kube::client::Body;
use kubevirt_api::names::groups;
use kubevirt_streams::{Offer, Stream, Upgraded};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::connect::Session;
use crate::failure::Refusal;

/// The version of the aggregated API that is spoken.
const VERSION: &str = "v1";

/// What a subresource belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A `VirtualMachine`.
    Vm,
    /// A `VirtualMachineInstance`.
    Vmi,
}

impl Kind {
    /// The resource, as in a path.
    pub fn resource(self) -> &'static str {
        match self {
            Self::Vm => "virtualmachines",
            Self::Vmi => "virtualmachineinstances",
        }
    }

    /// The short name, as in a target.
    pub fn short(self) -> &'static str {
        match self {
            Self::Vm => "vm",
            Self::Vmi => "vmi",
        }
    }
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cluster refused it.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// It did not reach the cluster, or the answer did not come back.
    #[error("the cluster cannot be reached")]
    Connection(#[from] kube::Error),
    /// It cannot be written as HTTP.
    #[error("the request cannot be made: {0}")]
    Request(#[from] http::Error),
    /// The answer is not what was asked for.
    #[error("the answer cannot be understood: {0}")]
    Answer(#[from] serde_json::Error),
    /// The server did not open a stream.
    #[error(transparent)]
    Stream(#[from] kubevirt_streams::Refused),
}

impl Error {
    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Whether the object is not there.
    pub fn is_not_found(&self) -> bool {
        self.refusal().is_some_and(Refusal::is_not_found)
    }
}

/// The path of a subresource. Names come from users: what is not a name's character is escaped.
pub fn path(kind: Kind, namespace: &str, name: &str, subresource: &str) -> String {
    let (group, resource) = (groups::SUBRESOURCES, kind.resource());
    let (namespace, name) = (escaped(namespace), escaped(name));
    format!("/apis/{group}/{VERSION}/namespaces/{namespace}/{resource}/{name}/{subresource}")
}

/// A segment of a path, or a value of a query.
pub fn escaped(text: &str) -> String {
    use std::fmt::Write as _;
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            other => {
                let _ = write!(escaped, "%{other:02X}");
            }
        }
    }
    escaped
}

impl Session {
    /// Asks for something to be done.
    pub async fn put(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        subresource: &str,
        body: Option<&Value>,
    ) -> Result<(), Error> {
        self.call(Method::PUT, &path(kind, namespace, name, subresource), body).await.map(drop)
    }

    /// Asks for something to be told.
    pub async fn get<T: DeserializeOwned>(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        subresource: &str,
    ) -> Result<T, Error> {
        let bytes = self.call(Method::GET, &path(kind, namespace, name, subresource), None).await?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Any request to a path, which may have a query; the answer as it came.
    pub async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Vec<u8>, Error> {
        let request =
            Request::builder().method(method).uri(path).header(header::ACCEPT, "application/json, */*");
        let request = match body {
            Some(body) => request
                .header(header::CONTENT_TYPE, "application/json")
                .body(Body::from(serde_json::to_vec(body)?))?,
            None => request.body(Body::empty())?,
        };
        let response = self.client.send(request).await?;
        let status = response.status();
        let bytes = response.into_body().collect_bytes().await?.to_vec();
        if status.is_success() { Ok(bytes) } else { Err(refusal(status, &bytes).into()) }
    }

    /// Opens a stream of bytes; the query may be empty.
    pub async fn stream(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        subresource: &str,
        query: &[(&str, &str)],
    ) -> Result<Stream<Upgraded>, Error> {
        let pairs: Vec<String> =
            query.iter().map(|(key, value)| format!("{key}={}", escaped(value))).collect();
        let mut path = path(kind, namespace, name, subresource);
        if !pairs.is_empty() {
            path = format!("{path}?{}", pairs.join("&"));
        }
        let mut request = Request::get(path).body(Body::empty())?;
        let offer = Offer::add_to(request.headers_mut());
        let response = self.patient.send(request).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(told(response).await?.into());
        }
        Ok(offer.stream(response).await?)
    }
}

async fn told(response: Response<Body>) -> Result<Refusal, kube::Error> {
    let status = response.status();
    Ok(refusal(status, &response.into_body().collect_bytes().await?))
}

/// What a refusal's body says: a `Status`, or plain text from something between us and the cluster.
pub fn refusal(status: StatusCode, body: &[u8]) -> Refusal {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |field: &str| said.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut message = text("message");
    if message.is_empty() {
        message = String::from_utf8_lossy(body).trim().to_owned();
    }
    if message.is_empty() {
        message = format!("the server answered {status}");
    }
    Refusal { code: status.as_u16(), reason: text("reason"), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_hold_any_name() {
        assert_eq!(
            path(Kind::Vmi, "default", "a", "portforward/22/tcp"),
            "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/a/portforward/22/tcp"
        );
        assert_eq!(
            path(Kind::Vm, "d", "../a b?c", "start"),
            "/apis/subresources.kubevirt.io/v1/namespaces/d/virtualmachines/..%2Fa%20b%3Fc/start"
        );
    }

    #[test]
    fn a_refusal_says_what_its_body_says() {
        let status = StatusCode::CONFLICT;
        for (body, reason, message) in [
            (
                r#"{"kind":"Status","reason":"Conflict","message":"VM is already running"}"#,
                "Conflict",
                "VM is already running",
            ),
            ("bad gateway\n", "", "bad gateway"),
            ("", "", "the server answered 409 Conflict"),
            ("[1]", "", "[1]"),
        ] {
            let expected = Refusal { code: 409, reason: reason.to_owned(), message: message.to_owned() };
            assert_eq!(refusal(status, body.as_bytes()), expected);
        }
    }
}
