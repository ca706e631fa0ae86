//! A client's stream joined with the far side: a handler's stream, or a port of a guest.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use kubevirt_streams::{Stream, Upgraded};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long a side may take to hear that it is over.
const FAREWELL: Duration = Duration::from_secs(5);

/// The far side of a stream.
pub trait Far: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// How much is carried at a time: there may be hundreds of streams.
    const PIECE: usize = 8 << 10;

    /// Why it ended, if it said so.
    fn reason(&self) -> Option<&str> {
        None
    }
}

impl Far for Stream<Upgraded> {
    fn reason(&self) -> Option<&str> {
        self.farewell()
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

enum End {
    Client,
    Far,
    Told,
}

/// Carries bytes both ways until one side ends, and tells the other; why, if the far side said why.
pub async fn relay<F: Far>(mut client: Stream<Upgraded>, mut far: F, stop: &CancellationToken) {
    let end = {
        let (from_client, to_client) = tokio::io::split(&mut client);
        let (from_far, to_far) = tokio::io::split(&mut far);
        tokio::select! {
            result = carry(from_client, to_far, F::PIECE) => {
                note("client", &result);
                End::Client
            }
            result = carry(from_far, to_client, F::PIECE) => {
                note("far side", &result);
                End::Far
            }
            () = stop.cancelled() => End::Told,
        }
    };
    let farewell = async {
        match end {
            End::Client => far.shutdown().await,
            End::Far => {
                let reason = far.reason().unwrap_or_default().to_owned();
                if reason.is_empty() { client.shutdown().await } else { client.end(&reason).await }
            }
            End::Told => {
                let told = client.end("this virt-api ends; connect again to reach another").await;
                far.shutdown().await.and(told)
            }
        }
    };
    // Who does not listen any more need not be told.
    let _ = timeout(FAREWELL, farewell).await;
}

fn note(side: &str, result: &io::Result<()>) {
    if let Err(error) = result {
        tracing::debug!("the stream of the {side} broke: {error}");
    }
}

async fn carry<R, W>(mut from: R, mut to: W, piece: usize) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; piece];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..length]).await?;
        to.flush().await?;
    }
}
