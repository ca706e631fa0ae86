//! The conversation with a guest on its channel.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until};

use super::requests::{Request, Said};

/// A guest gets so much time between two answers, however often it asks.
const PAUSE: Duration = Duration::from_secs(1);

/// The answer to what nobody knows.
const INVALID: &str = "INVALID REQUEST";

/// Answers a guest until the far side closes the channel.
///
/// Nothing is read while an answer is on its way, so a guest that asks too often waits, and costs no memory.
pub async fn converse<S, F>(mut guest: S, metrics: impl Fn() -> F) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = String>,
{
    let (mut said, mut buffer) = (Said::default(), [0; 1024]);
    let mut next = Instant::now();
    loop {
        let Some(request) = said.request() else {
            match guest.read(&mut buffer).await? {
                0 => return Ok(()),
                count => said.hear(&buffer[..count]),
            }
            continue;
        };
        sleep_until(next).await;
        next = Instant::now() + PAUSE;
        let answer = match request {
            Request::Metrics => metrics().await,
            Request::Unknown => INVALID.to_owned(),
        };
        // An empty line is the end of an answer.
        guest.write_all(format!("{answer}\n\n").as_bytes()).await?;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    async fn talk(said: &str) -> (String, u32) {
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let asked = Cell::new(0);
        let metrics = || {
            asked.set(asked.get() + 1);
            std::future::ready(format!("<metrics>{}</metrics>", asked.get()))
        };
        let guest = async {
            theirs.write_all(said.as_bytes()).await.unwrap();
            theirs.shutdown().await.unwrap();
            let mut heard = String::new();
            theirs.read_to_string(&mut heard).await.unwrap();
            heard
        };
        let (ended, heard) = tokio::join!(converse(ours, metrics), guest);
        ended.unwrap();
        (heard, asked.get())
    }

    #[tokio::test(start_paused = true)]
    async fn each_request_has_an_answer() {
        for (said, heard) in [
            ("GET /metrics/XML\n\n", "<metrics>1</metrics>\n\n"),
            ("GET /metrics/XML\n\nGET /metrics/XML\n\n", "<metrics>1</metrics>\n\n<metrics>2</metrics>\n\n"),
            ("hello\n\nGET /metrics/XML\n\n", "INVALID REQUEST\n\n<metrics>1</metrics>\n\n"),
            ("GET /metrics/XML\n", ""),
            ("", ""),
        ] {
            assert_eq!(talk(said).await.0, heard, "{said:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_guest_that_asks_too_often_waits() {
        let began = Instant::now();
        let (_, asked) = talk(&"GET /metrics/XML\n\n".repeat(100)).await;
        assert_eq!(asked, 100);
        assert_eq!(began.elapsed().as_secs(), 99, "by a clock that stands still while somebody works");
    }
}
