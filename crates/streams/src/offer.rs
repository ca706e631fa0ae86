//! The client's side of the handshake.

use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL};
use http::header::{SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::stream::Stream;
use crate::{PROTOCOL, Upgraded};

/// Why no stream came of a request.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The server answered with something else; its body tells why.
    #[error("the server did not open a stream: {0}")]
    Status(StatusCode),
    /// The server is not one of WebSockets.
    #[error("the server's answer is not that of a WebSocket server")]
    Answer,
    /// The connection ended.
    #[error(transparent)]
    Connection(#[from] hyper::Error),
}

/// What a client sends, kept until the answer is there.
#[derive(Clone, Debug)]
pub struct Offer {
    key: String,
}

impl Offer {
    /// Adds all that is needed to the headers of a GET request, which must go over HTTP/1.1.
    pub fn add_to(headers: &mut HeaderMap) -> Self {
        let key = generate_key();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
        // A key is base64, which every header can hold.
        if let Ok(value) = HeaderValue::try_from(&key) {
            headers.insert(SEC_WEBSOCKET_KEY, value);
        }
        Self { key }
    }

    /// The stream that the answer opens. A caller who wants the body of a refusal looks at the status first.
    pub async fn stream<B>(self, response: Response<B>) -> Result<Stream<Upgraded>, Refused> {
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(Refused::Status(response.status()));
        }
        let answer = response.headers().get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
        if answer != Some(derive_accept_key(self.key.as_bytes()).as_bytes()) {
            return Err(Refused::Answer);
        }
        let upgraded = hyper::upgrade::on(response).await?;
        Ok(Stream::new(TokioIo::new(upgraded), Role::Client).await)
    }
}
