use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::server::{Answer, Server};
use super::super::trust::Trust;
use super::*;

const SIZE: usize = 700_000;

/// A file that goes away.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let unique = format!("virtctl-{}-upload-{}", std::process::id(), crate::names::suffix(8));
        let path = std::env::temp_dir().join(unique);
        fs::write(&path, disk()).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn disk() -> Vec<u8> {
    (0..SIZE).map(|index| u8::try_from(index * 13 % 253).unwrap()).collect()
}

fn checksum() -> String {
    let mut checksum = Checksum::default();
    checksum.update(&disk());
    checksum.hex()
}

/// What became of the upload, and how many tokens it took.
async fn send(server: &Server, retries: u32) -> (Result<String, Error>, u32) {
    let scratch = Scratch::new();
    let tokens = AtomicU32::new(0);
    let token = || {
        let count = tokens.fetch_add(1, Ordering::Relaxed) + 1;
        async move { Ok(format!("token{count}")) }
    };
    let send = Send {
        uri: server.uri("/v1beta1/upload-async"),
        file: &scratch.0,
        length: SIZE as u64,
        retries,
        pause: Duration::ZERO,
    };
    let client = Client::new(&Trust::Anyone).unwrap();
    let result = upload(&client, &send, token, Progress::new("Uploading:", None)).await;
    (result, tokens.load(Ordering::Relaxed))
}

fn methods(server: &Server) -> Vec<String> {
    server.asked().iter().map(|asked| asked.head.method.to_string()).collect()
}

#[tokio::test]
async fn a_file_is_sent_as_it_is() {
    let server = Server::start(vec![Answer::new(200, &[], b"")]).await;
    let (result, tokens) = send(&server, 0).await;
    assert_eq!((result.unwrap(), tokens), (checksum(), 1));
    let asked = &server.asked()[0];
    assert_eq!(asked.body, disk());
    assert_eq!(asked.head.headers["authorization"], "Bearer token1");
    assert_eq!(asked.head.headers["content-type"], "application/octet-stream");
    assert_eq!(asked.head.headers["content-length"], SIZE.to_string());
}

#[tokio::test]
async fn a_failed_upload_starts_over() {
    let server = Server::start(vec![
        Answer::hang_up(100_000),
        Answer::new(404, &[], b""),
        Answer::new(503, &[], b"busy"),
        Answer::new(200, &[], b""),
        Answer::new(200, &[], b""),
    ])
    .await;
    let (result, _) = send(&server, 5).await;
    assert_eq!(result.unwrap(), checksum());
    assert_eq!(methods(&server), ["POST", "HEAD", "POST", "HEAD", "POST"]);
    assert_eq!(server.asked()[4].body, disk());
}

#[tokio::test]
async fn a_server_that_remembers_gets_the_rest() {
    let server = Server::start(vec![
        Answer::hang_up(300_000),
        Answer::new(204, &[("upload-offset", "300000")], b""),
        Answer::new(201, &[], b""),
    ])
    .await;
    let (result, _) = send(&server, 5).await;
    assert_eq!(result.unwrap(), checksum());
    let asked = server.asked();
    assert_eq!(methods(&server), ["POST", "HEAD", "PATCH"]);
    assert_eq!(asked[2].head.headers["upload-offset"], "300000");
    assert_eq!(asked[2].body, disk()[300_000..]);
}

#[tokio::test]
async fn an_offset_that_cannot_be_is_not_believed() {
    for offset in ["0", "700001", "-1", "much"] {
        let server = Server::start(vec![
            Answer::hang_up(1),
            Answer::new(204, &[("upload-offset", offset)], b""),
            Answer::new(200, &[], b""),
        ])
        .await;
        let (result, _) = send(&server, 1).await;
        assert_eq!(result.unwrap(), checksum(), "{offset}");
        assert_eq!(server.asked()[2].head.method, Method::POST);
    }
}

#[tokio::test]
async fn enough_is_enough() {
    let busy = || Answer::new(503, &[], b"busy");
    let server = Server::start(vec![busy(), busy(), busy(), busy(), busy()]).await;
    let (result, _) = send(&server, 2).await;
    let words = result.unwrap_err().to_string();
    assert_eq!(words, "error uploading image after 3 attempts: unexpected return value 503, busy");
    // What will not change is not tried again.
    let server = Server::start(vec![Answer::new(400, &[], b"no")]).await;
    let (result, _) = send(&server, 5).await;
    assert_eq!(result.unwrap_err().to_string(), "unexpected return value 400, no");
}

#[tokio::test]
async fn a_token_that_runs_out_is_replaced() {
    let server = Server::start(vec![
        Answer::new(503, &[], b""),
        Answer::new(404, &[], b""),
        Answer::new(401, &[], b"expired"),
        Answer::new(404, &[], b""),
        Answer::new(200, &[], b""),
    ])
    .await;
    let (result, tokens) = send(&server, 5).await;
    assert_eq!((result.unwrap(), tokens), (checksum(), 2));
    assert_eq!(server.asked()[4].head.headers["authorization"], "Bearer token2");
    // The first one is not old.
    let server = Server::start(vec![Answer::new(401, &[], b"who are you")]).await;
    let (result, tokens) = send(&server, 5).await;
    let words = result.unwrap_err().to_string();
    assert_eq!(
        (words.as_str(), tokens),
        ("authentication failed: unexpected return value 401, who are you", 1)
    );
}

#[tokio::test]
async fn nobody_there_is_said_so() {
    let mut nobody = Server::start(vec![]).await;
    nobody.address = "127.0.0.1:1".parse().unwrap();
    let (result, _) = send(&nobody, 0).await;
    let words = result.unwrap_err().to_string();
    assert!(words.contains("cannot connect to 127.0.0.1:1"), "{words}");
}
