//! The edges of the protocol, against a scripted peer: what a healthy QEMU does not say.
#![expect(clippy::unwrap_used, reason = "a test may end that way")]

use std::time::Duration;

use kubevirt_qemu::Qmp;
use kubevirt_qemu::qmp::{Event, Limits, Loss, QmpError};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

const GREETING: &str =
    r#"{"QMP":{"version":{"qemu":{"major":99,"minor":0,"micro":1}},"capabilities":[{"x":1}]}}"#;

/// The peer's side of the connection.
struct Peer {
    stream: BufReader<UnixStream>,
}

impl Peer {
    async fn say(&mut self, words: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(words.as_ref()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn reply(&mut self, to: &Value, result: Value) {
        let line = json!({ "return": result, "id": to["id"] });
        self.say(format!("{line}\r\n")).await;
    }
}

fn limits() -> Limits {
    Limits { reply: Duration::from_secs(10), line: 1 << 20, backlog: 8 }
}

async fn connected(limits: Limits) -> (Qmp, Peer) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut peer = Peer { stream: BufReader::new(theirs) };
    let client = tokio::spawn(Qmp::over(ours, limits));
    peer.say(format!("{GREETING}\r\n")).await;
    let asked = peer.hear().await;
    assert_eq!(asked["execute"], "qmp_capabilities");
    assert_eq!(asked["arguments"], json!({ "enable": [] }));
    peer.reply(&asked, json!({})).await;
    (client.await.unwrap().unwrap(), peer)
}

fn ask(qmp: &Qmp, command: &'static str) -> tokio::task::JoinHandle<Result<Value, QmpError>> {
    let qmp = qmp.clone();
    tokio::spawn(async move { qmp.call(command, json!({})).await })
}

#[tokio::test]
async fn replies_find_their_way_in_any_order() {
    let (qmp, mut peer) = connected(limits()).await;
    let one = ask(&qmp, "one");
    let first = peer.hear().await;
    let two = ask(&qmp, "two");
    let second = peer.hear().await;
    assert_ne!(first["id"], second["id"]);
    peer.reply(&second, json!("second")).await;
    assert_eq!(two.await.unwrap().unwrap(), "second");
    let no = json!({ "error": { "class": "Novel", "desc": "no" }, "id": first["id"], "hint": 1 });
    peer.say(format!("{no}\n")).await;
    let error = one.await.unwrap().unwrap_err();
    assert!(matches!(&error, QmpError::Refused { command, desc, .. } if command == "one" && desc == "no"));
}

#[tokio::test]
async fn packets_may_be_cut_anywhere() {
    let (qmp, mut peer) = connected(limits()).await;
    let mut events = qmp.events();
    let asked = ask(&qmp, "query");
    let request = peer.hear().await;
    let text = format!(
        "{}\r\n\r\n{}\n",
        json!({ "event": "STOP", "timestamp": { "seconds": -1, "microseconds": -1 } }),
        json!({ "return": { "name": "Zürich" }, "id": request["id"] }),
    );
    for byte in text.bytes() {
        peer.say([byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(asked.await.unwrap().unwrap()["name"], "Zürich");
    assert_eq!(events.next().await.unwrap().event, Event::Stop);
}

#[tokio::test]
async fn what_cannot_be_read_is_told_and_harms_nobody() {
    let (qmp, mut peer) = connected(limits()).await;
    let mut events = qmp.events();
    let asked = ask(&qmp, "query");
    let request = peer.hear().await;
    peer.say(b"garbage\n\xff\xfe\n[1,2]\n{\"id\":12345,\"return\":{}}\n").await;
    let parse_error = r#"{"error":{"class":"GenericError","desc":"JSON parse error"}}"#;
    peer.say(format!("{parse_error}\n")).await;
    peer.reply(&request, json!(7)).await;
    assert_eq!(asked.await.unwrap().unwrap(), 7);
    for expected in ["garbage", "\u{fffd}\u{fffd}", "[1,2]", parse_error] {
        let heard = events.next().await.unwrap();
        assert_eq!(heard.event, Event::Unreadable { line: expected.to_owned() });
    }
}

#[tokio::test]
async fn huge_replies_come_through_and_endless_ones_end_it() {
    let (qmp, mut peer) = connected(limits()).await;
    let asked = ask(&qmp, "query");
    let request = peer.hear().await;
    let huge = "x".repeat(1_000_000);
    peer.reply(&request, json!(huge)).await;
    assert_eq!(asked.await.unwrap().unwrap(), huge);

    let asked = ask(&qmp, "query");
    peer.hear().await;
    let talk =
        tokio::spawn(async move { while peer.stream.get_mut().write_all(&[b'x'; 4096]).await.is_ok() {} });
    let error = asked.await.unwrap().unwrap_err();
    assert!(matches!(error, QmpError::Gone(Loss::LineTooLong { limit: 1_048_576 })), "{error}");
    assert!(ask(&qmp, "query").await.unwrap().unwrap_err().is_gone());
    drop(qmp);
    talk.await.unwrap();
}

#[tokio::test]
async fn a_slow_listener_misses_events_and_holds_up_nobody() {
    let (qmp, mut peer) = connected(limits()).await;
    let mut slow = qmp.events();
    for number in 0..100 {
        peer.say(format!("{}\n", json!({ "event": "NEW", "data": { "number": number } }))).await;
    }
    let asked = ask(&qmp, "query");
    let request = peer.hear().await;
    peer.reply(&request, json!(1)).await;
    assert_eq!(asked.await.unwrap().unwrap(), 1);
    assert_eq!(slow.next().await.unwrap().event, Event::Missed { count: 92 });
    let next = slow.next().await.unwrap();
    assert_eq!(next.event, Event::Other { name: "NEW".into(), data: json!({ "number": 92 }) });
}

#[tokio::test]
async fn silence_is_hung_and_the_late_reply_confuses_nobody() {
    let (qmp, mut peer) = connected(limits()).await;
    let impatient = qmp.patient(Duration::from_millis(50));
    let error = impatient.call::<Value>("slow", json!({})).await.unwrap_err();
    assert!(matches!(&error, QmpError::Hung { command, .. } if command == "slow"), "{error}");
    let late = peer.hear().await;
    let asked = ask(&qmp, "next");
    let request = peer.hear().await;
    peer.reply(&late, json!("late")).await;
    peer.reply(&request, json!("next")).await;
    assert_eq!(asked.await.unwrap().unwrap(), "next");
}

#[tokio::test]
async fn a_peer_that_reads_nothing_is_hung_too() {
    let (qmp, _peer) = connected(limits()).await;
    let impatient = qmp.patient(Duration::from_millis(300));
    let long = "x".repeat(100_000);
    let asked: Vec<_> = (0..100)
        .map(|_| {
            let (qmp, long) = (impatient.clone(), long.clone());
            tokio::spawn(async move { qmp.run("long", json!({ "text": long })).await })
        })
        .collect();
    for one in asked {
        assert!(matches!(one.await.unwrap(), Err(QmpError::Hung { .. })));
    }
}

#[tokio::test]
async fn the_end_reaches_everybody() {
    let (qmp, mut peer) = connected(limits()).await;
    let mut events = qmp.events();
    let asked = ask(&qmp, "query");
    peer.hear().await;
    peer.say(b"{\"event\":\"STOP\"}\n{\"event\":\"SHU").await;
    drop(peer);
    assert!(matches!(asked.await.unwrap(), Err(QmpError::Gone(Loss::Closed))));
    assert_eq!(events.next().await.unwrap().event, Event::Stop);
    assert_eq!(events.next().await, None);
    assert_eq!(qmp.gone().await, Loss::Closed);
    assert_eq!(qmp.events().next().await, None);
}

#[tokio::test]
async fn the_last_handle_closes_the_connection() {
    let (qmp, mut peer) = connected(limits()).await;
    let mut events = qmp.events();
    drop(qmp);
    let mut line = String::new();
    assert_eq!(peer.stream.read_line(&mut line).await.unwrap(), 0);
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn what_does_not_speak_qmp_is_told_apart() {
    for (said, silent) in [("SSH-2.0-OpenSSH\r\n", false), ("{\"QMP\":1}\n", false), ("", true)] {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut peer = Peer { stream: BufReader::new(theirs) };
        peer.say(said).await;
        let impatient = Limits { reply: Duration::from_millis(100), ..limits() };
        let error = Qmp::over(ours, impatient).await.unwrap_err();
        match silent {
            true => assert!(matches!(error, QmpError::Hung { .. }), "{error}"),
            false => assert!(matches!(error, QmpError::NotQmp { .. }), "{error}"),
        }
    }
    let missing = Qmp::connect("/nonexistent/monitor", limits()).await;
    assert!(matches!(missing, Err(QmpError::Connect(_))));
}

#[tokio::test]
async fn an_answer_without_what_we_need_names_the_command() {
    let (qmp, mut peer) = connected(limits()).await;
    let machine = kubevirt_qemu::Machine::new(qmp);
    let asked = tokio::spawn(async move { machine.status().await });
    let request = peer.hear().await;
    peer.reply(&request, json!({ "running": true })).await;
    let error = asked.await.unwrap().unwrap_err();
    assert!(matches!(&error, QmpError::Unusable { command, .. } if command == "query-status"), "{error}");
}
