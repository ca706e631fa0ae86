//! What the launcher has under way with the guest.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::launcher::lock;

/// What is under way with the guest.
#[derive(Debug, Default)]
pub(crate) struct Guest {
    /// Asks the agent from time to time while it is connected.
    pub(crate) follower: OneTask,
    /// Thaws the guest's file systems if nobody else does.
    pub(crate) thaw: OneTask,
    /// File systems are frozen or thawed by one command at a time.
    pub(crate) freezing: tokio::sync::Mutex<()>,
    /// The last measurement of how fast the guest writes to its memory: when it ended, and the result.
    pub(crate) dirty_rate: tokio::sync::Mutex<Option<(Instant, i64)>>,
    /// Backups begin one at a time.
    pub(crate) backing_up: tokio::sync::Mutex<()>,
    /// The backup that runs is to end.
    pub(crate) end_backup: Arc<Notify>,
}

/// A task of which there is at most one.
#[derive(Debug, Default)]
pub(crate) struct OneTask(Mutex<Option<AbortHandle>>);

impl OneTask {
    /// Takes in a new one and ends the one before.
    pub(crate) fn begin(&self, task: AbortHandle) {
        if let Some(before) = lock(&self.0).replace(task) {
            before.abort();
        }
    }

    /// Ends it, if there is one.
    pub(crate) fn end(&self) {
        if let Some(task) = lock(&self.0).take() {
            task.abort();
        }
    }
}
