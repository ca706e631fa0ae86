use axum::body::Body;
use axum::http::Request;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use kubevirt_streams::{Offer, Pulse, TooLarge, accept};
use tokio::io::{AsyncReadExt, duplex};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);
/// Much faster than usual.
const RACING: Pulse = Pulse { every: Duration::from_millis(50), within: Duration::from_millis(200) };

/// Both ends of a stream: the client's and the server's.
async fn ends() -> (Stream<Upgraded>, Stream<Upgraded>) {
    let (near, far) = duplex(1000);
    let (sender, mut accepted) = mpsc::unbounded_channel();
    let service = tower::service_fn(move |mut request: Request<hyper::body::Incoming>| {
        let (response, accepted) = accept(&mut request).unwrap();
        sender.send(accepted).unwrap();
        async { Ok::<_, std::convert::Infallible>(response.map(|()| Body::empty())) }
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(far), TowerToHyperService::new(service))
        .with_upgrades();
    tokio::spawn(serving);
    let (mut client, connection) = hyper::client::conn::http1::handshake(TokioIo::new(near)).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let mut request = Request::get("/").body(Body::empty()).unwrap();
    let offer = Offer::add_to(request.headers_mut());
    let response = client.send_request(request).await.unwrap();
    let server = accepted.recv().await.unwrap().with_pulse(RACING);
    (offer.stream(response).await.unwrap(), server.stream().await.unwrap())
}

/// A client whose stream is carried to a far side until it ends or is told to.
async fn client<F: Far>(far: F, stop: &CancellationToken) -> Stream<Upgraded> {
    let (client, server) = ends().await;
    let stop = stop.clone();
    tokio::spawn(async move { relay(server, far, &stop).await });
    client
}

/// What the client gets, and the last words.
async fn heard(mut client: Stream<Upgraded>) -> (Vec<u8>, Option<Farewell>) {
    let mut bytes = Vec::new();
    timeout(PATIENCE, client.read_to_end(&mut bytes)).await.unwrap().unwrap();
    (bytes, client.last_words().cloned())
}

#[tokio::test]
async fn a_handlers_last_words_reach_the_client_unchanged() {
    for words in [
        Farewell::TAKEN_OVER,
        Farewell::HANDLER_ENDS,
        Farewell::MACHINE_ENDED,
        Farewell::new(Code::NORMAL, "all is said"),
        Farewell::NORMAL,
    ] {
        let (far, mut handler) = ends().await;
        let client = client(far, &CancellationToken::new()).await;
        handler.write_all(b"Power down.").await.unwrap();
        let telling = tokio::spawn({
            let words = words.clone();
            async move { handler.end(words).await }
        });
        assert_eq!(heard(client).await, (b"Power down.".to_vec(), Some(words)));
        telling.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_handler_that_is_lost_is_no_normal_end() {
    let (far, handler) = ends().await;
    let client = client(far, &CancellationToken::new()).await;
    drop(handler);
    assert_eq!(heard(client).await.1, Some(HANDLER_LOST));
}

#[tokio::test]
async fn a_client_that_leaves_is_told_nothing_and_the_handler_learns_of_it() {
    let (far, mut handler) = ends().await;
    let mut client = client(far, &CancellationToken::new()).await;
    client.write_all(b"logout").await.unwrap();
    client.shutdown().await.unwrap();
    let mut typed = Vec::new();
    timeout(PATIENCE, handler.read_to_end(&mut typed)).await.unwrap().unwrap();
    assert_eq!((typed.as_slice(), handler.last_words()), (&b"logout"[..], Some(&Farewell::NORMAL)));
    assert_eq!(heard(client).await.1, Some(Farewell::NORMAL));
}

#[tokio::test]
async fn a_client_that_vanishes_does_not_hold_what_it_was_connected_to() {
    let (far, mut handler) = ends().await;
    let mut client = client(far, &CancellationToken::new()).await;
    let there = timeout(Duration::from_secs(1), client.read(&mut [0; 1])).await;
    assert!(there.is_err(), "as long as it listens, it is there: {there:?}");
    timeout(PATIENCE, handler.read_to_end(&mut Vec::new())).await.expect("the handler is told").unwrap();
    drop(client);
}

#[tokio::test]
async fn the_order_to_stop_is_passed_on() {
    let (far, mut handler) = ends().await;
    let stop = CancellationToken::new();
    let client = client(far, &stop).await;
    stop.cancel();
    assert_eq!(heard(client).await.1, Some(Farewell::API_ENDS));
    timeout(PATIENCE, handler.read_to_end(&mut Vec::new())).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_port_that_is_closed_in_order_ends_a_stream_in_order() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let far = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let mut guest = listener.accept().await.unwrap().0;
    let mut client = client(far, &CancellationToken::new()).await;
    // Something that the guest does not wait for is no reason to lose what it said.
    client.write_all(b"and more").await.unwrap();
    guest.read_exact(&mut [0; 8]).await.unwrap();
    guest.write_all(b"answer").await.unwrap();
    drop(guest);
    assert_eq!(heard(client).await, (b"answer".to_vec(), Some(Farewell::NORMAL)));
}

#[test]
fn only_an_end_in_order_is_called_normal() {
    let error = || Some(io::Error::from(io::ErrorKind::ConnectionReset));
    let code = |ended: Option<Ended>| last_words(ended.as_ref(), of_port).map(|words| words.code);
    for (ended, expected) in [
        (None, Some(Code::RESTART)),
        (Some(Ended::One(None)), None),
        (Some(Ended::One(error())), None),
        (Some(Ended::One(Some(io::Error::new(io::ErrorKind::InvalidData, TooLarge)))), Some(Code::TOO_LARGE)),
        (Some(Ended::Other(None)), Some(Code::NORMAL)),
        (Some(Ended::Other(error())), Some(Code::BROKEN)),
    ] {
        assert_eq!(code(ended), expected);
    }
}
