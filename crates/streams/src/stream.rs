//! A WebSocket as a stream of bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::{Sink, Stream as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};

/// The largest message that is taken. Pieces of a stream are small; this bounds what a client can make us hold.
const LARGEST: usize = 4 << 20;
/// How much is written as one message.
const PIECE: usize = 64 << 10;

/// A WebSocket whose messages are the pieces of a stream. Pings are answered while it is read. Shutting down the
/// writing side says goodbye.
#[derive(Debug)]
pub struct Stream<S> {
    socket: WebSocketStream<S>,
    /// What came and was not read yet.
    rest: Bytes,
    farewell: Option<CloseFrame>,
    closing: bool,
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
        Self { socket, rest: Bytes::new(), farewell: None, closing: false }
    }

    /// Why the other side ended the stream, if it gave a reason.
    pub fn farewell(&self) -> Option<&str> {
        self.farewell.as_ref().map(|frame| frame.reason.as_str()).filter(|reason| !reason.is_empty())
    }

    /// Ends the stream and says why; the reason is cut to what a WebSocket can say.
    pub async fn end(&mut self, reason: &str) -> io::Result<()> {
        let mut length = reason.len().min(120);
        while !reason.is_char_boundary(length) {
            length -= 1;
        }
        let code = tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode::Normal;
        let frame = CloseFrame { code, reason: reason[..length].into() };
        match self.socket.close(Some(frame)).await {
            Ok(()) | Err(Error::ConnectionClosed | Error::AlreadyClosed) => Ok(()),
            Err(error) => Err(io(error)),
        }
    }
}

fn io(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::ConnectionClosed | Error::AlreadyClosed => io::ErrorKind::BrokenPipe.into(),
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
            let message = match ready!(Pin::new(&mut this.socket).poll_next(context)) {
                None | Some(Err(Error::ConnectionClosed | Error::AlreadyClosed)) => {
                    return Poll::Ready(Ok(()));
                }
                // A client that goes away without a word has ended the stream all the same.
                Some(Err(Error::Protocol(
                    tokio_tungstenite::tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
                ))) => return Poll::Ready(Ok(())),
                Some(Err(error)) => return Poll::Ready(Err(io(error))),
                Some(Ok(message)) => message,
            };
            match message {
                Message::Binary(bytes) => this.rest = bytes,
                Message::Text(text) => this.rest = text.into(),
                Message::Close(frame) => {
                    this.farewell = frame;
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
        let mut socket = Pin::new(&mut self.socket);
        // What was written before is out first: a reader who is slow is waited for, not remembered.
        ready!(socket.as_mut().poll_flush(context)).map_err(io)?;
        ready!(socket.as_mut().poll_ready(context)).map_err(io)?;
        let piece = &bytes[..bytes.len().min(PIECE)];
        socket.as_mut().start_send(Message::Binary(Bytes::copy_from_slice(piece))).map_err(io)?;
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
        if !self.closing {
            ready!(Pin::new(&mut self.socket).poll_flush(context)).map_err(io)?;
            self.closing = true;
        }
        match ready!(Pin::new(&mut self.socket).poll_close(context)) {
            Ok(()) | Err(Error::ConnectionClosed | Error::AlreadyClosed) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(io(error))),
        }
    }
}
