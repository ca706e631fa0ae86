//! Sends netlink messages and waits for what the kernel says to them.

use std::{io, os::fd::OwnedFd};

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

use super::{Message, flag};
use crate::bytes::array;

const HEADER: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const MULTIPART: u16 = 0x2;
const INTERRUPTED: u16 = 0x10;

/// A socket to the part of the kernel that the thread's network namespace is in charge of.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    sequence: u32,
}

/// A message from the kernel, without its header.
#[derive(Debug)]
pub struct Reply {
    /// What it is about.
    pub kind: u16,
    /// Its fixed part and its attributes.
    pub body: Vec<u8>,
    flags: u16,
    sequence: u32,
}

impl Socket {
    /// For links, addresses and routes.
    pub fn route() -> io::Result<Self> {
        // The protocol's number is 0, which is what no protocol means.
        Self::open(None)
    }

    /// For nftables.
    pub fn netfilter() -> io::Result<Self> {
        Self::open(Some(netlink::NETFILTER))
    }

    fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        Ok(Self { fd, sequence: 0 })
    }

    /// All that the kernel has to say to a question. It starts anew if things change meanwhile.
    pub fn dump(&mut self, kind: u16, fixed: &[u8]) -> io::Result<Vec<Reply>> {
        const ATTEMPTS: usize = 8;
        for _ in 0..ATTEMPTS {
            let sequence = self.send(Message::new(kind, flag::REQUEST | flag::DUMP, fixed))?;
            let (replies, interrupted) = self.collect(sequence)?;
            if !interrupted {
                return Ok(replies);
            }
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "the list changed whenever it was read"))
    }

    /// Has something changed.
    pub fn change(&mut self, message: Message) -> io::Result<()> {
        let sequence = self.send(message)?;
        self.collect(sequence).map(drop)
    }

    /// Has many things changed at once, or none of them if one cannot be.
    pub fn transaction(&mut self, begin: Message, changes: Vec<Message>, end: Message) -> io::Result<()> {
        let first = self.sequence + 1;
        let mut bytes = Vec::new();
        for message in std::iter::once(begin).chain(changes).chain(std::iter::once(end)) {
            self.sequence += 1;
            bytes.extend(message.finish(self.sequence));
        }
        send(&self.fd, &bytes, SendFlags::empty())?;
        self.verdict(first)
    }

    fn send(&mut self, message: Message) -> io::Result<u32> {
        self.sequence += 1;
        send(&self.fd, &message.finish(self.sequence), SendFlags::empty())?;
        Ok(self.sequence)
    }

    /// Replies up to the one that is the last, and whether they may not fit together.
    fn collect(&mut self, sequence: u32) -> io::Result<(Vec<Reply>, bool)> {
        let mut all = Vec::new();
        let mut interrupted = false;
        loop {
            for reply in self.receive(RecvFlags::empty())? {
                if reply.sequence != sequence {
                    continue;
                }
                interrupted |= reply.flags & INTERRUPTED != 0;
                match reply.kind {
                    ERROR | DONE => return failure(&reply).map_or(Ok((all, interrupted)), Err),
                    _ if reply.flags & MULTIPART == 0 => return Ok((vec![reply], interrupted)),
                    _ => all.push(reply),
                }
            }
        }
    }

    /// The first error among the answers to a transaction. They are all there when `send` returns.
    fn verdict(&mut self, first: u32) -> io::Result<()> {
        let mut result = Ok(());
        loop {
            match self.receive(RecvFlags::DONTWAIT) {
                Ok(replies) => {
                    for reply in replies.iter().filter(|reply| reply.sequence >= first && reply.kind == ERROR)
                    {
                        if let (Ok(()), Some(error)) = (&result, failure(reply)) {
                            result = Err(error);
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return result,
                Err(error) => return Err(error),
            }
        }
    }

    fn receive(&self, flags: RecvFlags) -> io::Result<Vec<Reply>> {
        let mut buffer = vec![0; 64 * 1024];
        let (length, _) = rustix::io::retry_on_intr(|| recv(&self.fd, &mut buffer[..], flags))?;
        Ok(replies(&buffer[..length]))
    }
}

fn replies(mut bytes: &[u8]) -> Vec<Reply> {
    let mut all = Vec::new();
    while let Some(header) = array::<HEADER>(bytes, 0) {
        let [a, b, c, d, kind_low, kind_high, flags_low, flags_high, e, f, g, h, ..] = header;
        let length = u32::from_ne_bytes([a, b, c, d]) as usize;
        let Some(body) = bytes.get(HEADER..length) else { break };
        all.push(Reply {
            kind: u16::from_ne_bytes([kind_low, kind_high]),
            flags: u16::from_ne_bytes([flags_low, flags_high]),
            sequence: u32::from_ne_bytes([e, f, g, h]),
            body: body.to_vec(),
        });
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    all
}

/// What an error message or the end of a list says: nothing, if all went well.
fn failure(reply: &Reply) -> Option<io::Error> {
    let code = i32::from_ne_bytes(array(&reply.body, 0)?);
    (code < 0).then(|| io::Error::from_raw_os_error(code.saturating_neg()))
}
