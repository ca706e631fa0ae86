//! Running a program in the guest.

use std::time::Duration;

use kubevirt_launcher_rpc::cmd::ExecRequest;
use kubevirt_qemu::agent::{DEFAULT_PATIENCE, Exec, ExecStatus};

use super::{seconds, within};
use crate::error::CommandError;
use crate::launcher::Launcher;

/// How long a program may run if nobody says.
const PATIENCE: Duration = Duration::from_secs(10);

impl Launcher {
    /// Runs a program in the guest: its exit code, and what it wrote.
    pub async fn exec(&self, request: ExecRequest) -> Result<(i32, String), CommandError> {
        let agent = self.connected_agent()?;
        let limit = seconds(request.timeout_seconds, PATIENCE);
        let program = Exec { path: request.command, arguments: request.args, ..Exec::default() };
        let status = within(limit + DEFAULT_PATIENCE, "guest-exec", agent.exec(&program, limit)).await?;
        Ok((exit_code(&status), String::from_utf8_lossy(&status.stdout).into_owned()))
    }
}

/// A program that a signal ended has the code that a shell would tell.
fn exit_code(status: &ExecStatus) -> i32 {
    let code = status.code.or_else(|| status.signal.map(|signal| 128 + signal));
    code.and_then(|code| i32::try_from(code).ok()).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        let status = |code, signal| ExecStatus { exited: true, code, signal, ..ExecStatus::default() };
        assert_eq!(exit_code(&status(Some(0), None)), 0);
        assert_eq!(exit_code(&status(Some(3), None)), 3);
        assert_eq!(exit_code(&status(None, Some(9))), 137);
        assert_eq!(exit_code(&status(None, None)), -1);
    }
}
