//! The launcher as the first process of its container: it reaps what others leave behind, but not its own children.

use std::io;
use std::sync::LazyLock;

use kubevirt_host::orphans::{Orphans, Owned, Starting};
use kubevirt_qemu::process::{Launch, StartError};
use kubevirt_qemu::{Machine, Process};
use tokio::signal::unix::{SignalKind, signal};

/// All children of this process, which are its own wherever in it they were started.
static CHILDREN: LazyLock<Orphans> = LazyLock::new(Orphans::default);

/// Starts a QEMU whose end we will wait for. Keep what comes with it until then.
pub(crate) async fn start(launch: Launch) -> Result<(Process, Machine, Owned), StartError> {
    let starting = CHILDREN.starting();
    let (process, machine) = launch.start().await?;
    let owned = starting.started(process.pid());
    Ok((process, machine, owned))
}

/// For any other child: nothing is reaped while this is held, before it is told the number of the child.
#[expect(dead_code, reason = "for whatever else the launcher comes to start")]
pub(crate) fn starting() -> Starting {
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
