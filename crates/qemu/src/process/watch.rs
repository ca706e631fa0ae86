//! Watching over a running QEMU until its end.

use std::sync::Arc;
use std::time::Duration;

use tokio::process::Child;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::exit::Exit;
use super::tail::Tail;
use crate::machine::Machine;
use crate::race::{First, race};

/// How long the output of an ended process is read: a child of its own may still hold it open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A QEMU that we started. Dropping it kills QEMU; the end is always collected, so no zombie stays.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    tail: Arc<Tail>,
    exit: watch::Receiver<Option<Exit>>,
    /// A message kills, and so does the closing when this is dropped.
    kill: mpsc::Sender<()>,
}

impl Process {
    pub(crate) fn watch(mut child: Child) -> Self {
        let pid = child.id().unwrap_or_default();
        let tail = Arc::new(Tail::new());
        let (kill, mut killed) = mpsc::channel(1);
        let (tell, exit) = watch::channel(None);

        let mut reading = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            let tail = tail.clone();
            reading.push(tokio::spawn(async move { tail.keep(stdout).await }));
        }
        if let Some(stderr) = child.stderr.take() {
            let tail = tail.clone();
            reading.push(tokio::spawn(async move { tail.keep(stderr).await }));
        }

        let kept = tail.clone();
        tokio::spawn(async move {
            let status = match race(child.wait(), killed.recv()).await {
                First::A(status) => status,
                First::B(_) => {
                    // It fails only if the process has ended meanwhile.
                    let _ = child.start_kill();
                    child.wait().await
                }
            };
            let until = Instant::now() + LAST_WORDS;
            for mut output in reading {
                if timeout_at(until, &mut output).await.is_err() {
                    output.abort();
                }
            }
            tell.send_replace(Some(Exit::new(status.ok(), kept.lines())));
        });
        Self { pid, tail, exit, kill }
    }

    /// Its process id; valid until it has ended.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The last lines of its output so far.
    pub fn output(&self) -> Vec<String> {
        self.tail.lines()
    }

    /// Follows its output line by line from now on.
    pub fn follow_output(&self) -> broadcast::Receiver<String> {
        self.tail.follow()
    }

    /// How it ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.exit.borrow().clone()
    }

    /// Waits for its end.
    pub async fn exited(&self) -> Exit {
        let mut exit = self.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.clone().unwrap_or_else(|| Exit::new(None, self.output())),
            // Only a runtime that shuts down ends the watch without a word.
            Err(_) => Exit::new(None, self.output()),
        }
    }

    /// Kills it without waiting for its end.
    pub fn kill(&self) {
        // Full: it is being killed already. Closed: it has ended.
        let _ = self.kill.try_send(());
    }

    /// Kills it and waits for its end.
    pub async fn end(&self) -> Exit {
        self.kill();
        self.exited().await
    }

    /// Asks QEMU to leave, which also flushes its disks, and kills it if it has not left within the grace.
    pub async fn quit(&self, machine: &Machine, grace: Duration) -> Exit {
        let leave = async {
            // Whatever the answer, its leaving is what counts.
            let _ = machine.quit().await;
            self.exited().await
        };
        match timeout(grace, leave).await {
            Ok(exit) => exit,
            Err(_) => self.end().await,
        }
    }
}
