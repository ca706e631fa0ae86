//! Writing to a monitor: whole lines in order, file descriptors along with the first byte.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;

/// One line to write, and the descriptor to hand over with it.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) line: Vec<u8>,
    pub(crate) fd: Option<OwnedFd>,
}

/// Writes until there is nobody left who could ask for anything, or the socket fails.
///
/// Being the only writer it never leaves half a line behind, whichever caller loses patience.
pub(crate) async fn write_all(to: OwnedWriteHalf, mut letters: mpsc::Receiver<Letter>) {
    while let Some(letter) = letters.recv().await {
        if write(to.as_ref(), &letter).await.is_err() {
            return;
        }
    }
}

async fn write(to: &UnixStream, letter: &Letter) -> io::Result<()> {
    let mut fd = letter.fd.as_ref().map(AsFd::as_fd);
    let mut left = letter.line.as_slice();
    while !left.is_empty() {
        let sent = to.async_io(Interest::WRITABLE, || send(to, left, fd)).await?;
        fd = None;
        left = &left[sent..];
    }
    Ok(())
}

fn send(to: &UnixStream, bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = fd.map(|fd| [fd]);
    if let Some(fds) = &fds {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    Ok(sendmsg(to, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?)
}
