//! Following a file that grows, is emptied or is replaced, without looking at it while nothing happens.

mod copy;
mod shorten;
mod source;
#[cfg(test)]
mod tests;
mod watch;

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use source::Source;
use watch::Watch;

/// The stack of a thread that only copies.
const STACK: usize = 128 << 10;

/// How long the rest may take at the end, if nobody takes what is written.
const REST: Duration = Duration::from_secs(3);

/// How large a file that is ours may become.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Past this it is emptied as soon as nobody misses anything by it.
    pub(crate) soft: u64,
    /// Past this it is emptied in any case.
    pub(crate) hard: u64,
}

/// A file that is being followed, on a thread of its own: who reads what we write may keep us waiting. It ends when
/// this is dropped.
#[derive(Debug)]
pub(crate) struct Following {
    stop: PipeWriter,
    end: oneshot::Receiver<io::Result<()>>,
}

impl Following {
    /// Copies a file from its beginning; past its bounds, if it has any, it is emptied.
    pub(crate) fn copy(path: &Path, output: OwnedFd, bounds: Option<Bounds>) -> io::Result<Self> {
        let source = Source::new(path, bounds.is_some());
        let watch = Watch::new(path)?;
        Self::begin(move |stop| copy::run(source, watch, &output, stop, bounds))
    }

    /// Empties a file past its bounds; somebody else copies it.
    pub(crate) fn shorten(path: &Path, bounds: Bounds) -> io::Result<Self> {
        let path = path.to_owned();
        let watch = Watch::new(&path)?;
        Self::begin(move |stop| shorten::run(&path, watch, stop, bounds))
    }

    fn begin(work: impl FnOnce(&PipeReader) -> io::Result<()> + Send + 'static) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let (tell, end) = oneshot::channel();
        let thread = std::thread::Builder::new().name("follow".into()).stack_size(STACK);
        thread.spawn(move || {
            // Nobody listens: then nobody wants to know.
            let _ = tell.send(work(&stopped));
        })?;
        Ok(Self { stop, end })
    }

    /// Waits until it ends, which it does by itself only if something fails.
    pub(crate) async fn ended(&mut self) -> io::Result<()> {
        (&mut self.end).await.unwrap_or(Ok(()))
    }

    /// Copies what is left and ends.
    pub(crate) async fn finish(self) -> io::Result<()> {
        drop(self.stop);
        match timeout(REST, self.end).await {
            Ok(end) => end.unwrap_or(Ok(())),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}
