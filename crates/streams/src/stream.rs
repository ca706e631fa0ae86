//! A WebSocket as a stream of bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::stream::FusedStream;
use futures_util::{Sink, SinkExt, Stream as _, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};

use crate::beat::Beat;
use crate::farewell::Farewell;
use crate::pulse::Pulse;

/// The largest message that is taken. Pieces of a stream are small; this bounds what a client can make us hold.
const LARGEST: usize = 4 << 20;
/// How much is written as one message.
const PIECE: usize = 64 << 10;

/// A message has more than is taken at once.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a message has more than {LARGEST} bytes: send the stream in smaller ones")]
pub struct TooLarge;

/// A WebSocket whose messages are the pieces of a stream. Pings are sent and answered while it is read. Shutting down the
/// writing side says goodbye.
#[derive(Debug)]
pub struct Stream<S> {
    socket: WebSocketStream<S>,
    /// What came and was not read yet.
    rest: Bytes,
    farewell: Option<Farewell>,
    closing: bool,
    beat: Option<Beat>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream<S> {
    /// A stream over a connection whose handshake is done.
    pub(crate) async fn new(connection: S, role: Role) -> Self {
        let config = WebSocketConfig::default()
            .max_message_size(Some(LARGEST))
            .max_frame_size(Some(LARGEST))
            // Nothing is held back: a key that is pressed must be seen at once, and memory stays small.
            .read_buffer_size(16 << 10)
            .write_buffer_size(0)
            .max_write_buffer_size(LARGEST);
        let socket = WebSocketStream::from_raw_socket(connection, role, Some(config)).await;
        Self { socket, rest: Bytes::new(), farewell: None, closing: false, beat: None }
    }

    /// Reading fails from now on when the other side is gone, as far as pings can tell.
    #[must_use]
    pub(crate) fn with_pulse(mut self, pulse: Pulse) -> Self {
        self.beat = Some(Beat::new(pulse));
        self
    }

    /// Why the other side ended the stream, if it gave a reason.
    pub fn farewell(&self) -> Option<&str> {
        self.last_words().map(|farewell| farewell.reason.as_ref()).filter(|reason| !reason.is_empty())
    }

    /// With what the other side ended the stream; none if it did not, or left without a word.
    pub fn last_words(&self) -> Option<&Farewell> {
        self.farewell.as_ref()
    }

    /// Ends the stream and says why. This takes as long as the other side takes to hear it.
    pub async fn end(&mut self, farewell: impl Into<Farewell>) -> io::Result<()> {
        let frame = farewell.into().frame();
        over(self.socket.send(Message::Close(Some(frame))).await)?;
        // A connection that is closed with something unread is reset, and the last words can be lost with it.
        if self.socket.is_terminated() {
            // Nothing can be made of what comes any more, and it need not be.
            let mut rest = vec![0; PIECE];
            while self.socket.get_mut().read(&mut rest).await.is_ok_and(|length| length > 0) {}
        } else {
            while let Some(Ok(_)) = self.socket.next().await {}
        }
        Ok(())
    }
}

/// What is over already need not be ended.
fn over(result: Result<(), Error>) -> io::Result<()> {
    match result {
        Ok(())
        | Err(
            Error::ConnectionClosed | Error::AlreadyClosed | Error::Protocol(ProtocolError::SendAfterClosing),
        ) => Ok(()),
        Err(error) => Err(io(error)),
    }
}

pub(crate) fn io(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::ConnectionClosed | Error::AlreadyClosed => io::ErrorKind::BrokenPipe.into(),
        Error::Capacity(_) => io::Error::new(io::ErrorKind::InvalidData, TooLarge),
        other => io::Error::other(other),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.rest.is_empty() {
            let next = match Pin::new(&mut this.socket).poll_next(context) {
                Poll::Ready(next) => next,
                Poll::Pending => {
                    let beat = this.beat.as_mut().filter(|_| !this.closing);
                    return beat.map_or(Poll::Pending, |beat| beat.poll(&mut this.socket, context).map(Err));
                }
            };
            let message = match next {
                None | Some(Err(Error::ConnectionClosed | Error::AlreadyClosed)) => {
                    return Poll::Ready(Ok(()));
                }
                // A client that goes away without a word has ended the stream all the same.
                Some(Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake))) => {
                    return Poll::Ready(Ok(()));
                }
                Some(Err(error)) => return Poll::Ready(Err(io(error))),
                Some(Ok(message)) => message,
            };
            if let Some(beat) = &mut this.beat {
                beat.heard(&message);
            }
            match message {
                Message::Binary(bytes) => this.rest = bytes,
                Message::Text(text) => this.rest = text.into(),
                Message::Close(frame) => {
                    this.farewell = Some(frame.map_or(Farewell::NORMAL, Farewell::from));
                    // Our answer goes out if it can; the other side may be gone already.
                    let _ = Pin::new(&mut this.socket).poll_flush(context);
                    return Poll::Ready(Ok(()));
                }
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
        let length = buffer.remaining().min(this.rest.len());
        buffer.put_slice(&this.rest.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let mut socket = Pin::new(&mut this.socket);
        // What was written before is out first: a reader who is slow is waited for, not remembered.
        ready!(socket.as_mut().poll_flush(context)).map_err(io)?;
        ready!(socket.as_mut().poll_ready(context)).map_err(io)?;
        let piece = &bytes[..bytes.len().min(PIECE)];
        socket.as_mut().start_send(Message::Binary(Bytes::copy_from_slice(piece))).map_err(io)?;
        if let Some(beat) = &mut this.beat {
            beat.wrote();
        }
        // What cannot be sent at once is sent by the next call.
        if let Poll::Ready(Err(error)) = socket.poll_flush(context) {
            return Poll::Ready(Err(io(error)));
        }
        Poll::Ready(Ok(piece.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context).map_err(io)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What was written before goes out first.
        over(ready!(Pin::new(&mut self.socket).poll_flush(context)))?;
        if !self.closing {
            self.closing = true;
            let goodbye = Message::Close(Some(Farewell::NORMAL.frame()));
            over(Pin::new(&mut self.socket).start_send(goodbye))?;
        }
        Pin::new(&mut self.socket).poll_flush(context).map(over)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::Instant;

    use super::*;
    use crate::farewell::Code;

    /// A client and a server that have shaken hands.
    async fn pair() -> (Stream<DuplexStream>, Stream<DuplexStream>) {
        let (one, other) = duplex(1000);
        tokio::join!(Stream::new(one, Role::Client), Stream::new(other, Role::Server))
    }

    #[tokio::test]
    async fn a_reason_and_its_code_are_told_to_the_other_side() {
        let (mut user, mut machine) = pair().await;
        let told = tokio::spawn(async move {
            machine.write_all(b"last words").await.unwrap();
            machine.end(Farewell::new(Code::POLICY, "somebody else took over")).await
        });
        // What is on its way in the other direction is not in the way.
        user.write_all(b"typed").await.unwrap();
        let mut got = Vec::new();
        user.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, b"last words");
        assert_eq!(user.farewell(), Some("somebody else took over"));
        assert_eq!(user.last_words().unwrap().code, Code::POLICY);
        told.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn who_closes_in_order_has_nothing_to_explain() {
        let (mut user, mut machine) = pair().await;
        user.shutdown().await.unwrap();
        machine.read_to_end(&mut Vec::new()).await.unwrap();
        assert_eq!((machine.last_words(), machine.farewell()), (Some(&Farewell::NORMAL), None));
        // It is too late for a reason, and no mistake to give one.
        machine.end("too late").await.unwrap();
        machine.shutdown().await.unwrap();
        user.read_to_end(&mut Vec::new()).await.unwrap();
        assert_eq!(user.farewell(), None);
    }

    #[tokio::test]
    async fn who_sends_a_message_that_is_too_large_is_told() {
        let (one, other) = duplex(1000);
        let mut client = WebSocketStream::from_raw_socket(one, Role::Client, None).await;
        let mut machine = Stream::new(other, Role::Server).await;
        let serving = tokio::spawn(async move {
            let error = machine.read_to_end(&mut Vec::new()).await.unwrap_err();
            machine.end(Farewell::after(&error).unwrap()).await
        });
        client.send(Message::Binary(vec![0; LARGEST + 1].into())).await.unwrap();
        let Some(Ok(Message::Close(Some(frame)))) = client.next().await else { panic!() };
        assert_eq!(u16::from(frame.code), 1009);
        assert!(frame.reason.contains("4194304"), "{frame}");
        drop(client);
        serving.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn who_is_gone_has_said_nothing() {
        let (user, mut machine) = pair().await;
        drop(user);
        machine.read_to_end(&mut Vec::new()).await.unwrap();
        assert_eq!(machine.last_words(), None);
    }
    const HOUR: Duration = Duration::from_secs(3600);

    /// A server that waits for what its client says, and tells what came of that.
    fn waiting(mut server: Stream<DuplexStream>) -> tokio::task::JoinHandle<io::Result<usize>> {
        tokio::spawn(async move { server.read(&mut [0; 10]).await })
    }

    #[tokio::test(start_paused = true)]
    async fn who_listens_stays_however_quiet_it_is() {
        let (mut user, machine) = pair().await;
        let served = waiting(machine.with_pulse(Pulse::default()));
        let silence = tokio::time::timeout(HOUR, user.read(&mut [0; 10])).await;
        assert!(silence.is_err() && !served.is_finished());
        user.write_all(b"hello").await.unwrap();
        assert_eq!(served.await.unwrap().unwrap(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn who_vanishes_is_missed() {
        let (mut user, machine) = pair().await;
        let served = waiting(machine.with_pulse(Pulse::default()));
        assert!(tokio::time::timeout(Duration::from_secs(70), user.read(&mut [0; 10])).await.is_err());
        let vanished = Instant::now();
        let error = served.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(vanished.elapsed() <= Duration::from_secs(80), "{:?}", vanished.elapsed());
        drop(user);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_slow_or_only_pauses_is_waited_for() {
        // What is to be read fits on the way to the reader, or it does not.
        for length in [10, 10_000] {
            let (mut user, machine) = pair().await;
            let (mut from_user, mut to_user) = tokio::io::split(machine.with_pulse(Pulse::default()));
            let served = tokio::spawn(async move { from_user.read(&mut [0; 10]).await });
            let writing = tokio::spawn(async move { to_user.write_all(&vec![7; length]).await });
            let mut got = vec![0; length];
            user.read_exact(&mut got[..5]).await.unwrap();
            tokio::time::sleep(HOUR).await;
            user.read_exact(&mut got[5..]).await.unwrap();
            assert_eq!(got, vec![7; length]);
            writing.await.unwrap().unwrap();
            assert!(!served.is_finished(), "{length}");
            user.write_all(b"there").await.unwrap();
            assert_eq!(served.await.unwrap().unwrap(), 5);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_missed_by_who_does_not_listen() {
        let (mut user, machine) = pair().await;
        let mut machine = machine.with_pulse(Pulse::default());
        let listening = tokio::spawn(async move { user.read(&mut [0; 10]).await });
        for _ in 0..3 {
            // An answer is under way when the server has something else to do for a long time.
            let heard = tokio::time::timeout(Duration::from_secs(90), machine.read(&mut [0; 10])).await;
            assert!(heard.is_err(), "{heard:?}");
            tokio::time::sleep(HOUR).await;
        }
        machine.write_all(b"hello").await.unwrap();
        assert_eq!(listening.await.unwrap().unwrap(), 5);
    }
}
