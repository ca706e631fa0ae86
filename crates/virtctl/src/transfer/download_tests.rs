use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::super::server::{Answer, Server};
use super::super::trust::Trust;
use super::*;

/// A file that goes away.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let unique = format!("virtctl-{}-{name}-{}", std::process::id(), crate::names::suffix(8));
        Self(std::env::temp_dir().join(unique))
    }

    fn sink(&self, unpack: bool) -> Sink {
        Sink::file(fs::File::create(&self.0).unwrap(), unpack)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn disk(size: usize) -> Vec<u8> {
    (0..size).map(|index| u8::try_from(index * 7 % 251).unwrap()).collect()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn checksum(bytes: &[u8]) -> Checksum {
    let mut checksum = Checksum::default();
    checksum.update(bytes);
    checksum
}

async fn fetch(server: &Server, sink: Sink, retries: u32) -> Result<(sink::Result, bool), Error> {
    let ask = Ask {
        uri: server.uri("/disk.img"),
        headers: HeaderMap::from_iter([(
            http::HeaderName::from_static("x-kubevirt-export-token"),
            HeaderValue::from_static("secret"),
        )]),
        retries,
        pause: Duration::ZERO,
        silence: Duration::from_secs(60),
    };
    let client = Client::new(&Trust::Anyone).unwrap();
    download(&client, &ask, sink, &mut Progress::new("Downloading:", None)).await
}

#[tokio::test]
async fn a_whole_file_is_fetched_and_checked() {
    let bytes = disk(100_000);
    let digest = format!("sha-256=:{}:", STANDARD.encode(checksum(&bytes).bytes()));
    let answers = vec![Answer::new(200, &[("content-length", "100000"), ("repr-digest", &digest)], &bytes)];
    let server = Server::start(answers).await;
    let scratch = Scratch::new("whole");
    let (written, vouched) = fetch(&server, scratch.sink(false), 0).await.unwrap();
    assert_eq!(fs::read(&scratch.0).unwrap(), bytes);
    assert_eq!((written.bytes, written.checksum, vouched), (100_000, checksum(&bytes).hex(), true));
    assert_eq!(server.asked()[0].head.headers["x-kubevirt-export-token"], "secret");
}

#[tokio::test]
async fn what_breaks_off_goes_on_where_it_stopped() {
    let bytes = disk(90_000);
    let etag = [("content-length", "90000"), ("etag", "\"v1\"")];
    let server = Server::start(vec![
        Answer::new(200, &etag, &bytes[..10_000]).broken(),
        Answer::new(206, &[("content-range", "bytes 10000-89999/90000")], &bytes[10_000..50_000]).broken(),
        Answer::new(206, &[("content-range", "bytes 50000-89999/90000")], &bytes[50_000..]),
    ])
    .await;
    let scratch = Scratch::new("resume");
    let (written, vouched) = fetch(&server, scratch.sink(false), 0).await.unwrap();
    assert_eq!(fs::read(&scratch.0).unwrap(), bytes);
    assert_eq!((written.checksum, vouched), (checksum(&bytes).hex(), false));
    let asked = server.asked();
    assert_eq!(asked[1].head.headers["range"], "bytes=10000-");
    assert_eq!(asked[1].head.headers["if-range"], "\"v1\"");
    assert_eq!(asked[2].head.headers["range"], "bytes=50000-");
}

#[tokio::test]
async fn a_server_that_cannot_go_on_starts_over() {
    let bytes = packed(&disk(300_000));
    for unpack in [false, true] {
        let server = Server::start(vec![
            Answer::new(200, &[], &bytes[..bytes.len() / 2]).broken(),
            Answer::new(200, &[], &bytes[..bytes.len() / 3]).broken(),
            Answer::new(200, &[], &bytes),
        ])
        .await;
        let scratch = Scratch::new("over");
        let (written, _) = fetch(&server, scratch.sink(unpack), 0).await.unwrap();
        let expected = if unpack { disk(300_000) } else { bytes.clone() };
        assert_eq!(fs::read(&scratch.0).unwrap(), expected);
        assert_eq!((written.bytes, written.checksum), (expected.len() as u64, checksum(&expected).hex()));
    }
}

#[tokio::test]
async fn a_packed_file_goes_on_too() {
    let bytes = packed(&disk(200_000));
    let (size, half) = (bytes.len(), bytes.len() / 2);
    let range = format!("bytes {half}-{}/{size}", size - 1);
    let server = Server::start(vec![
        Answer::new(200, &[("content-length", &size.to_string())], &bytes[..half]).broken(),
        Answer::new(206, &[("content-range", &range)], &bytes[half..]),
    ])
    .await;
    let scratch = Scratch::new("packed");
    fetch(&server, scratch.sink(true), 0).await.unwrap();
    assert_eq!(fs::read(&scratch.0).unwrap(), disk(200_000));
}

#[tokio::test]
async fn refusals_are_taken_as_often_as_wanted() {
    let bytes = disk(10);
    let refusals =
        || vec![Answer::new(503, &[], b"not yet"), Answer::new(404, &[], b""), Answer::new(200, &[], &bytes)];
    let scratch = Scratch::new("refused");
    let error = fetch(&Server::start(refusals()).await, scratch.sink(false), 1).await.unwrap_err();
    assert_eq!(error.to_string(), "Bad status: 404 Not Found");
    let error = fetch(&Server::start(refusals()).await, scratch.sink(false), 0).await.unwrap_err();
    assert_eq!(error.to_string(), "Bad status: 503 Service Unavailable: not yet");
    fetch(&Server::start(refusals()).await, scratch.sink(false), 2).await.unwrap();
    assert_eq!(fs::read(&scratch.0).unwrap(), bytes);
}

#[tokio::test]
async fn a_transfer_that_gets_nowhere_is_given_up() {
    let bytes = disk(100);
    let broken = Answer::new(200, &[("content-length", "100"), ("etag", "\"v\"")], &bytes[..10]).broken();
    let nothing = Answer::new(206, &[("content-range", "bytes 10-99/100")], b"").broken();
    let answers = std::iter::once(broken).chain(std::iter::repeat_n(nothing, 20));
    let server = Server::start(answers.collect()).await;
    let scratch = Scratch::new("nowhere");
    let error = fetch(&server, scratch.sink(false), 0).await.unwrap_err();
    assert!(matches!(error, Error::Broken { received: 10, .. }), "{error}");
    assert_eq!(server.asked().len(), 7);
}

#[tokio::test]
async fn wrong_bytes_are_found_out() {
    let bytes = disk(1000);
    let digest = format!("sha-256=:{}:", STANDARD.encode(checksum(b"other").bytes()));
    let scratch = Scratch::new("wrong");
    let server = Server::start(vec![Answer::new(200, &[("repr-digest", &digest)], &bytes)]).await;
    let error = fetch(&server, scratch.sink(false), 0).await.unwrap_err();
    assert!(matches!(error, Error::Checksum { .. }), "{error}");

    for range in ["bytes 0-999/1000", "bytes 500-999/2000", "nonsense"] {
        let server = Server::start(vec![
            Answer::new(200, &[("content-length", "1000")], &bytes[..500]).broken(),
            Answer::new(206, &[("content-range", range)], &bytes[500..]),
        ])
        .await;
        let error = fetch(&server, scratch.sink(false), 3).await.unwrap_err();
        assert!(matches!(error, Error::Range(_)), "{range}: {error}");
    }
    let server = Server::start(vec![Answer::new(200, &[], b"not gzip at all")]).await;
    let error = fetch(&server, scratch.sink(true), 3).await.unwrap_err();
    assert!(matches!(error, Error::Output(_)), "{error}");
}

#[tokio::test]
async fn redirects_are_followed() {
    let other = Server::start(vec![Answer::new(200, &[], b"there")]).await;
    let to = other.uri("/elsewhere").to_string();
    let server = Server::start(vec![
        Answer::new(302, &[("location", "/moved")], b""),
        Answer::new(307, &[("location", &to)], b""),
    ])
    .await;
    let scratch = Scratch::new("moved");
    fetch(&server, scratch.sink(false), 0).await.unwrap();
    assert_eq!(fs::read(&scratch.0).unwrap(), b"there");
    assert_eq!(server.asked()[1].head.uri, "/moved");
    assert_eq!(server.asked()[1].head.headers["x-kubevirt-export-token"], "secret");
    // Another host has no business with the token.
    assert_eq!(other.asked()[0].head.headers.get("x-kubevirt-export-token"), None);
}

#[test]
fn what_comes_again_is_compared() {
    let before = checksum(b"hello");
    let mut repeat = Repeat { left: 5, seen: Checksum::default(), before: before.clone() };
    assert_eq!(repeat.skip(b"hel").unwrap(), b"");
    assert_eq!(repeat.skip(b"lo world").unwrap(), b" world");
    assert_eq!(repeat.skip(b"!").unwrap(), b"!");
    let mut repeat = Repeat { left: 5, seen: Checksum::default(), before };
    assert!(matches!(repeat.skip(b"HELLO"), Err(Error::Changed)));
}

#[test]
fn ranges_are_read() {
    assert_eq!(range("bytes 5-9/10"), Some((5, Some(10))));
    assert_eq!(range("bytes 5-9/*"), Some((5, None)));
    for wrong in ["", "bytes", "bytes */10", "items 5-9/10", "bytes x-9/10", "bytes 5-9/x"] {
        assert_eq!(range(wrong), None, "{wrong}");
    }
}

#[test]
fn only_what_is_strong_tells_versions_apart() {
    let of = |name: &'static str, value: &'static str| {
        version(&HeaderMap::from_iter([(
            http::HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )]))
    };
    assert!(of("etag", "\"a\"").is_some() && of("last-modified", "Mon").is_some());
    assert!(of("etag", "W/\"a\"").is_none() && of("date", "Mon").is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..Default::default() })]

    /// Wherever it breaks off, the file arrives.
    #[test]
    fn any_breaks_are_overcome(size in 1usize..20_000, mut breaks in prop::collection::vec(0usize..20_000, 0..4)) {
        let bytes = disk(size);
        breaks.retain(|at| *at > 0 && *at < size);
        breaks.sort_unstable();
        breaks.dedup();
        let mut starts = vec![0];
        starts.extend(&breaks);
        let answers = starts.iter().enumerate().map(|(index, &start)| {
            let end = breaks.get(index).copied().unwrap_or(size);
            let answer = if start == 0 {
                Answer::new(200, &[("content-length", &size.to_string()), ("etag", "\"v\"")], &bytes[..end])
            } else {
                let range = format!("bytes {start}-{}/{size}", size - 1);
                Answer::new(206, &[("content-range", &range)], &bytes[start..end])
            };
            if end < size { answer.broken() } else { answer }
        });
        let answers = answers.collect::<Vec<_>>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let scratch = Scratch::new("any");
        let (written, _) = runtime
            .block_on(async { fetch(&Server::start(answers).await, scratch.sink(false), 0).await })
            .unwrap();
        prop_assert_eq!(written.checksum, checksum(&bytes).hex());
        prop_assert_eq!(fs::read(&scratch.0).unwrap(), bytes);
    }
}
