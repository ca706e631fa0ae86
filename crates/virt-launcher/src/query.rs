//! Questions about the machine that need no guest agent.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::report::State;
use kubevirt_qemu::machine::ImageFormat;

use crate::error::CommandError;
use crate::launcher::Launcher;

/// How long a guest has to light its display up again.
const WAKING: Duration = Duration::from_millis(500);

impl Launcher {
    /// The latest report, once there is a machine to report on.
    pub fn domain_report(&self) -> Option<DomainReport> {
        let report = self.board.report();
        (report.spec.is_some() || report.status.status != State::NoState).then_some(report)
    }

    /// Name and version of the QEMU that runs the machine, or would.
    pub async fn qemu_version(&self) -> Result<String, CommandError> {
        if let Ok(running) = self.running() {
            return Ok(format!("QEMU {}", running.machine.qmp().version()));
        }
        let (major, minor) = self.host.qemu().await?.version;
        Ok(format!("QEMU {major}.{minor}"))
    }

    /// What the guest's display shows: the type of the image, and the image. The pointer may be moved first, which
    /// wakes a display that sleeps.
    pub async fn screenshot(&self, move_cursor: bool) -> Result<(String, Vec<u8>), CommandError> {
        let running = self.running()?;
        let domain = running.domain();
        if domain.devices.graphics.is_none() {
            let field = "spec.domain.devices.autoattachGraphicsDevice";
            return Err(CommandError::Unsupported(format!(
                "the virtual machine has no display ({field}: false)"
            )));
        }
        if move_cursor {
            running.machine.move_pointer().await?;
            tokio::time::sleep(WAKING).await;
        }
        // Several may want one at the same time.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("screenshot-{}.png", NEXT.fetch_add(1, Ordering::Relaxed));
        let file = PathBuf::from(self.layout.machine(&domain.identity.uid, &name));
        running.machine.screenshot(&file, ImageFormat::Png).await?;
        let image = tokio::fs::read(&file).await;
        // Left behind it would only take space.
        let _ = tokio::fs::remove_file(&file).await;
        let image = image.map_err(CommandError::io("cannot read the screenshot"))?;
        Ok(("image/png".to_owned(), image))
    }
}
