//! A serial console and its viewer, who may be slow.
//!
//! QEMU's serial port waits for whoever is connected: as long as its socket takes nothing more, the guest's transmitter
//! stays full, and a guest that writes to its console waits for a person somewhere. So the socket is always read. What
//! the viewer has not taken is kept up to a limit; after that the oldest of it is dropped, and the viewer is told how
//! much. Displays need none of this: QEMU sends them no more than they ask for.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kubevirt_streams::Ended;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

/// So much is kept for a viewer who is slow: some hundred screenfuls.
const LIMIT: usize = 256 << 10;
/// So much is carried at a time, in each direction: there may be hundreds of consoles.
const PIECE: usize = 4 << 10;
/// More room than this is given back once it is not needed.
const SPARE: usize = 16 << 10;
/// Output goes on at the beginning of a line, if one begins within so many bytes.
const LINE: usize = 1 << 10;
/// How long a viewer may take for what came last.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Carries bytes both ways until one side ends: the viewer is the one, the guest the other.
pub(super) async fn relay<V, G>(viewer: V, guest: G) -> Ended
where
    V: AsyncRead + AsyncWrite,
    G: AsyncRead + AsyncWrite,
{
    let (from_viewer, to_viewer) = tokio::io::split(viewer);
    let (from_guest, to_guest) = tokio::io::split(guest);
    let waiting = Waiting::default();
    let mut showing = std::pin::pin!(show(&waiting, to_viewer));
    tokio::select! {
        ended = type_in(from_viewer, to_guest) => ended,
        error = &mut showing => Ended::One(error),
        error = listen(&waiting, from_guest) => {
            // What the guest said last is what one wants to know.
            waiting.end();
            let _ = tokio::time::timeout(LAST_WORDS, showing).await;
            Ended::Other(error)
        }
    }
}

/// What the viewer types.
async fn type_in(mut viewer: impl AsyncRead + Unpin, mut guest: impl AsyncWrite + Unpin) -> Ended {
    let mut buffer = vec![0; PIECE];
    loop {
        match viewer.read(&mut buffer).await {
            Ok(0) => return Ended::One(None),
            Ok(length) => {
                if let Err(error) = guest.write_all(&buffer[..length]).await {
                    return Ended::Other(Some(error));
                }
            }
            Err(error) => return Ended::One(Some(error)),
        }
    }
}

/// Takes what the guest says, at once and always, until it ends.
async fn listen(waiting: &Waiting, mut guest: impl AsyncRead + Unpin) -> Option<io::Error> {
    let mut buffer = vec![0; PIECE];
    loop {
        match guest.read(&mut buffer).await {
            Ok(0) => return None,
            Ok(length) => waiting.put(&buffer[..length]),
            Err(error) => return Some(error),
        }
    }
}

/// Gives the viewer what there is, as fast as it takes it, until nothing more comes.
async fn show(waiting: &Waiting, mut viewer: impl AsyncWrite + Unpin) -> Option<io::Error> {
    while let Some(piece) = waiting.next().await {
        let shown = async {
            viewer.write_all(&piece).await?;
            viewer.flush().await
        };
        if let Err(error) = shown.await {
            return Some(error);
        }
    }
    None
}

/// What the viewer has not taken yet.
#[derive(Default)]
struct Waiting {
    backlog: Mutex<(Backlog, bool)>,
    news: Notify,
}

impl Waiting {
    fn put(&self, bytes: &[u8]) {
        self.lock().0.put(bytes);
        self.news.notify_one();
    }

    /// Nothing more comes.
    fn end(&self) {
        self.lock().1 = true;
        self.news.notify_one();
    }

    async fn next(&self) -> Option<Vec<u8>> {
        loop {
            let news = self.news.notified();
            let ended = {
                let (backlog, ended) = &mut *self.lock();
                if let Some(piece) = backlog.take() {
                    return Some(piece);
                }
                *ended
            };
            if ended {
                return None;
            }
            news.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, (Backlog, bool)> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The latest output, up to a limit.
#[derive(Default)]
struct Backlog {
    bytes: VecDeque<u8>,
    /// How much was dropped since the viewer was told.
    lost: usize,
}

impl Backlog {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        if let Some(excess) = self.bytes.len().checked_sub(LIMIT).filter(|excess| *excess > 0) {
            self.bytes.drain(..excess);
            self.lost += excess;
        }
    }

    /// The next piece for the viewer, with a word on what is missing before it.
    fn take(&mut self) -> Option<Vec<u8>> {
        if self.bytes.is_empty() {
            return None;
        }
        let mut piece = Vec::new();
        if self.lost > 0 {
            if let Some(end) = self.bytes.iter().take(LINE).position(|byte| *byte == b'\n') {
                self.bytes.drain(..=end);
                self.lost += end + 1;
            }
            piece = notice(std::mem::take(&mut self.lost)).into_bytes();
        }
        let length = self.bytes.len().min(PIECE);
        piece.extend(self.bytes.drain(..length));
        if self.bytes.len() <= PIECE && self.bytes.capacity() > SPARE {
            self.bytes.shrink_to(PIECE);
        }
        Some(piece)
    }
}

fn notice(lost: usize) -> String {
    format!("\r\n[{lost} bytes of output are missing here: they came faster than they were read]\r\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::duplex;

    use super::*;

    #[test]
    fn the_oldest_is_dropped_and_the_viewer_is_told() {
        let mut backlog = Backlog::default();
        for number in 0..100_000 {
            backlog.put(format!("line {number}\r\n").as_bytes());
        }
        assert!(backlog.bytes.len() <= LIMIT);
        let mut shown = Vec::new();
        while let Some(piece) = backlog.take() {
            shown.extend(piece);
        }
        let shown = String::from_utf8(shown).unwrap();
        let (word, rest) = shown.trim_start().split_once("\r\n").unwrap();
        assert!(word.ends_with("faster than they were read]"), "{word}");
        let mut lines = rest.lines();
        assert!(lines.next().unwrap().starts_with("line "), "a whole line comes first");
        assert_eq!(lines.next_back(), Some("line 99999"));
        assert!(backlog.bytes.capacity() <= SPARE, "the room is given back");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn nothing_is_lost_without_a_word(steps in proptest::collection::vec((0_usize..90_000, 0_usize..40), 1..8)) {
            let mut backlog = Backlog::default();
            let (mut put, mut taken, mut told) = (0, 0, 0);
            let mut count = |piece: Vec<u8>| {
                // What is said is made of letters that the guest never uses here.
                let own = piece.iter().filter(|byte| **byte != b'.').count();
                taken += piece.len() - own;
                if own > 0 {
                    let text = String::from_utf8(piece).unwrap();
                    let number: String = text.chars().filter(char::is_ascii_digit).collect();
                    told += number.parse::<usize>().unwrap();
                }
            };
            for (length, pieces) in steps {
                backlog.put(&vec![b'.'; length]);
                put += length;
                for _ in 0..pieces {
                    if let Some(piece) = backlog.take() {
                        count(piece);
                    }
                }
            }
            while let Some(piece) = backlog.take() {
                count(piece);
            }
            prop_assert_eq!(put, taken + told);
        }
    }

    #[tokio::test]
    async fn a_viewer_who_does_not_read_does_not_hold_up_the_guest() {
        let (near_viewer, mut viewer) = duplex(1000);
        let (near_guest, mut guest) = duplex(1000);
        let relaying = tokio::spawn(relay(near_viewer, near_guest));
        // Far more than all buffers together hold; this would never end if it had to wait for the viewer.
        for _ in 0..1000 {
            guest.write_all(&[b'x'; 10_000]).await.unwrap();
        }
        guest.write_all(b"\nlogin: ").await.unwrap();
        // The viewer can still type, and the guest hears it.
        viewer.write_all(b"root\n").await.unwrap();
        let mut typed = [0; 5];
        guest.read_exact(&mut typed).await.unwrap();
        assert_eq!(&typed, b"root\n");
        // Once the viewer reads again, it has the latest output.
        drop(guest);
        let mut shown = Vec::new();
        viewer.read_to_end(&mut shown).await.unwrap();
        assert!(shown.len() < LIMIT + 20_000, "{}", shown.len());
        assert!(shown.ends_with(b"\nlogin: "));
        assert!(matches!(relaying.await.unwrap(), Ended::Other(None)), "the guest has ended");
    }

    #[tokio::test]
    async fn a_quick_viewer_misses_nothing() {
        let (near_viewer, mut viewer) = duplex(100_000);
        let (near_guest, mut guest) = duplex(1000);
        tokio::spawn(relay(near_viewer, near_guest));
        let all: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
        for part in all.chunks(10_000) {
            guest.write_all(part).await.unwrap();
            let mut shown = vec![0; part.len()];
            viewer.read_exact(&mut shown).await.unwrap();
            assert!(shown == part);
        }
    }
}
