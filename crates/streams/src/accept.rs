//! The server's side of the handshake.

use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL};
use http::header::{SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::pulse::Pulse;
use crate::stream::Stream;
use crate::{PROTOCOL, Upgraded};

/// Why a request cannot become a stream. All of these are the client's mistake: status 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAStream {
    /// It is an ordinary request.
    #[error("this is a stream: ask for it with a WebSocket (Connection: Upgrade, Upgrade: websocket)")]
    Ordinary,
    /// It is of another version.
    #[error("only version 13 of WebSocket is spoken here")]
    Version,
    /// It has no key.
    #[error("the request has no Sec-WebSocket-Key")]
    Key,
}

/// A stream that is there as soon as the answer is sent. Its client is asked from time to time whether it is there.
#[derive(Debug)]
pub struct Accepted {
    upgrade: OnUpgrade,
    pulse: Pulse,
}

impl Accepted {
    /// Waits until the client has the answer.
    pub async fn stream(self) -> Result<Stream<Upgraded>, hyper::Error> {
        let stream = Stream::new(TokioIo::new(self.upgrade.await?), Role::Server).await;
        Ok(stream.with_pulse(self.pulse))
    }

    /// The client is asked at other times than usual.
    #[must_use]
    pub fn with_pulse(self, pulse: Pulse) -> Self {
        Self { pulse, ..self }
    }
}

/// Checks that a request asks for a stream; gives the answer, and the stream that begins once it is sent.
pub fn accept<B>(request: &mut Request<B>) -> Result<(Response<()>, Accepted), NotAStream> {
    let (answer, protocol) = check(request.method(), request.headers())?;
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, answer);
    if let Some(protocol) = protocol {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok((response, Accepted { upgrade: hyper::upgrade::on(request), pulse: Pulse::default() }))
}

/// The answer to the key, and our protocol if it was named. A client that names only others hears of none: as with
/// KubeVirt, it is for the client to go on or not.
fn check(method: &Method, headers: &HeaderMap) -> Result<(HeaderValue, Option<HeaderValue>), NotAStream> {
    let names =
        |name: HeaderName, word: &str| words(headers, name).any(|given| given.eq_ignore_ascii_case(word));
    if method != Method::GET || !names(CONNECTION, "upgrade") || !names(UPGRADE, "websocket") {
        return Err(NotAStream::Ordinary);
    }
    if !names(SEC_WEBSOCKET_VERSION, "13") {
        return Err(NotAStream::Version);
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).ok_or(NotAStream::Key)?;
    let answer = HeaderValue::try_from(derive_accept_key(key.as_bytes())).map_err(|_| NotAStream::Key)?;
    let ours = words(headers, SEC_WEBSOCKET_PROTOCOL).any(|offered| offered == PROTOCOL);
    Ok((answer, ours.then(|| HeaderValue::from_static(PROTOCOL))))
}

/// The words of a header that is a list.
fn words(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(pair).collect()
    }

    const GOOD: [(&str, &str); 4] = [
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];

    #[test]
    fn a_request_is_answered_as_the_standard_says() {
        let (answer, protocol) = check(&Method::GET, &headers(&GOOD)).unwrap();
        assert_eq!(answer, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(protocol, None);
    }

    #[test]
    fn our_protocol_is_chosen_among_others_and_no_other_is() {
        for (offered, chosen) in [
            ("plain.kubevirt.io", Some(PROTOCOL)),
            ("base64.binary.k8s.io, plain.kubevirt.io", Some(PROTOCOL)),
            ("v4.channel.k8s.io", None),
            ("binary, base64", None),
            ("", None),
        ] {
            let mut lines = GOOD.to_vec();
            lines.push(("sec-websocket-protocol", offered));
            let (_, answer) = check(&Method::GET, &headers(&lines)).unwrap();
            assert_eq!(answer.as_ref().map(|it| it.to_str().unwrap()), chosen, "{offered}");
        }
    }

    #[test]
    fn what_is_not_a_stream_is_refused_with_the_reason() {
        assert_eq!(check(&Method::POST, &headers(&GOOD)), Err(NotAStream::Ordinary));
        let without = |skip: usize| {
            let mut lines = GOOD.to_vec();
            lines.remove(skip);
            check(&Method::GET, &headers(&lines)).unwrap_err()
        };
        let expected = [NotAStream::Ordinary, NotAStream::Ordinary, NotAStream::Version, NotAStream::Key];
        for (index, expected) in expected.into_iter().enumerate() {
            assert_eq!(without(index), expected);
        }
    }
}
