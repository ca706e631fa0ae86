//! Viewers of one machine, over real sockets.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::routing::get;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use kubevirt_streams::{Code, Ended, Farewell, Offer, Pulse, Stream, TooLarge, Upgraded};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answers::Answer;
use super::find::Socket;
use super::seats::Seats;
use super::streams::{Manner, View, farewell};
use crate::testing::Folder;

const PATIENCE: Duration = Duration::from_secs(60);

/// A machine with one socket that takes one connection at a time, as QEMU's serial ports do.
struct Machine {
    folder: Folder,
    listener: UnixListener,
    seats: Seats,
    manner: Manner,
    pulse: Pulse,
    stop: CancellationToken,
}

impl Machine {
    fn new(manner: Manner) -> Arc<Self> {
        Self::with_pulse(manner, Pulse::default())
    }

    fn with_pulse(manner: Manner, pulse: Pulse) -> Arc<Self> {
        let folder = Folder::new();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let stop = CancellationToken::new();
        Arc::new(Self { folder, listener, seats: Seats::default(), manner, pulse, stop })
    }

    /// The guest's end of the next connection.
    async fn accept(&self) -> UnixStream {
        tokio::time::timeout(PATIENCE, self.listener.accept()).await.unwrap().unwrap().0
    }

    async fn serve(State(machine): State<Arc<Self>>, request: Request) -> Answer {
        let (seats, streams, stop) = (&machine.seats, &TaskTracker::new(), &machine.stop);
        let (manner, pulse) = (machine.manner, machine.pulse);
        let view = View { seats, uid: "a", what: "console", manner, pulse, streams, stop };
        view.open(request, async { Ok(Socket::of(machine.folder.path(), "socket")) }).await
    }

    /// A client's stream, or the status and the words that it was refused with.
    async fn view(self: &Arc<Self>, query: &str) -> Result<Stream<Upgraded>, (u16, String)> {
        let (near, far): (DuplexStream, DuplexStream) = tokio::io::duplex(1000);
        let router = Router::new().route("/console", get(Self::serve)).with_state(self.clone());
        let serving = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(far), TowerToHyperService::new(router))
            .with_upgrades();
        tokio::spawn(serving);
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(near)).await.unwrap();
        tokio::spawn(connection.with_upgrades());
        let mut request = Request::get(format!("/console{query}")).body(Body::empty()).unwrap();
        let offer = Offer::add_to(request.headers_mut());
        let response = sender.send_request(request).await.unwrap();
        if response.status() != 101 {
            let status = response.status().as_u16();
            let text = axum::body::to_bytes(Body::new(response.into_body()), 1000).await.unwrap();
            return Err((status, String::from_utf8(text.to_vec()).unwrap()));
        }
        Ok(offer.stream(response).await.unwrap())
    }
}

async fn ends(mut viewer: Stream<Upgraded>) -> (Vec<u8>, Option<Farewell>) {
    let mut rest = Vec::new();
    tokio::time::timeout(PATIENCE, viewer.read_to_end(&mut rest)).await.unwrap().unwrap();
    (rest, viewer.last_words().cloned())
}

async fn says(guest: &mut UnixStream, viewer: &mut Stream<Upgraded>, word: &[u8]) {
    guest.write_all(word).await.unwrap();
    let mut shown = vec![0; word.len()];
    tokio::time::timeout(PATIENCE, viewer.read_exact(&mut shown)).await.unwrap().unwrap();
    assert_eq!(shown, word);
}

#[tokio::test]
async fn a_second_viewer_takes_over_and_the_first_hears_why() {
    for manner in [Manner::Console, Manner::Whole] {
        let machine = Machine::new(manner);
        let mut first = machine.view("").await.unwrap();
        let mut guest = machine.accept().await;
        says(&mut guest, &mut first, b"hello first").await;
        let mut second = machine.view("?preserveSession=false").await.unwrap();
        assert_eq!(ends(first).await, (Vec::new(), Some(Farewell::TAKEN_OVER)));
        assert_eq!(guest.read(&mut [0; 1]).await.unwrap(), 0, "the first connection is closed");
        let mut guest = machine.accept().await;
        says(&mut guest, &mut second, b"hello second").await;
        second.write_all(b"and back").await.unwrap();
        let mut typed = [0; 8];
        guest.read_exact(&mut typed).await.unwrap();
        assert_eq!(&typed, b"and back");
    }
}

#[tokio::test]
async fn a_viewer_who_must_not_be_disturbed_is_not() {
    let machine = Machine::new(Manner::Whole);
    let mut first = machine.view("?preserveSession=true").await.unwrap();
    let mut guest = machine.accept().await;
    let refused = machine.view("?preserveSession=true").await.unwrap_err();
    assert_eq!(refused, (503, "Active console connection. Request denied.".to_owned()));
    assert_eq!(machine.view("?preserveSession=maybe").await.unwrap_err().0, 400);
    says(&mut guest, &mut first, b"still there").await;
    first.shutdown().await.unwrap();
    drop(first);
    assert_eq!(guest.read(&mut [0; 1]).await.unwrap(), 0);
    drop(guest);
    // Who comes after one who has left disturbs nobody.
    let next = async {
        while machine.view("?preserveSession=true").await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, next).await.unwrap();
}

#[tokio::test]
async fn the_end_of_a_machine_and_of_the_handler_are_told() {
    for manner in [Manner::Console, Manner::Whole] {
        let machine = Machine::new(manner);
        let viewer = machine.view("").await.unwrap();
        let mut guest = machine.accept().await;
        guest.write_all(b"Power down.\n").await.unwrap();
        drop(guest);
        assert_eq!(ends(viewer).await, (b"Power down.\n".to_vec(), Some(Farewell::MACHINE_ENDED)));
        let viewer = machine.view("").await.unwrap();
        let _guest = machine.accept().await;
        machine.stop.cancel();
        assert_eq!(ends(viewer).await, (Vec::new(), Some(Farewell::HANDLER_ENDS)));
    }
}

#[tokio::test]
async fn what_the_viewer_ends_itself_is_no_failure() {
    for manner in [Manner::Console, Manner::Whole] {
        let machine = Machine::new(manner);
        let mut viewer = machine.view("").await.unwrap();
        let mut guest = machine.accept().await;
        viewer.write_all(b"logout\n").await.unwrap();
        viewer.shutdown().await.unwrap();
        let mut typed = Vec::new();
        tokio::time::timeout(PATIENCE, guest.read_to_end(&mut typed)).await.unwrap().unwrap();
        assert_eq!(typed, b"logout\n");
        assert_eq!(ends(viewer).await, (Vec::new(), Some(Farewell::NORMAL)));
    }
}

#[test]
fn who_ends_a_stream_by_mistake_is_told() {
    let broken = || Some(io::Error::from(io::ErrorKind::ConnectionReset));
    let mistake = || Some(io::Error::new(io::ErrorKind::InvalidData, TooLarge));
    for (ended, expected) in [
        (Ended::One(None), None),
        (Ended::One(broken()), None),
        (Ended::One(mistake()), Some(Code::TOO_LARGE)),
        (Ended::Other(None), Some(Code::AWAY)),
        (Ended::Other(broken()), Some(Code::AWAY)),
    ] {
        assert_eq!(farewell(&ended).map(|words| words.code), expected, "{ended:?}");
    }
}

/// KubeVirt's virtctl ends in silence, and with success, after a normal end.
#[test]
fn no_viewer_is_sent_away_as_if_all_were_well() {
    for farewell in [Farewell::TAKEN_OVER, Farewell::HANDLER_ENDS, Farewell::MACHINE_ENDED] {
        assert!(farewell.code != Code::NORMAL && !farewell.reason.is_empty(), "{farewell:?}");
    }
}

#[tokio::test]
async fn a_flood_that_nobody_reads_does_not_stop_the_guest() {
    let machine = Machine::new(Manner::Console);
    let viewer = machine.view("").await.unwrap();
    let mut guest = machine.accept().await;
    let flood = async {
        for _ in 0..2000 {
            guest.write_all(&[b'.'; 10_000]).await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, flood).await.expect("the guest is never held up");
    // A newcomer does not wait for the one who does not read.
    let mut second = machine.view("").await.unwrap();
    let mut guest = machine.accept().await;
    says(&mut guest, &mut second, b"here").await;
    drop(viewer);
}

/// Much faster than usual.
const RACING: Pulse = Pulse { every: Duration::from_millis(50), within: Duration::from_millis(200) };

#[tokio::test]
async fn a_viewer_who_vanishes_gives_the_seat_back() {
    for manner in [Manner::Console, Manner::Whole] {
        let machine = Machine::with_pulse(manner, RACING);
        let mut viewer = machine.view("").await.unwrap();
        let mut guest = machine.accept().await;
        says(&mut guest, &mut viewer, b"login: ").await;
        // It is there for a while, and then neither answers nor hangs up.
        let there = Duration::from_secs(1);
        assert!(tokio::time::timeout(there, viewer.read(&mut [0; 1])).await.is_err(), "{manner:?}");
        let left = tokio::time::timeout(PATIENCE, guest.read(&mut [0; 1])).await;
        assert_eq!(left.expect("the guest is let go").unwrap(), 0);
        let next = machine.view("?preserveSession=true").await;
        assert!(next.is_ok(), "the seat is free: {next:?}");
        drop(viewer);
    }
}

#[tokio::test]
async fn a_viewer_who_is_slow_keeps_the_seat() {
    for manner in [Manner::Console, Manner::Whole] {
        let machine = Machine::with_pulse(manner, RACING);
        let mut viewer = machine.view("").await.unwrap();
        let mut guest = machine.accept().await;
        says(&mut guest, &mut viewer, b"login: ").await;
        let there = Duration::from_millis(300);
        assert!(tokio::time::timeout(there, viewer.read(&mut [0; 1])).await.is_err());
        // More than is on the way at a time, and far more time than an answer may take.
        let output = vec![b'x'; 100_000];
        let (all, _) = tokio::join!(
            async {
                let mut all = vec![0; output.len()];
                for part in all.chunks_mut(25_000) {
                    viewer.read_exact(part).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
                all
            },
            async { guest.write_all(&output).await.unwrap() }
        );
        assert!(all == output, "{manner:?}");
        viewer.write_all(b"root").await.unwrap();
        let mut typed = [0; 4];
        tokio::time::timeout(PATIENCE, guest.read_exact(&mut typed)).await.unwrap().unwrap();
        assert_eq!(&typed, b"root");
    }
}

#[tokio::test]
async fn many_viewers_in_a_row_leave_the_last_one() {
    let machine = Machine::new(Manner::Console);
    let viewers = futures_util::future::join_all((0..20).map(|_| machine.view("")));
    let accepting = async {
        let mut guests = Vec::new();
        for _ in 0..20 {
            guests.push(machine.accept().await);
        }
        guests
    };
    let (viewers, mut guests) = tokio::join!(viewers, accepting);
    let mut open = 0;
    for guest in &mut guests {
        let ended = tokio::time::timeout(Duration::from_millis(100), guest.read(&mut [0; 1])).await;
        open += usize::from(ended.is_err());
    }
    assert_eq!((viewers.len(), open), (20, 1));
}

#[tokio::test]
async fn two_hundred_consoles_at_once() {
    let machines: Vec<_> = (0..200).map(|_| Machine::new(Manner::Console)).collect();
    let mut open = Vec::new();
    for machine in &machines {
        let viewer = machine.view("").await.unwrap();
        open.push((viewer, machine.accept().await));
    }
    for (number, (viewer, guest)) in open.iter_mut().enumerate() {
        says(guest, viewer, format!("login {number}: ").as_bytes()).await;
    }
}
