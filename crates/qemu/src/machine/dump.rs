//! The guest's memory in a file.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use super::{Machine, words};
use crate::qmp::{Event, Events, NoArguments, QmpError};

words! {
    /// The format of a dump.
    DumpFormat {
        Elf = "elf",
        KdumpZlib = "kdump-zlib",
        KdumpLzo = "kdump-lzo",
        KdumpSnappy = "kdump-snappy",
        WindowsDmp = "win-dmp",
    }
}

/// How far a dump is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DumpProgress {
    status: String,
    /// Bytes written.
    pub completed: u64,
    /// Bytes to write.
    pub total: u64,
}

impl DumpProgress {
    /// Whether it is still at work.
    pub fn is_active(&self) -> bool {
        self.status == "active"
    }
}

/// Why there is no dump.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// It failed, most often for want of space.
    #[error("the memory dump failed: {reason}")]
    Failed {
        /// QEMU's own words.
        reason: String,
    },
    /// The monitor failed.
    #[error(transparent)]
    Qmp(#[from] QmpError),
}

/// A dump at work. It cannot be cancelled, and the guest stands still meanwhile.
#[derive(Debug)]
pub struct Dump {
    machine: Machine,
    events: Events,
    over: bool,
}

impl Machine {
    /// Starts to write the guest's memory to `file:PATH` or `fd:NAME`.
    pub async fn dump_memory(&self, to: &str, format: &DumpFormat) -> Result<Dump, QmpError> {
        let events = self.events();
        let mut arguments = json!({ "paging": false, "protocol": to, "detach": true });
        if *format != DumpFormat::Elf {
            arguments["format"] = json!(format);
        }
        self.qmp.run("dump-guest-memory", arguments).await?;
        Ok(Dump { machine: self.clone(), events, over: false })
    }

    /// How far the last dump is.
    pub async fn dump_progress(&self) -> Result<DumpProgress, QmpError> {
        self.qmp.call("query-dump", NoArguments {}).await
    }
}

impl Dump {
    /// Waits for its end, but no longer than this, and tells how far it is.
    pub async fn progress(&mut self, at_least_every: Duration) -> Result<DumpProgress, DumpError> {
        if let Ok(end) = timeout(at_least_every, self.end()).await {
            end?;
        }
        Ok(self.machine.dump_progress().await?)
    }

    /// Waits for its end.
    pub async fn finish(mut self) -> Result<(), DumpError> {
        if self.over { Ok(()) } else { self.end().await }
    }

    async fn end(&mut self) -> Result<(), DumpError> {
        while let Some(happened) = self.events.next().await {
            match &happened.event {
                Event::DumpCompleted { error: None, .. } => {
                    self.over = true;
                    return Ok(());
                }
                Event::DumpCompleted { error: Some(reason), .. } => {
                    return Err(DumpError::Failed { reason: reason.clone() });
                }
                Event::Missed { .. } => {
                    let told = self.machine.dump_progress().await?;
                    match told.status.as_str() {
                        "completed" => {
                            self.over = true;
                            return Ok(());
                        }
                        "failed" => return Err(DumpError::Failed { reason: "unknown".to_owned() }),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        Err(QmpError::Gone(self.machine.qmp.gone().await).into())
    }
}
