//! Pings over a WebSocket, when it is time for them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Sink;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::pulse::{Due, Heart, Pulse};
use crate::stream::io;

/// Asks whether the other side is there.
#[derive(Debug)]
pub(crate) struct Beat {
    heart: Heart,
    timer: Pin<Box<Sleep>>,
}

impl Beat {
    pub(crate) fn new(pulse: Pulse) -> Self {
        let now = Instant::now();
        Self { heart: Heart::new(pulse, now), timer: Box::pin(sleep_until(now)) }
    }

    /// Data went out.
    pub(crate) fn wrote(&mut self) {
        self.heart.wrote();
    }

    /// Something came.
    pub(crate) fn heard(&mut self, message: &Message) {
        self.heart.heard();
        if let Message::Pong(number) = message
            && let Ok(number) = number.as_ref().try_into()
        {
            self.heart.answer(u64::from_be_bytes(number));
        }
    }

    /// For when there is nothing to read. Ready only with the reason why there will be nothing any more.
    pub(crate) fn poll<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        socket: &mut WebSocketStream<S>,
        context: &mut Context<'_>,
    ) -> Poll<io::Error> {
        loop {
            let now = Instant::now();
            match self.heart.due(now) {
                Due::Gone => {
                    return Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "no ping is answered"));
                }
                Due::Ping => {
                    if let Err(error) = self.ping(Pin::new(socket), now, context) {
                        return Poll::Ready(error);
                    }
                }
                Due::Wait(until) => {
                    if self.timer.deadline() != until {
                        self.timer.as_mut().reset(until);
                    }
                    if self.timer.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    fn ping<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        mut socket: Pin<&mut WebSocketStream<S>>,
        now: Instant,
        context: &mut Context<'_>,
    ) -> io::Result<()> {
        match socket.as_mut().poll_flush(context) {
            Poll::Pending => {
                self.heart.put_off(now);
                return Ok(());
            }
            Poll::Ready(flushed) => flushed.map_err(io)?,
        }
        let number = self.heart.ping(now).to_be_bytes();
        socket.as_mut().start_send(Message::Ping(Bytes::copy_from_slice(&number))).map_err(io)?;
        // What cannot be sent at once is sent by the next call.
        match socket.poll_flush(context) {
            Poll::Ready(Err(error)) => Err(io(error)),
            _ => Ok(()),
        }
    }
}
