//! `console`: the serial port of a machine in this terminal.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::{condition, names::conditions};
use kubevirt_streams::{Stream, Upgraded};
use tokio::time::Instant;

use super::pause::is_halted;
use crate::connect::{Connect, Session};
use crate::failure::Failure;
use crate::farewell;
use crate::output::note;
use crate::subresource::{Error, Kind};
use crate::terminal::{Ended, Raw, Window, converse, told_to_end};

/// How often an instance that does not run yet is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// Connect to the console of a virtual machine instance.
///
/// Ctrl+] leaves it. A serial line does not know how large your window is; the command that tells the guest is printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Connect to the console of 'myvmi':
  {program} console myvmi

  # Wait no longer than a minute for it to run:
  {program} console --timeout=1 myvmi")]
pub struct Arguments {
    /// The name of the instance
    #[arg(value_name = "VMI")]
    name: String,
    /// Minutes to wait for the instance to run; 0 does not wait
    #[arg(long, value_name = "MINUTES", default_value_t = 5)]
    timeout: u32,
}

impl Arguments {
    /// Waits for the machine if need be, then talks until one side has enough.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let session = connect.session().await?;
        let stream = self.wait(session).await?;
        warn_if_paused(session, &self.name).await;
        note!("Successfully connected to {} console. Press Ctrl+] or Ctrl+5 to exit console.", self.name);
        if let Some(command) = Window::of_user().and_then(Window::command) {
            note!("To fit the guest to your window, type this in it: {command}");
        }
        let raw = Raw::enter().context("the terminal cannot be made raw")?;
        let (ended, stream) = tokio::select! {
            result = converse(tokio::io::stdin(), tokio::io::stdout(), stream) => (Some(result.0), Some(result.1)),
            () = told_to_end() => (None, None),
        };
        drop(raw);
        if std::io::stdin().is_terminal() {
            note!("");
        }
        let reason = stream.as_ref().and_then(Stream::farewell);
        match ended {
            None | Some(Ok(Ended::ByUser | Ended::InputOver | Ended::Unread)) => Ok(ExitCode::SUCCESS),
            Some(Ok(Ended::ByServer)) => farewell::tell(session, &self.name, reason).await,
            Some(Err(error)) => farewell::tell(session, &self.name, Some(&error.to_string())).await,
        }
    }

    async fn wait(&self, session: &Session) -> Result<Stream<Upgraded>> {
        let limit = Duration::from_secs(60 * u64::from(self.timeout));
        let end = Instant::now() + limit;
        let mut told = false;
        loop {
            let error = match session.stream(Kind::Vmi, &session.namespace, &self.name, "console", &[]).await
            {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            let vm = match error.is_not_found() {
                true => session.api::<VirtualMachine>(None).get_opt(&self.name).await.ok().flatten(),
                false => None,
            };
            match outlook(&error, vm.as_ref()) {
                Outlook::Wait if limit.is_zero() => return Err(error.into()),
                Outlook::Wait if Instant::now() >= end => {
                    let what = "Timeout trying to connect to the virtual machine instance";
                    let next = format!("`virtctl why {}` tells what it waits for.", self.name);
                    return Err(Failure::new(what, next).into());
                }
                Outlook::Wait => {
                    if !std::mem::replace(&mut told, true) && std::io::stderr().is_terminal() {
                        note!("Waiting for {} to run. Press Ctrl+C to give up.", self.name);
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                Outlook::Off => {
                    let what = format!("virtual machine {} is not set to run", self.name);
                    return Err(
                        Failure::new(what, format!("Start it with `virtctl start {}`.", self.name)).into()
                    );
                }
                Outlook::Never => return Err(error.into()),
            }
        }
    }
}

/// What to expect after a refusal.
#[derive(Debug, Eq, PartialEq)]
enum Outlook {
    /// It may work soon.
    Wait,
    /// The machine is off.
    Off,
    /// It will not work.
    Never,
}

fn outlook(error: &Error, vm: Option<&VirtualMachine>) -> Outlook {
    let Some(refusal) = error.refusal() else { return Outlook::Never };
    match (refusal.code, vm) {
        (400, _) if refusal.message.contains("not running") => Outlook::Wait,
        (404, Some(vm)) if is_halted(vm) => Outlook::Off,
        (404, Some(_)) => Outlook::Wait,
        _ => Outlook::Never,
    }
}

/// Says on standard error that a paused guest does not answer.
pub async fn warn_if_paused(session: &Session, name: &str) {
    let Ok(vmi) = session.api::<VirtualMachineInstance>(None).get(name).await else { return };
    let conditions = vmi.status.as_ref().and_then(|status| status.conditions.as_deref());
    if condition::find(conditions, conditions::vmi::PAUSED).is_some_and(condition::Condition::is_true) {
        note!("Warning: {name} is paused. Console will be active after unpause.");
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_api::vm::RunStrategy;

    use super::*;
    use crate::failure::Refusal;

    #[test]
    fn only_what_may_come_is_waited_for() {
        let refused = |code, message: &str| {
            Error::Refused(Refusal { code, reason: String::new(), message: message.to_owned() })
        };
        let vm = |strategy| {
            let mut vm = VirtualMachine::new("a", Default::default());
            vm.spec.run_strategy = Some(strategy);
            vm
        };
        let (on, off) = (vm(RunStrategy::Always), vm(RunStrategy::Halted));
        for (error, vm, expected) in [
            (refused(400, "VMI is not running"), None, Outlook::Wait),
            (refused(400, "No serial consoles are present."), None, Outlook::Never),
            (refused(404, "not found"), None, Outlook::Never),
            (refused(404, "not found"), Some(&on), Outlook::Wait),
            (refused(404, "not found"), Some(&off), Outlook::Off),
            (refused(403, "forbidden"), None, Outlook::Never),
            (refused(409, "VMI is in failed status"), None, Outlook::Never),
        ] {
            assert_eq!(outlook(&error, vm), expected, "{error}");
        }
    }
}
