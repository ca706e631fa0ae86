//! The small programs that pods and backup tools run by name beside the launcher.

mod ask;
pub mod freezer;
pub mod probe;
pub mod tail;

use std::fmt::Display;
use std::process::ExitCode;

/// Where the launcher of this pod listens.
const LAUNCHER: &str = "/var/run/kubevirt/sockets/launcher-sock";

/// Says why a program failed, in words: kubelets and backup tools show them to their users.
fn fail(program: &str, error: impl Display) -> ExitCode {
    eprintln!("{program}: {error}");
    ExitCode::FAILURE
}
