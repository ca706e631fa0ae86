//! How fast the guest writes to its memory.

use std::time::Duration;

use kubevirt_qemu::Machine;
use kubevirt_qemu::qmp::QmpError;
use tokio::time::{Instant, sleep};

use crate::error::CommandError;
use crate::launcher::Launcher;

/// Seconds of a measurement.
const SECONDS: u32 = 1;

/// How long a result is good enough for whoever asks next.
const FRESH: Duration = Duration::from_secs(3);

/// How often, and with which pause, a measurement that should be over is looked at.
const LOOKS: (u32, Duration) = (50, Duration::from_millis(100));

impl Launcher {
    /// Megabytes a second that the guest writes to its memory, over a second.
    pub async fn dirty_rate(&self) -> Result<i64, CommandError> {
        let running = self.running()?;
        // Whoever comes meanwhile waits and takes the same result.
        let mut last = self.guest.dirty_rate.lock().await;
        if let Some((_, rate)) = last.filter(|(when, _)| when.elapsed() < FRESH) {
            return Ok(rate);
        }
        let rate = measure(&running.machine).await?;
        *last = Some((Instant::now(), rate));
        Ok(rate)
    }
}

async fn measure(machine: &Machine) -> Result<i64, CommandError> {
    match machine.measure_dirty_rate(SECONDS).await {
        // A migration measures too; its result is as good.
        Err(QmpError::Refused { desc, .. }) if desc.contains("progress") => {}
        begun => begun?,
    }
    sleep(Duration::from_secs(u64::from(SECONDS))).await;
    for _ in 0..LOOKS.0 {
        if let Some(rate) = machine.dirty_rate().await?.mebibytes {
            return Ok(i64::try_from(rate).unwrap_or(i64::MAX));
        }
        sleep(LOOKS.1).await;
    }
    Err(CommandError::Refused("QEMU does not come to an end with measuring the dirty rate".into()))
}
