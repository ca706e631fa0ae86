//! Starting small QEMUs, and not waiting for ever.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kubevirt_qemu::process::{Launch, StartError};
use kubevirt_qemu::qmp::{Event, Events, Happened, Limits};
use kubevirt_qemu::{Machine, Process};

/// Hotplug by the ports themselves instead of ACPI: a port that no guest has powered on gives its device back
/// at once.
pub(crate) const NATIVE_HOTPLUG: [&str; 2] = ["-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"];

/// The longest that any step may take; generous, for busy machines.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn launch(arguments: &[&str]) -> Launch {
    let base = ["-accel", "tcg", "-nodefaults", "-display", "none", "-m", "64"];
    Launch {
        program: "qemu-system-x86_64".into(),
        arguments: base.iter().chain(arguments).map(OsString::from).collect(),
        limits: Limits { reply: PATIENCE, ..Limits::default() },
        ..Launch::default()
    }
}

pub(crate) async fn start(arguments: &[&str]) -> (Process, Machine) {
    try_start(arguments).await.unwrap()
}

pub(crate) async fn try_start(arguments: &[&str]) -> Result<(Process, Machine), StartError> {
    launch(arguments).start().await
}

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("it took too long")
}

/// Waits for the event that answers.
pub(crate) async fn wait_for<T>(events: &mut Events, answer: impl Fn(&Event) -> Option<T>) -> T {
    within(async {
        loop {
            let happened: std::sync::Arc<Happened> = events.next().await.expect("QEMU is gone");
            if let Some(answer) = answer(&happened.event) {
                return answer;
            }
        }
    })
    .await
}

/// A folder that goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("kubevirt-qemu-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// A raw disk filled with a byte.
    pub(crate) fn disk(&self, name: &str, bytes: usize, fill: u8) -> String {
        let path = self.join(name);
        std::fs::write(&path, vec![fill; bytes]).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
