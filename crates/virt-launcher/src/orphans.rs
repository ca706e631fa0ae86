//! The launcher as the first process of its container: it reaps what others leave behind, but not its own children.

use std::io;
use std::sync::{LazyLock, Mutex};

use kubevirt_host::orphans::{Orphans, Owned, Starting};
use kubevirt_qemu::process::{Launch, StartError};
use kubevirt_qemu::{Machine, Process};
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};

use crate::launcher::lock;

/// All children of this process, wherever in it they were started.
static CHILDREN: LazyLock<Orphans> = LazyLock::new(Orphans::default);

/// Those that are our own. A launcher starts a handful in its life, so none is ever taken out.
static OWN: Mutex<Vec<Owned>> = Mutex::new(Vec::new());

/// Starts QEMU as a child of our own.
pub(crate) async fn start(launch: Launch) -> Result<(Process, Machine), StartError> {
    let starting = CHILDREN.starting();
    let (process, machine) = launch.start().await?;
    lock(&OWN).push(starting.started(process.pid()));
    Ok((process, machine))
}

/// Starts any other child of our own.
pub(crate) fn own(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let starting = CHILDREN.starting();
    let child = spawn()?;
    if let Some(process) = child.id() {
        lock(&OWN).push(starting.started(process));
    }
    Ok(child)
}

/// Nothing is reaped while this is held: for a child that is started and waited for in one go.
pub(crate) fn hold() -> Starting {
    CHILDREN.starting()
}

/// Begins to reap, if orphans come to us at all.
pub(crate) fn reap() -> io::Result<()> {
    if std::process::id() != 1 {
        return Ok(());
    }
    let mut ended = signal(SignalKind::child())?;
    tokio::spawn(async move {
        loop {
            match CHILDREN.reap() {
                Ok(orphans) => orphans.iter().for_each(|orphan| tracing::debug!(%orphan, "reaped an orphan")),
                Err(error) => tracing::warn!(%error, "orphans cannot be reaped"),
            }
            if ended.recv().await.is_none() {
                return;
            }
        }
    });
    Ok(())
}
