//! Lines from a socket, of any length up to a limit, whatever the packets they come in.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Reads line by line. Waiting for a line may be given up at any point without losing a byte.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    from: R,
    held: Vec<u8>,
    scanned: usize,
    limit: usize,
}

/// Why there is no further line.
#[derive(Debug)]
pub(crate) enum NoLine {
    End,
    TooLong { limit: usize },
    Io(io::Error),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(from: R, limit: usize) -> Self {
        Self { from, held: Vec::new(), scanned: 0, limit }
    }

    /// The next line without its line ending.
    pub(crate) async fn next(&mut self) -> Result<Vec<u8>, NoLine> {
        loop {
            if let Some(at) = self.held[self.scanned..].iter().position(|byte| *byte == b'\n') {
                let mut rest = self.held.split_off(self.scanned + at + 1);
                std::mem::swap(&mut rest, &mut self.held);
                self.scanned = 0;
                while rest.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
                    rest.pop();
                }
                return Ok(rest);
            }
            self.scanned = self.held.len();
            if self.held.len() > self.limit {
                return Err(NoLine::TooLong { limit: self.limit });
            }
            self.held.reserve(4096);
            match self.from.read_buf(&mut self.held).await {
                Ok(0) => return Err(NoLine::End),
                Ok(_) => {}
                Err(error) => return Err(NoLine::Io(error)),
            }
        }
    }

    /// Takes what came after the last line ending.
    pub(crate) fn take_rest(&mut self) -> Vec<u8> {
        self.scanned = 0;
        std::mem::take(&mut self.held)
    }
}
