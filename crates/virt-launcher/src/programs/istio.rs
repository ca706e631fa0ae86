//! The proxy that Istio puts beside the launcher: it would keep the pod alive, so it is asked to leave.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Where the proxy says how it is.
const HEALTH: u16 = 15021;

/// Where the proxy takes orders.
const CONTROL: u16 = 15020;

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(2);

/// Pauses between attempts.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(250), Duration::from_millis(1250)];

/// By this age of the launcher, a proxy has long been there if one comes at all.
const SETTLED: Duration = Duration::from_secs(10);

/// As much of an answer as we read: its head.
const HEAD: u64 = 8192;

/// Ends the proxy, if there is one.
pub(super) async fn end_proxy(lived: Duration) {
    end(HEALTH, CONTROL, lived).await;
}

async fn end(health: u16, control: u16, lived: Duration) {
    if !is_present(health, lived).await {
        return;
    }
    for pause in PAUSES.map(Some).into_iter().chain([None]) {
        match request(control, "POST /quitquitquit").await {
            Ok(answer) if answer.status == Some(200) => return,
            // It may be starting or be busy.
            Ok(Answer { status: Some(503), .. }) | Err(_) => {}
            Ok(answer) => {
                tracing::warn!(status = answer.status, "the Istio proxy would not end");
                return;
            }
        }
        match pause {
            Some(pause) => sleep(pause).await,
            None => tracing::warn!("the Istio proxy cannot be reached to end it"),
        }
    }
}

async fn is_present(port: u16, lived: Duration) -> bool {
    for pause in PAUSES {
        match request(port, "GET /healthz/ready").await {
            Ok(answer) => return answer.is_envoy,
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && lived > SETTLED => {
                return false;
            }
            Err(_) => sleep(pause).await,
        }
    }
    false
}

/// What we want to know of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: Option<u16>,
    is_envoy: bool,
}

async fn request(port: u16, what: &str) -> io::Result<Answer> {
    let addresses =
        [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), SocketAddr::from((Ipv6Addr::LOCALHOST, port))];
    let exchange = async {
        let mut stream = TcpStream::connect(&addresses[..]).await?;
        let host = format!("localhost:{port}");
        let text =
            format!("{what} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        stream.write_all(text.as_bytes()).await?;
        let mut head = Vec::new();
        stream.take(HEAD).read_to_end(&mut head).await?;
        Ok(read(&String::from_utf8_lossy(&head)))
    };
    timeout(ANSWER, exchange).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// Reads the head of an answer.
fn read(text: &str) -> Answer {
    let mut lines = text.split("\r\n").take_while(|line| !line.is_empty());
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1."));
    let status = status.and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let is_envoy = lines
        .filter_map(|line| line.split_once(':'))
        .any(|(name, value)| name.eq_ignore_ascii_case("server") && value.trim() == "envoy");
    Answer { status, is_envoy }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn answers_are_read() {
        let cases = [
            ("HTTP/1.1 200 OK\r\nServer: envoy\r\n\r\n", Some(200), true),
            ("HTTP/1.1 503 Service Unavailable\r\nserver:envoy\r\n\r\n", Some(503), true),
            ("HTTP/1.0 200\r\ncontent-length: 0\r\n\r\nserver: envoy", Some(200), false),
            ("HTTP/1.1 404 Not Found\r\nserver: nginx\r\n", Some(404), false),
            ("SSH-2.0-OpenSSH", None, false),
            ("", None, false),
        ];
        for (text, status, is_envoy) in cases {
            assert_eq!(read(text), Answer { status, is_envoy }, "{text}");
        }
    }

    /// Answers one request after the other, and returns what it was asked.
    async fn proxy(listener: TcpListener, answers: Vec<&'static str>) -> Vec<String> {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 512];
            let count = stream.read(&mut request).await.unwrap();
            asked.push(String::from_utf8_lossy(&request[..count]).lines().next().unwrap().to_owned());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        asked
    }

    async fn listen() -> (TcpListener, u16) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    #[tokio::test]
    async fn a_proxy_is_told_to_quit_until_it_does() {
        let ((health, health_port), (control, control_port)) = (listen().await, listen().await);
        let healthy = proxy(health, vec!["HTTP/1.1 200 OK\r\nserver: envoy\r\n\r\n"]);
        let busy = "HTTP/1.1 503 Service Unavailable\r\n\r\n";
        let quit = proxy(control, vec![busy, "HTTP/1.1 200 OK\r\n\r\n"]);
        let (_, healthy, quit) = tokio::join!(end(health_port, control_port, SETTLED * 2), healthy, quit);
        assert_eq!(healthy, ["GET /healthz/ready HTTP/1.1"]);
        assert_eq!(quit, ["POST /quitquitquit HTTP/1.1"; 2]);
    }

    #[tokio::test]
    async fn others_are_left_alone() {
        let ((health, health_port), (control, control_port)) = (listen().await, listen().await);
        let other = proxy(health, vec!["HTTP/1.1 200 OK\r\nserver: nginx\r\n\r\n"]);
        tokio::join!(end(health_port, control_port, SETTLED * 2), other);
        assert!(timeout(Duration::from_millis(50), control.accept()).await.is_err());
    }
}
