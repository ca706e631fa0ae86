//! Two streams joined until one of them ends, and who it was.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Who ended first, and by what error if it did not end by itself.
#[derive(Debug)]
pub enum Ended {
    /// The first of the two.
    One(Option<io::Error>),
    /// The second.
    Other(Option<io::Error>),
}

/// Carries bytes both ways, in pieces up to this length, until one side ends or breaks. What that side has sent before
/// has been passed on by then, unless it was the other that broke. Nobody is told of the end.
pub async fn relay<A, B>(one: &mut A, other: &mut B, piece: usize) -> Ended
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let (from_one, to_one) = tokio::io::split(one);
    let (from_other, to_other) = tokio::io::split(other);
    tokio::select! {
        carried = carry(from_one, to_other, piece) => match carried {
            Ok(()) => Ended::One(None),
            Err(Broken::Reading(error)) => Ended::One(Some(error)),
            Err(Broken::Writing(error)) => Ended::Other(Some(error)),
        },
        carried = carry(from_other, to_one, piece) => match carried {
            Ok(()) => Ended::Other(None),
            Err(Broken::Reading(error)) => Ended::Other(Some(error)),
            Err(Broken::Writing(error)) => Ended::One(Some(error)),
        },
    }
}

/// Which end of a direction broke.
enum Broken {
    Reading(io::Error),
    Writing(io::Error),
}

async fn carry<R, W>(mut from: R, mut to: W, piece: usize) -> Result<(), Broken>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; piece];
    loop {
        let length = from.read(&mut buffer).await.map_err(Broken::Reading)?;
        if length == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..length]).await.map_err(Broken::Writing)?;
        to.flush().await.map_err(Broken::Writing)?;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{ReadBuf, duplex, empty, join, sink};

    use super::*;

    /// Neither reads nor writes.
    struct Fails;

    impl AsyncRead for Fails {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
        }
    }

    impl AsyncWrite for Fails {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// In short: who it was, and the error.
    fn short(ended: Ended) -> (&'static str, Option<io::ErrorKind>) {
        match ended {
            Ended::One(error) => ("one", error.map(|error| error.kind())),
            Ended::Other(error) => ("other", error.map(|error| error.kind())),
        }
    }

    #[tokio::test]
    async fn it_is_known_who_ended() {
        let (mut quiet, _held) = duplex(10);
        assert_eq!(short(relay(&mut quiet, &mut join(empty(), sink()), 10).await), ("other", None));
        assert_eq!(short(relay(&mut join(empty(), sink()), &mut quiet, 10).await), ("one", None));
        let reset = Some(io::ErrorKind::ConnectionReset);
        assert_eq!(short(relay(&mut quiet, &mut Fails, 10).await), ("other", reset));
        assert_eq!(short(relay(&mut Fails, &mut quiet, 10).await), ("one", reset));
    }

    #[tokio::test]
    async fn who_takes_nothing_has_ended_and_not_who_gives() {
        let (mut quiet, _held) = duplex(10);
        let (_, to_nobody) = tokio::io::split(Fails);
        let (from_nobody, _) = tokio::io::split(&mut quiet);
        let mut deaf = join(from_nobody, to_nobody);
        let (mut speaker, mut words) = duplex(10);
        words.write_all(b"hello").await.unwrap();
        let pipe = Some(io::ErrorKind::BrokenPipe);
        assert_eq!(short(relay(&mut speaker, &mut deaf, 10).await), ("other", pipe));
        words.write_all(b"hello").await.unwrap();
        assert_eq!(short(relay(&mut deaf, &mut speaker, 10).await), ("one", pipe));
    }

    #[tokio::test]
    async fn what_was_sent_before_the_end_has_arrived() {
        let ((mut one, mut near), (mut far, mut other)) = (duplex(10), duplex(1000));
        let sender = tokio::spawn(async move {
            one.write_all(&[7; 500]).await.unwrap();
            one.shutdown().await.unwrap();
            one
        });
        assert_eq!(short(relay(&mut near, &mut far, 100).await), ("one", None));
        let mut arrived = [0; 500];
        other.read_exact(&mut arrived).await.unwrap();
        assert_eq!(arrived, [7; 500]);
        sender.await.unwrap();
    }
}
