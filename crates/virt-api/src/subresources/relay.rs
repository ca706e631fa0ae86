//! A client's stream joined with the far side: a handler's stream, or a port of a guest.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use kubevirt_streams::{Code, Ended, Farewell, Stream, Upgraded, relay as carry};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long a side may take to hear that it is over.
const FAREWELL: Duration = Duration::from_secs(5);

/// What a client is told when a handler has left without a word.
const HANDLER_LOST: Farewell = Farewell::new(Code::BROKEN, "the connection to virt-handler is lost");

/// The far side of a stream.
pub trait Far: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// How much is carried at a time: there may be hundreds of streams.
    const PIECE: usize = 8 << 10;

    /// What its end means to the client: it ended by itself, or by this error.
    fn parting(&self, error: Option<&io::Error>) -> Farewell {
        of_port(error)
    }
}

/// A port that is closed is the end of the stream; one that breaks is not.
fn of_port(error: Option<&io::Error>) -> Farewell {
    match error {
        None => Farewell::NORMAL,
        Some(error) => {
            let reason = format!("the connection to the guest broke: {error}").into();
            Farewell { code: Code::BROKEN, reason }
        }
    }
}

impl Far for Stream<Upgraded> {
    /// However a handler is lost, it is lost unless it has said goodbye.
    fn parting(&self, _: Option<&io::Error>) -> Farewell {
        self.last_words().cloned().unwrap_or(HANDLER_LOST)
    }
}

impl Far for TcpStream {}

/// A port that takes datagrams: each message of the stream is one, and the other way round.
#[derive(Debug)]
pub struct Datagrams(pub UdpSocket);

impl Far for Datagrams {
    /// No datagram is cut.
    const PIECE: usize = 64 << 10;
}

impl AsyncRead for Datagrams {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let before = buffer.filled().len();
            match self.0.poll_recv(context, buffer) {
                // An empty datagram is not the end, and a stream has no way to say it.
                Poll::Ready(Ok(())) if buffer.filled().len() == before => {}
                // Nobody listens just now; for datagrams that is no end either.
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                other => return other,
            }
        }
    }
}

impl AsyncWrite for Datagrams {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.0.poll_send(context, bytes) {
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                Poll::Ready(Ok(bytes.len()))
            }
            other => other,
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Carries bytes both ways until one side ends, and tells the other. The client hears what the far side said last.
pub async fn relay<F: Far>(mut client: Stream<Upgraded>, mut far: F, stop: &CancellationToken) {
    let ended = stop.run_until_cancelled(carry(&mut client, &mut far, F::PIECE)).await;
    let to_client = last_words(ended.as_ref(), |error| far.parting(error));
    let tell_client = async {
        if let Some(words) = to_client {
            let _ = client.end(words).await;
        }
    };
    let tell_far = async {
        let _ = far.shutdown().await;
    };
    // Who does not listen any more need not be told.
    let _ = timeout(FAREWELL, async { tokio::join!(tell_client, tell_far) }).await;
}

/// What the client is told; nothing if it was the client who ended, unless by a mistake. No end at all is the order to
/// stop.
fn last_words(
    ended: Option<&Ended>,
    of_far: impl FnOnce(Option<&io::Error>) -> Farewell,
) -> Option<Farewell> {
    match ended {
        None => Some(Farewell::API_ENDS),
        Some(Ended::One(None)) => None,
        Some(Ended::One(Some(error))) => {
            let words = Farewell::after(error);
            match &words {
                Some(_) => tracing::warn!("ended the stream of a client: {error}"),
                None => tracing::debug!("the stream of the client broke: {error}"),
            }
            words
        }
        Some(Ended::Other(error)) => {
            if let Some(error) = error {
                tracing::debug!("the stream of the far side broke: {error}");
            }
            Some(of_far(error.as_ref()))
        }
    }
}

#[cfg(test)]
mod tests;
