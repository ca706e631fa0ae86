//! `virt-freezer`: holds the guest's file systems still while a backup tool copies its volumes.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgAction, Parser};
use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::cmd::{EmptyRequest, FreezeRequest, Vmi, VmiRequest};
use kubevirt_launcher_rpc::report::State;

use super::ask::{AskError, Launcher, accepted, ask, within};

/// Freezes or thaws the file systems of the guest.
///
/// A guest that does not run, or has no agent, has nothing to hold still: that is a success.
#[derive(Debug, Parser)]
#[command(name = "virt-freezer", args_override_self = true)]
pub struct Arguments {
    /// Hold the file systems still.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false,
          action = ArgAction::Set)]
    freeze: bool,
    /// Let the file systems go on.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false,
          action = ArgAction::Set)]
    unfreeze: bool,
    /// Name of the VirtualMachineInstance.
    #[arg(long, default_value = "")]
    name: String,
    /// Namespace of the VirtualMachineInstance.
    #[arg(long, default_value = "")]
    namespace: String,
    /// Seconds after which the file systems go on by themselves.
    #[arg(long = "unfreezeTimeoutSeconds", default_value_t = 300)]
    unfreeze_timeout_seconds: i32,
    /// Socket of the launcher.
    #[arg(long, default_value = super::LAUNCHER)]
    socket: PathBuf,
}

/// How long freezing may take: Windows needs up to a minute for it.
const FREEZING: Duration = Duration::from_secs(60);

/// How long any other answer may take.
const ANSWER: Duration = Duration::from_secs(20);

/// Freezes or thaws.
pub fn run(arguments: &Arguments) -> ExitCode {
    let outcome = check(arguments).and_then(|()| {
        let answer = ask(&arguments.socket, async |launcher| freeze_or_thaw(launcher, arguments).await);
        answer.map_err(|error| error.to_string())
    });
    match outcome {
        Ok(words) => {
            eprintln!("virt-freezer: {words}");
            ExitCode::SUCCESS
        }
        Err(error) => super::fail("virt-freezer", error),
    }
}

fn check(arguments: &Arguments) -> Result<(), String> {
    if !arguments.freeze && !arguments.unfreeze {
        return Err("give --freeze or --unfreeze".into());
    }
    if arguments.name.is_empty() || arguments.namespace.is_empty() {
        return Err("give both --name and --namespace".into());
    }
    Ok(())
}

async fn freeze_or_thaw(launcher: &mut Launcher, arguments: &Arguments) -> Result<&'static str, AskError> {
    let answer = within(ANSWER, launcher.get_domain(EmptyRequest {})).await?;
    accepted(answer.response)?;
    if let Some(reason) = nothing_to_do(&answer.domain)? {
        return Ok(reason);
    }
    let vmi = Vmi { vmi_json: vmi(&arguments.namespace, &arguments.name) };
    if !arguments.freeze {
        thaw(launcher, vmi).await?;
        return Ok("the file systems go on");
    }
    let unfreeze_timeout_seconds = arguments.unfreeze_timeout_seconds;
    let request = FreezeRequest { vmi: Some(vmi.clone()), unfreeze_timeout_seconds };
    let frozen = within(FREEZING, launcher.freeze_virtual_machine(request)).await;
    if let Err(error) = frozen.and_then(|answer| accepted(Some(answer))) {
        // Half of them may stand still. Its failure would tell nothing new.
        let _ = thaw(launcher, vmi).await;
        return Err(error);
    }
    Ok("the file systems stand still")
}

async fn thaw(launcher: &mut Launcher, vmi: Vmi) -> Result<(), AskError> {
    let request = VmiRequest { vmi: Some(vmi), ..VmiRequest::default() };
    accepted(Some(within(ANSWER, launcher.unfreeze_virtual_machine(request)).await?))
}

/// Why there is nothing to freeze or thaw, going by the domain as the launcher tells it.
fn nothing_to_do(domain: &str) -> Result<Option<&'static str>, AskError> {
    if domain.is_empty() {
        return Ok(Some("the virtual machine does not run: nothing to do"));
    }
    let status = serde_json::from_str::<DomainReport>(domain)?.status;
    Ok(match (status.status, status.agent_connected) {
        (State::Running, true) => None,
        (State::Running, false) => Some("the guest agent is not connected: nothing to do"),
        _ => Some("the virtual machine does not run: nothing to do"),
    })
}

fn vmi(namespace: &str, name: &str) -> Vec<u8> {
    let vmi = serde_json::json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "domain": { "devices": {} } },
    });
    vmi.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_lines_of_backup_tools_are_understood() {
        let cases = [
            ("--freeze --name web --namespace default", true),
            ("--unfreeze --name web --namespace default --unfreezeTimeoutSeconds 60", true),
            ("--name web --namespace default", false),
            ("--freeze --name web", false),
        ];
        for (line, fine) in cases {
            let arguments =
                Arguments::parse_from(std::iter::once("virt-freezer").chain(line.split_whitespace()));
            assert_eq!(check(&arguments).is_ok(), fine, "{line}");
        }
    }

    #[test]
    fn only_a_running_guest_with_an_agent_is_frozen() {
        let cases = [
            ("", false),
            (r#"{"status":{"status":"Running","agentConnected":true}}"#, true),
            (r#"{"status":{"status":"Running","agentConnected":false}}"#, false),
            (r#"{"status":{"status":"Paused","agentConnected":true}}"#, false),
            (r#"{"status":{"status":"Shutoff"}}"#, false),
        ];
        for (domain, freezes) in cases {
            assert_eq!(nothing_to_do(domain).unwrap().is_none(), freezes, "{domain}");
        }
        assert!(matches!(nothing_to_do("{"), Err(AskError::Unreadable(_))));
    }

    #[test]
    fn the_launcher_can_read_what_it_is_sent() {
        let vmi: kubevirt_api::vmi::VirtualMachineInstance =
            serde_json::from_slice(&vmi("default", "web")).unwrap();
        assert_eq!(vmi.metadata.name.as_deref(), Some("web"));
    }
}
