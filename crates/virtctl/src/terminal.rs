//! A terminal that hands every key to a guest, and is itself again afterwards.

use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use rustix::termios::{self, OptionalActions, Termios};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::signal::unix::{SignalKind, signal};

/// The key that leaves a console: ctrl+] or ctrl+5.
pub const ESCAPE: u8 = 0x1d;
/// How long a guest may be silent before it is left, once there is nothing more to send.
const SILENCE: Duration = Duration::from_secs(1);
/// How long it is listened to at most then.
const LAST_WORDS: Duration = Duration::from_secs(10);
const BUFFER: usize = 16 << 10;

/// What the terminal was like. It is one of the process, not of a value, so that a panic can bring it back as well.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
static ON_PANIC: Once = Once::new();

/// A terminal whose keys are bytes and nothing else, until this is dropped.
#[derive(Debug)]
pub struct Raw(());

impl Raw {
    /// Makes standard input raw. Where it is no terminal there is nothing to do.
    pub fn enter() -> io::Result<Self> {
        let input = io::stdin();
        if input.is_terminal() {
            let before = termios::tcgetattr(&input)?;
            let mut raw = before.clone();
            raw.make_raw();
            *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
            ON_PANIC.call_once(|| {
                let usual = std::panic::take_hook();
                std::panic::set_hook(Box::new(move |panic| {
                    restore();
                    usual(panic);
                }));
            });
            termios::tcsetattr(&input, OptionalActions::Flush, &raw)?;
        }
        Ok(Self(()))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // A terminal that is gone needs no care.
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Drain, &before);
    }
}

/// How large a window is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Window {
    /// Lines.
    pub rows: u16,
    /// Letters in a line.
    pub columns: u16,
}

impl Window {
    /// What guests take for granted on a serial line.
    const USUAL: Self = Self { rows: 24, columns: 80 };

    /// The window that somebody types and reads in. Nothing, where a program does one of the two.
    pub fn of_user() -> Option<Self> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return None;
        }
        let size = termios::tcgetwinsize(io::stdout()).ok()?;
        Some(Self { rows: size.ws_row, columns: size.ws_col })
    }

    /// The command that tells a guest on a serial line, which has no other way to learn it. Nothing, where there is
    /// nothing new in it, or where the terminal itself does not know.
    pub fn command(self) -> Option<String> {
        let Self { rows, columns } = self;
        let news = rows > 0 && columns > 0 && self != Self::USUAL;
        news.then(|| format!("stty rows {rows} cols {columns}"))
    }
}

/// Why a conversation is over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// The user pressed the escape key.
    ByUser,
    /// There is nothing more to send.
    InputOver,
    /// The other side ended it.
    ByServer,
    /// Nobody reads what the other side says any more.
    Unread,
}

/// A request to end that does not come from a key.
pub async fn told_to_end() {
    let kinds = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
    let waits = kinds.into_iter().filter_map(|kind| signal(kind).ok()).map(|mut signal| {
        Box::pin(async move {
            signal.recv().await;
        })
    });
    let waits: Vec<_> = waits.collect();
    if waits.is_empty() {
        return std::future::pending().await;
    }
    futures_util::future::select_all(waits).await;
}

/// Carries keys there and the screen back until one side has enough. The stream is handed back: it may know why.
pub async fn converse<I, O, S>(mut input: I, mut output: O, stream: S) -> (io::Result<Ended>, S)
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin,
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut from, mut to) = tokio::io::split(stream);
    let heard = Cell::new(0_usize);
    let ended = {
        let mut screen = std::pin::pin!(show(&mut from, &mut output, &heard));
        tokio::select! {
            shown = &mut screen => shown,
            typed = send(&mut input, &mut to) => match typed {
                Ok(Ended::InputOver) => {
                    let _ = tokio::time::timeout(LAST_WORDS, until_silent(screen, &heard)).await;
                    Ok(Ended::InputOver)
                }
                // A server that ends the stream stops reading first: its farewell may still be on the way.
                Err(_) => {
                    let _ = tokio::time::timeout(SILENCE, screen).await;
                    Ok(Ended::ByServer)
                }
                ended => ended,
            },
        }
    };
    (ended, from.unsplit(to))
}

async fn send(input: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin)) -> io::Result<Ended> {
    let mut buffer = vec![0; BUFFER];
    loop {
        // What cannot be read is over, whatever the reason.
        let length = input.read(&mut buffer).await.unwrap_or(0);
        if length == 0 {
            return Ok(Ended::InputOver);
        }
        let typed = &buffer[..length];
        let escape = typed.iter().position(|byte| *byte == ESCAPE);
        to.write_all(&typed[..escape.unwrap_or(length)]).await?;
        to.flush().await?;
        if escape.is_some() {
            return Ok(Ended::ByUser);
        }
    }
}

async fn show(
    from: &mut (impl AsyncRead + Unpin),
    output: &mut (impl AsyncWrite + Unpin),
    heard: &Cell<usize>,
) -> io::Result<Ended> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return Ok(Ended::ByServer);
        }
        heard.set(heard.get() + length);
        let written = async {
            output.write_all(&buffer[..length]).await?;
            output.flush().await
        };
        match written.await {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Ended::Unread),
            written => written?,
        }
    }
}

async fn until_silent(
    mut screen: std::pin::Pin<&mut impl Future<Output = io::Result<Ended>>>,
    heard: &Cell<usize>,
) {
    loop {
        let before = heard.get();
        if tokio::time::timeout(SILENCE, &mut screen).await.is_ok() || heard.get() == before {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    async fn typed(input: &'static [u8]) -> (Ended, Vec<u8>, Vec<u8>) {
        let (stream, mut guest) = duplex(1000);
        let answering = async {
            let mut got = vec![0; 100];
            let length = guest.read(&mut got).await.unwrap();
            got.truncate(length);
            guest.write_all(b"answer").await.unwrap();
            // The guest stays where it is.
            (got, guest)
        };
        let mut screen = Vec::new();
        let ((ended, _), (got, _guest)) = tokio::join!(
            async {
                let ended = converse(input, &mut screen, stream).await;
                (ended.0.unwrap(), ended.1)
            },
            answering
        );
        (ended, got, screen)
    }

    #[test]
    fn a_guest_is_told_of_a_window_that_it_would_not_expect() {
        for (rows, columns, expected) in [
            (50, 180, Some("stty rows 50 cols 180")),
            (24, 132, Some("stty rows 24 cols 132")),
            (10, 40, Some("stty rows 10 cols 40")),
            (24, 80, None),
            (0, 0, None),
            (0, 80, None),
        ] {
            assert_eq!(Window { rows, columns }.command().as_deref(), expected, "{rows} {columns}");
        }
    }

    #[tokio::test]
    async fn keys_arrive_and_answers_are_waited_for() {
        let (ended, got, screen) = typed(b"ls\n").await;
        assert_eq!((ended, &got[..], &screen[..]), (Ended::InputOver, &b"ls\n"[..], &b"answer"[..]));
    }

    #[tokio::test]
    async fn the_escape_key_ends_it_wherever_it_is() {
        let (ended, got, _) = typed(b"ls\n\x1dnever").await;
        assert_eq!((ended, &got[..]), (Ended::ByUser, &b"ls\n"[..]));
    }

    #[tokio::test]
    async fn a_server_that_ends_is_noticed() {
        let (stream, guest) = duplex(1000);
        let (_keys, input) = duplex(10);
        drop(guest);
        let (ended, _) = converse(input, Vec::new(), stream).await;
        assert_eq!(ended.unwrap(), Ended::ByServer);
    }

    #[tokio::test]
    async fn a_reader_who_leaves_ends_it() {
        let (stream, mut guest) = duplex(1000);
        let (_keys, input) = duplex(10);
        let (screen, reader) = duplex(10);
        drop(reader);
        guest.write_all(b"login:").await.unwrap();
        let (ended, _) = converse(input, screen, stream).await;
        assert_eq!(ended.unwrap(), Ended::Unread);
    }
}
