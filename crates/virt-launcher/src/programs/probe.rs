//! `virt-probe`: whether the guest is well, for the probes of its pod.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgAction, Parser};
use kubevirt_launcher_rpc::cmd::{ExecRequest, GuestPingRequest};

use super::ask::{AskError, Launcher, accepted, ask, within};

/// Runs a command in the guest, or asks whether the guest agent answers.
///
/// The exit code is that of the command; 1 if it could not be run, or if the agent does not answer.
#[derive(Debug, Parser)]
#[command(name = "virt-probe", args_override_self = true)]
pub struct Arguments {
    /// Socket of the launcher.
    #[arg(long, default_value = super::LAUNCHER)]
    socket: PathBuf,
    /// The machine, as `namespace_name`.
    #[arg(long = "domainName", default_value = "")]
    domain_name: String,
    /// Command to run in the guest.
    #[arg(long, default_value = "")]
    command: String,
    /// Seconds that the guest may take.
    #[arg(long = "timeoutSeconds", default_value_t = 1)]
    timeout_seconds: i32,
    /// Only ask whether the guest agent answers.
    #[arg(long = "guestAgentPing", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, action = ArgAction::Set)]
    guest_agent_ping: bool,
    /// Arguments of the command.
    arguments: Vec<String>,
    /// Accepted for old command lines; there is no profile to store.
    #[arg(long = "memProfile", hide = true)]
    _profile: Option<PathBuf>,
    /// Accepted for old command lines; there is nothing more to say.
    #[arg(short = 'v', long = "v", hide = true)]
    _verbosity: Option<u32>,
}

/// Time on top of what the guest may take: the launcher should be the one that gives up.
const MARGIN: Duration = Duration::from_secs(5);

/// Asks the guest.
pub fn run(arguments: &Arguments) -> ExitCode {
    if !arguments.guest_agent_ping && arguments.command.is_empty() {
        return super::fail("virt-probe", "give a --command to run in the guest, or --guestAgentPing");
    }
    match ask(&arguments.socket, async |launcher| probe(launcher, arguments).await) {
        Ok(code) => ExitCode::from(code),
        Err(error) => super::fail("virt-probe", error),
    }
}

async fn probe(launcher: &mut Launcher, arguments: &Arguments) -> Result<u8, AskError> {
    let timeout_seconds = arguments.timeout_seconds;
    let limit = Duration::from_secs(u64::try_from(timeout_seconds).unwrap_or(0)) + MARGIN;
    let domain_name = arguments.domain_name.clone();
    if arguments.guest_agent_ping {
        let request = GuestPingRequest { domain_name, timeout_seconds };
        accepted(within(limit, launcher.guest_ping(request)).await?.response)?;
        return Ok(0);
    }
    let (command, args) = (arguments.command.clone(), arguments.arguments.clone());
    let request = ExecRequest { domain_name, command, args, timeout_seconds };
    let answer = within(limit, launcher.exec(request)).await?;
    if !answer.std_out.is_empty() {
        println!("{}", answer.std_out);
    }
    accepted(answer.response)?;
    Ok(exit_code(answer.exit_code))
}

/// What the system keeps of an exit code. A failure never becomes a success by that.
fn exit_code(code: i32) -> u8 {
    match u8::try_from(code & 0xff).unwrap_or(1) {
        0 if code != 0 => 1,
        code => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Arguments {
        Arguments::parse_from(line.split_whitespace())
    }

    #[test]
    fn the_command_lines_of_pods_are_understood() {
        let exec = parse(
            "virt-probe --domainName default_web --timeoutSeconds 5 --command cat -- -n /etc/os-release",
        );
        assert_eq!((exec.command.as_str(), exec.timeout_seconds), ("cat", 5));
        assert_eq!(exec.arguments, ["-n", "/etc/os-release"]);
        assert!(!exec.guest_agent_ping);
        let ping = parse("virt-probe --domainName default_web --timeoutSeconds 1 --guestAgentPing");
        assert!(ping.guest_agent_ping && ping.arguments.is_empty());
        assert!(!parse("virt-probe --guestAgentPing=false --command true").guest_agent_ping);
        assert_eq!(ping.socket, PathBuf::from(crate::programs::LAUNCHER));
    }

    #[test]
    fn a_failure_stays_one() {
        for (code, expected) in [(0, 0), (1, 1), (127, 127), (-1, 255), (256, 1)] {
            assert_eq!(exit_code(code), expected, "{code}");
        }
    }
}
