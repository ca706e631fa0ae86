//! A server for tests that breaks off where it is told to.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Method, path and headers.
    pub head: http::request::Parts,
    /// What came with it, as far as it came.
    pub body: Vec<u8>,
}

/// One answer: its head, and its body in pieces, with nothing where the connection ends.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status and headers.
    pub head: Response<()>,
    /// The pieces.
    pub body: Vec<Option<Bytes>>,
    /// How much of the request is read before the connection ends without an answer.
    pub hang_up_after: Option<usize>,
}

impl Answer {
    /// An answer with this status, these headers and this body.
    pub fn new(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let mut head = Response::builder().status(status);
        for (name, value) in headers {
            head = head.header(*name, *value);
        }
        let body = vec![Some(Bytes::copy_from_slice(body))];
        Self { head: head.body(()).unwrap(), body, hang_up_after: None }
    }

    /// The same, but the connection ends after the body.
    pub fn broken(mut self) -> Self {
        self.body.push(None);
        self
    }

    /// No answer: the connection ends after that many bytes of the request.
    pub fn hang_up(after: usize) -> Self {
        Self { hang_up_after: Some(after), ..Self::new(200, &[], b"") }
    }
}

/// A server with a list of answers, one for each request.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Starts the server.
    pub async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
        let known = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (known, answers) = (Arc::clone(&known), Arc::clone(&answers));
                let service =
                    service_fn(move |request| answer(request, Arc::clone(&known), Arc::clone(&answers)));
                let connection = hyper::server::conn::http1::Builder::new();
                tokio::spawn(async move {
                    drop(connection.serve_connection(TokioIo::new(stream), service).await);
                });
            }
        });
        Self { address, asked }
    }

    /// All that was asked for so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// An address of this server.
    pub fn uri(&self, path: &str) -> http::Uri {
        format!("http://{}{path}", self.address).parse().unwrap()
    }
}

type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, std::io::Error>;

async fn answer(
    request: Request<Incoming>,
    asked: Arc<Mutex<Vec<Asked>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
) -> Result<Response<Body>, Box<dyn std::error::Error + Send + Sync>> {
    let answer =
        answers.lock().unwrap().pop_front().unwrap_or_else(|| Answer::new(500, &[], b"no more answers"));
    let (head, mut incoming) = request.into_parts();
    let mut body = Vec::new();
    while let Some(Ok(frame)) = incoming.frame().await {
        body.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        if answer.hang_up_after.is_some_and(|after| body.len() >= after) {
            break;
        }
    }
    asked.lock().unwrap().push(Asked { head, body });
    if answer.hang_up_after.is_some() {
        return Err("hung up".into());
    }
    let frames = stream::iter(answer.body).then(async |piece| match piece {
        Some(bytes) => Ok(Frame::data(bytes)),
        None => {
            // What came before it is sent while this waits.
            tokio::task::yield_now().await;
            Err(std::io::Error::other("broken off"))
        }
    });
    let (head, ()) = answer.head.into_parts();
    Ok(Response::from_parts(head, StreamBody::new(frames).boxed_unsync()))
}
