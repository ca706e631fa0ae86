//! Fetching a file: what breaks off goes on where it stopped, and what arrives is what was sent.

use std::time::Duration;

use http::uri::Uri;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::checksum::{self, Checksum};
use super::client::{self, Client};
use super::progress::Progress;
use super::sink::{self, Sink};

/// How often a transfer that gets nowhere goes on before it is given up.
const PATIENCE: u32 = 5;

/// What is fetched.
pub struct Ask {
    /// The address.
    pub uri: Uri,
    /// What the server wants to be told.
    pub headers: HeaderMap,
    /// How often a refusal is not taken for an answer.
    pub retries: u32,
    /// How long to wait before another attempt.
    pub pause: Duration,
    /// How long a server may be silent.
    pub silence: Duration,
}

/// Why the file is not here.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No answer.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// Another answer than the file.
    #[error("Bad status: {status}{words}")]
    Status {
        /// What the server said.
        status: StatusCode,
        /// And why, with a colon before it.
        words: String,
    },
    /// The connection broke off.
    #[error("the connection broke off after {received} bytes: {reason}")]
    Broken {
        /// How much had arrived.
        received: u64,
        /// What happened.
        reason: String,
    },
    /// The server goes on somewhere else than where it stopped.
    #[error("the server does not go on where it stopped: {0}")]
    Range(String),
    /// The file is another one now, and what is out already cannot be taken back.
    #[error("the file has changed on the server during the download")]
    Changed,
    /// What arrived is not what was sent.
    #[error("the checksum is {found}, and the server's is {promised}")]
    Checksum {
        /// Of what arrived.
        found: String,
        /// Of what was sent.
        promised: String,
    },
    /// The output cannot be written, or does not unpack.
    #[error("the output cannot be written: {0}")]
    Output(#[from] std::io::Error),
}

impl Error {
    /// Whether the same request may do better.
    fn is_passing(&self) -> bool {
        match self {
            Self::Broken { .. } | Self::Status { .. } => true,
            Self::Client(error) => error.is_passing(),
            _ => false,
        }
    }
}

/// What has arrived so far.
#[derive(Default)]
struct Received {
    bytes: u64,
    checksum: Checksum,
    total: Option<u64>,
    /// What tells whether the file is still the same.
    version: Option<HeaderValue>,
    promised: Option<Vec<u8>>,
}

/// Fetches a file; what was written in the end, and whether the server vouched for it.
pub async fn download(
    client: &Client,
    ask: &Ask,
    mut sink: Sink,
    progress: &mut Progress,
) -> Result<(sink::Result, bool), Error> {
    let mut received = Received::default();
    let mut failures = 0;
    loop {
        let before = received.bytes;
        let error = match attempt(client, ask, &mut sink, &mut received, progress).await {
            Ok(()) => break,
            Err(error) => error,
        };
        failures = if received.bytes > before { 0 } else { failures + 1 };
        // A transfer that was under way is worth going on with, whatever was said about refusals.
        let limit = if received.bytes > 0 { ask.retries.max(PATIENCE) } else { ask.retries };
        if !error.is_passing() || failures > limit {
            return Err(error);
        }
        progress.say(&format!("{error}. Retrying..."));
        tokio::time::sleep(ask.pause).await;
    }
    if let Some(promised) =
        received.promised.as_deref().filter(|promised| *promised != received.checksum.bytes())
    {
        let promised = promised.iter().map(|byte| format!("{byte:02x}")).collect();
        return Err(Error::Checksum { found: received.checksum.hex(), promised });
    }
    Ok((sink.finish()?, received.promised.is_some()))
}

async fn attempt(
    client: &Client,
    ask: &Ask,
    sink: &mut Sink,
    received: &mut Received,
    progress: &mut Progress,
) -> Result<(), Error> {
    let mut headers = ask.headers.clone();
    if received.bytes > 0 {
        let range = HeaderValue::from_str(&format!("bytes={}-", received.bytes));
        headers.extend(range.ok().map(|range| (header::RANGE, range)));
        headers.extend(received.version.clone().map(|version| (header::IF_RANGE, version)));
    }
    let response = client.ask(Method::GET, &ask.uri, &headers).await?;
    let again = match response.status() {
        StatusCode::PARTIAL_CONTENT => {
            check_range(&response, received)?;
            0
        }
        StatusCode::OK => begin(&response, sink, received, progress)?,
        _ => return Err(refused(response).await),
    };
    let mut repeat = Repeat { left: again, seen: Checksum::default(), before: received.checksum.clone() };
    receive(response.into_body(), ask.silence, sink, received, &mut repeat, progress).await?;
    match received.total.filter(|total| *total != received.bytes) {
        Some(_) => Err(broken(received, "it ended too early")),
        None if repeat.left > 0 => Err(Error::Changed),
        None => Ok(()),
    }
}

/// The server starts at the beginning: so do we, or what is out already must come again before something new does.
fn begin(
    response: &Response<Incoming>,
    sink: &mut Sink,
    received: &mut Received,
    progress: &mut Progress,
) -> Result<u64, Error> {
    let headers = response.headers();
    let again = if received.bytes > 0 && !sink.can_restart() { received.bytes } else { 0 };
    if again == 0 {
        if received.bytes > 0 {
            sink.restart()?;
        }
        *received = Received::default();
    }
    received.total = length(headers);
    received.version = version(headers);
    received.promised = checksum::promised(headers);
    progress.expect(received.total);
    progress.set(received.bytes);
    Ok(again)
}

/// What comes a second time.
struct Repeat {
    left: u64,
    seen: Checksum,
    before: Checksum,
}

impl Repeat {
    /// What is new of these bytes, unless the old ones are others than before.
    fn skip<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Error> {
        if self.left == 0 {
            return Ok(bytes);
        }
        let old = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        let (old, new) = bytes.split_at(old);
        self.seen.update(old);
        self.left -= old.len() as u64;
        if self.left == 0 && self.seen.bytes() != self.before.bytes() {
            return Err(Error::Changed);
        }
        Ok(new)
    }
}

async fn receive(
    mut body: Incoming,
    silence: Duration,
    sink: &mut Sink,
    received: &mut Received,
    repeat: &mut Repeat,
    progress: &mut Progress,
) -> Result<(), Error> {
    loop {
        let frame = match tokio::time::timeout(silence, body.frame()).await {
            Ok(None) => return Ok(()),
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => return Err(broken(received, &error.to_string())),
            Err(_) => return Err(broken(received, "the server is silent")),
        };
        let Some(bytes) = frame.data_ref() else { continue };
        let new = repeat.skip(bytes)?;
        sink.write(new)?;
        received.checksum.update(new);
        received.bytes += new.len() as u64;
        progress.set(received.bytes);
    }
}

fn broken(received: &Received, reason: &str) -> Error {
    Error::Broken { received: received.bytes, reason: reason.to_owned() }
}

async fn refused(response: Response<Incoming>) -> Error {
    let status = response.status();
    let body =
        response.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    let line: String = text.trim().chars().take(200).collect();
    let words = if line.is_empty() { String::new() } else { format!(": {line}") };
    Error::Status { status, words }
}

/// `bytes 5-9/10` must be what is missing, of a file of the same size.
fn check_range(response: &Response<Incoming>, received: &mut Received) -> Result<(), Error> {
    let value = response.headers().get(header::CONTENT_RANGE);
    let text = value.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (first, total) = range(text).ok_or_else(|| Error::Range(text.to_owned()))?;
    if first != received.bytes || total.is_some() && received.total.is_some() && total != received.total {
        return Err(Error::Range(text.to_owned()));
    }
    received.total = received.total.or(total);
    Ok(())
}

/// The first byte and the size of the file.
fn range(text: &str) -> Option<(u64, Option<u64>)> {
    let (bytes, total) = text.trim().strip_prefix("bytes")?.trim().split_once('/')?;
    let (first, _) = bytes.split_once('-')?;
    let total = if total == "*" { None } else { Some(total.parse().ok()?) };
    Some((first.parse().ok()?, total))
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A strong tag, or the time of the last change.
fn version(headers: &HeaderMap) -> Option<HeaderValue> {
    let tag = headers.get(header::ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/"));
    tag.or_else(|| headers.get(header::LAST_MODIFIED)).cloned()
}

#[cfg(test)]
#[path = "download_tests.rs"]
mod tests;
