//! Sending a file: from the start again after a failure, or from where the server says that it stopped.

use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::uri::Uri;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;

use super::checksum::Checksum;
use super::client::{self, Body, Client};
use super::progress::Progress;

/// How much is read at once.
const CHUNK: usize = 256 * 1024;
/// How often a token that has run out is replaced.
const TOKENS: u32 = 3;
/// Where a server says how much it has; see the draft on resumable uploads for HTTP.
const OFFSET: &str = "upload-offset";

/// What is sent.
pub struct Send<'a> {
    /// The address.
    pub uri: Uri,
    /// The file.
    pub file: &'a Path,
    /// Its size.
    pub length: u64,
    /// How often it is tried again.
    pub retries: u32,
    /// How long to wait before another attempt.
    pub pause: Duration,
}

/// Why the file is not there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No answer.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// The server does not want it.
    #[error("unexpected return value {code}, {words}")]
    Refused {
        /// The status.
        code: u16,
        /// And why.
        words: String,
    },
    /// The file cannot be read.
    #[error("the file cannot be read: {0}")]
    File(#[from] std::io::Error),
    /// The file changed on the way.
    #[error("the file has changed during the upload")]
    Changed,
    /// No new token.
    #[error("failed to get upload token: {0}")]
    Token(String),
    /// The server does not accept the token.
    #[error("authentication failed: {0}")]
    Unauthorized(String),
    /// Enough.
    #[error("error uploading image after {attempts} attempts: {last}")]
    GivenUp {
        /// How many.
        attempts: u32,
        /// How the last one ended.
        last: Box<Error>,
    },
}

impl Error {
    /// Whether the same request may do better.
    fn is_passing(&self) -> bool {
        match self {
            Self::Client(error) => error.is_passing(),
            Self::Refused { code, .. } => *code >= 500 || [408, 425, 429].contains(code),
            _ => false,
        }
    }
}

/// Sends the file and gives its checksum. `token` gets a fresh one.
pub async fn upload<F: Future<Output = Result<String, String>>>(
    client: &Client,
    send: &Send<'_>,
    token: impl Fn() -> F,
    progress: Progress,
) -> Result<String, Error> {
    let progress = Arc::new(Mutex::new(progress));
    let sent = attempts(client, send, token, &progress).await;
    progress.lock().unwrap_or_else(PoisonError::into_inner).finish();
    sent
}

async fn attempts<F: Future<Output = Result<String, String>>>(
    client: &Client,
    send: &Send<'_>,
    token: impl Fn() -> F,
    progress: &Arc<Mutex<Progress>>,
) -> Result<String, Error> {
    let mut bearer = token().await.map_err(Error::Token)?;
    let mut tokens = TOKENS;
    let mut attempt = 0;
    loop {
        let offset = if attempt == 0 { None } else { resume(client, send, &bearer).await };
        let error = match once(client, send, &bearer, offset, progress).await {
            Ok(checksum) => return Ok(checksum),
            Err(error) => error,
        };
        let unauthorized = matches!(&error, Error::Refused { code: 401, .. });
        // A first token that is not accepted is no old one.
        if unauthorized && (attempt == 0 || tokens == 0) {
            return Err(Error::Unauthorized(error.to_string()));
        }
        if unauthorized {
            bearer = token().await.map_err(Error::Token)?;
            tokens -= 1;
        } else if !error.is_passing() {
            return Err(error);
        }
        if attempt == send.retries {
            return Err(Error::GivenUp { attempts: attempt + 1, last: Box::new(error) });
        }
        attempt += 1;
        say(progress, &format!("{error}. Retrying..."));
        tokio::time::sleep(send.pause * attempt).await;
    }
}

/// How much the server has already, if it says so.
async fn resume(client: &Client, send: &Send<'_>, bearer: &str) -> Option<u64> {
    let response = client.ask(Method::HEAD, &send.uri, &authorization(bearer)).await.ok()?;
    let offset = response.headers().get(OFFSET)?.to_str().ok()?.trim().parse().ok()?;
    (response.status().is_success() && offset > 0 && offset <= send.length).then_some(offset)
}

/// The header that says who asks.
pub fn authorization(bearer: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {bearer}")) {
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    headers
}

async fn once(
    client: &Client,
    send: &Send<'_>,
    bearer: &str,
    offset: Option<u64>,
    progress: &Arc<Mutex<Progress>>,
) -> Result<String, Error> {
    let from = offset.unwrap_or(0);
    let state = Arc::new(Mutex::new(Read { checksum: Checksum::default(), bytes: 0 }));
    let file = File::open(send.file).await?;
    let body = body(file, send.length, from, Arc::clone(&state), Arc::clone(progress));
    let method = if offset.is_some() { Method::PATCH } else { Method::POST };
    let mut request = Request::builder().method(method).uri(send.uri.clone());
    if let Some(headers) = request.headers_mut() {
        *headers = authorization(bearer);
        headers.insert(header::CONTENT_LENGTH, (send.length - from).into());
        let kind = if offset.is_some() { "application/partial-upload" } else { "application/octet-stream" };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        if offset.is_some() {
            headers.insert(OFFSET, from.into());
            headers.insert("upload-complete", HeaderValue::from_static("?1"));
        }
    }
    let request = request.body(body).map_err(client::Error::from)?;
    let response = client.send(request).await?;
    let status = response.status();
    if !matches!(status, StatusCode::OK | StatusCode::CREATED | StatusCode::ACCEPTED | StatusCode::NO_CONTENT)
    {
        let body = response.into_body().collect().await.map(http_body_util::Collected::to_bytes);
        let words = String::from_utf8_lossy(&body.unwrap_or_default()).trim().to_owned();
        return Err(Error::Refused { code: status.as_u16(), words });
    }
    let read = state.lock().unwrap_or_else(PoisonError::into_inner);
    // An answer before the last byte was sent is none to this file.
    if read.bytes == send.length { Ok(read.checksum.hex()) } else { Err(Error::Changed) }
}

/// What was read of the file.
struct Read {
    checksum: Checksum,
    bytes: u64,
}

/// The file from an offset on. What comes before it is read for the checksum only.
fn body(file: File, length: u64, from: u64, state: Arc<Mutex<Read>>, progress: Arc<Mutex<Progress>>) -> Body {
    let frames = stream::try_unfold((file, state, progress), move |(mut file, state, progress)| async move {
        loop {
            let mut chunk = vec![0; CHUNK];
            let read = file.read(&mut chunk).await?;
            chunk.truncate(read);
            let mut all = state.lock().unwrap_or_else(PoisonError::into_inner);
            if read == 0 {
                let whole = all.bytes == length;
                drop(all);
                let short =
                    || std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the file became shorter");
                return if whole { Ok(None) } else { Err(short()) };
            }
            let start = all.bytes;
            // What was added since the size was told is left out.
            chunk.truncate(usize::try_from(length.saturating_sub(start)).unwrap_or(usize::MAX));
            if chunk.is_empty() {
                return Ok(None);
            }
            all.checksum.update(&chunk);
            all.bytes += chunk.len() as u64;
            let done = all.bytes;
            drop(all);
            show(&progress, done);
            if done <= from {
                continue;
            }
            let skip = usize::try_from(from.saturating_sub(start)).unwrap_or(0);
            let bytes = Bytes::from(chunk).slice(skip..);
            return Ok(Some((Frame::data(bytes), (file, state, progress))));
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

fn show(progress: &Arc<Mutex<Progress>>, done: u64) {
    progress.lock().unwrap_or_else(PoisonError::into_inner).set(done);
}

fn say(progress: &Arc<Mutex<Progress>>, words: &str) {
    progress.lock().unwrap_or_else(PoisonError::into_inner).say(words);
}

#[cfg(test)]
#[path = "upload_tests.rs"]
mod tests;
