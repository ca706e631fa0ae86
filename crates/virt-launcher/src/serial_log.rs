//! The guest's serial console in the log of its pod.
//!
//! QEMU appends all that the guest prints to a file, which never makes the guest wait. We copy it to standard output,
//! where our own log is not, and empty the file now and then. A VM can ask for a container of its own for it; then
//! that one copies, and we only empty.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use crate::follow::{Bounds, Following};
use crate::launcher::lock;
use crate::running::Running;

/// How large the file may become.
const BOUNDS: Bounds = Bounds { soft: 2 << 20, hard: 8 << 20 };

/// Follows the file of the console.
pub(crate) fn follow(path: &Path, in_container: bool) -> io::Result<Following> {
    if in_container {
        return Following::shorten(path, BOUNDS);
    }
    Following::copy(path, io::stdout().as_fd().try_clone_to_owned()?, Some(BOUNDS))
}

impl Running {
    /// Begins to log what the guest prints, if the VMI asks for that.
    pub(crate) fn log_console(&self, in_container: bool) {
        let Some(file) = self.domain().devices.console.and_then(|console| console.log) else { return };
        match follow(Path::new(&file), in_container) {
            Ok(following) => *lock(&self.console) = Some(following),
            Err(error) => tracing::warn!(%error, file, "the serial console is not logged"),
        }
    }

    /// Logs the last that the guest printed.
    pub(crate) async fn finish_console_log(&self) {
        let following = lock(&self.console).take();
        if let Some(following) = following
            && let Err(error) = following.finish().await
        {
            tracing::warn!(%error, "the serial console is not logged to its end");
        }
    }
}
