//! What connects two nodes, and may fail.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::sleep;

/// The length of a frame's header in HTTP/2, and the kind of frame that carries an answer.
const HEADER: usize = 9;
const DATA: u8 = 0;

/// Passes connections on, but hangs up once, instead of the given answer from the other side, counted from one.
/// Whether anybody is let through afterwards is up to `recovers`.
pub(crate) fn hang_up_at_answer(listen: PathBuf, to: PathBuf, answer: u32, recovers: bool) {
    let listener = UnixListener::bind(listen).unwrap();
    let left = Arc::new(AtomicU32::new(answer));
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            if left.load(Ordering::SeqCst) == 0 && !recovers {
                continue;
            }
            let far = UnixStream::connect(&to).await.unwrap();
            let (left, (near_in, near_out), (far_in, far_out)) =
                (left.clone(), near.into_split(), far.into_split());
            tokio::spawn(async move {
                // The end of either direction is the end of both.
                tokio::select! {
                    () = copy(near_in, far_out) => {}
                    () = answers(far_in, near_out, &left) => {}
                }
            });
        }
    });
}

/// A connection that is slow, and breaks when it is told to.
pub(crate) struct Slow(watch::Sender<()>);

impl Slow {
    /// Bytes that it passes on at once, and the pause after them.
    const SIP: usize = 16 << 10;
    const PAUSE: Duration = Duration::from_millis(100);

    /// Passes connections on.
    pub(crate) fn between(listen: PathBuf, to: PathBuf) -> Self {
        let listener = UnixListener::bind(listen).unwrap();
        let (cut, _) = watch::channel(());
        let switch = cut.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = UnixStream::connect(&to).await else { continue };
                let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                let mut broken = switch.subscribe();
                tokio::spawn(async move {
                    tokio::select! {
                        () = Self::sip(near_in, far_out) => {}
                        () = copy(far_in, near_out) => {}
                        _ = broken.changed() => {}
                    }
                });
            }
        });
        Self(cut)
    }

    /// Breaks all connections; new ones can be made.
    pub(crate) fn cut(&self) {
        self.0.send_replace(());
    }

    async fn sip(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut bytes = vec![0; Self::SIP];
        while let Ok(count) = from.read(&mut bytes).await {
            if count == 0 || to.write_all(&bytes[..count]).await.is_err() {
                return;
            }
            // This is how slow it is; nothing is waited for.
            sleep(Self::PAUSE).await;
        }
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let _ = tokio::io::copy(&mut from, &mut to).await;
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, left: &AtomicU32) {
    loop {
        let mut frame = vec![0; HEADER];
        if from.read_exact(&mut frame).await.is_err() {
            return;
        }
        let length = u32::from_be_bytes([0, frame[0], frame[1], frame[2]]) as usize;
        let is_answer = frame[3] == DATA && left.load(Ordering::SeqCst) > 0;
        frame.resize(HEADER + length, 0);
        if from.read_exact(&mut frame[HEADER..]).await.is_err() {
            return;
        }
        if is_answer && left.fetch_sub(1, Ordering::SeqCst) == 1 {
            return;
        }
        if to.write_all(&frame).await.is_err() {
            return;
        }
    }
}
