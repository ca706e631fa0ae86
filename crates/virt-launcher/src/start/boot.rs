//! Starting QEMU with a domain.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use kubevirt_domain::{Domain, qemu};
use kubevirt_launcher_rpc::report::{Reason, State};
use kubevirt_qemu::process::Launch;
use kubevirt_qemu::qmp::QmpError;

use super::{companions, files, pins};
use crate::error::CommandError;
use crate::host;
use crate::launcher::{Launcher, Stage};
use crate::orphans;
use crate::running::Running;

/// When a machine has started, its launcher has done what it does only once.
const SETTLED: Duration = Duration::from_secs(1);

/// How a machine comes into being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It starts.
    Fresh,
    /// It arrives from another host.
    Incoming,
}

impl Launcher {
    /// Starts QEMU with its CPUs stopped and begins to watch it.
    pub(crate) async fn boot(
        self: &Arc<Self>,
        domain: Domain,
        way: Way,
    ) -> Result<Arc<Running>, CommandError> {
        files::prepare(&domain, way).await?;
        let companions = companions::start(&domain, way).await?;
        files::await_sockets(&domain).await?;
        let arguments = match way {
            Way::Fresh => qemu::arguments(&domain),
            Way::Incoming => qemu::incoming_arguments(&domain),
        };
        let launch = Launch {
            program: host::program(domain.machine.architecture),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: environment(&domain),
            ..Launch::default()
        };
        let (process, machine) = orphans::start(launch).await?;
        let events = machine.events();
        let running = Arc::new(Running::new(process, machine, domain, companions));
        running.log_console(self.arguments.serial_log_container);
        if let Err(error) = self.make_ready(&running, way).await {
            running.process.end().await;
            return Err(error);
        }
        self.board.change(|report| {
            report.spec = Some(running.domain());
            let status = &mut report.status;
            let reason = if way == Way::Incoming { Reason::Migration } else { Reason::StartingUp };
            (status.status, status.reason) = (State::Paused, reason);
            status.message.clear();
            let accelerator = if running.domain().is_kvm() { "kvm" } else { "tcg" };
            status.accelerator = accelerator.to_owned();
        });
        self.set_running(Some(running.clone()));
        self.set_stage(Stage::Running);
        tokio::spawn(self.clone().watch(running.clone(), events));
        tokio::spawn(settle());
        Ok(running)
    }

    async fn make_ready(&self, running: &Running, way: Way) -> Result<(), CommandError> {
        pins::pin(running).await?;
        if way == Way::Fresh {
            for command in qemu::start_commands(&running.domain()) {
                let told: Result<(), QmpError> =
                    running.machine.qmp().run(command.execute, command.arguments).await;
                told?;
            }
        }
        Ok(())
    }
}

/// From now on the launcher mostly waits: what only its start needed need not stay in memory.
async fn settle() {
    tokio::time::sleep(SETTLED).await;
    if let Err(error) = kubevirt_host::code::let_go() {
        tracing::debug!(%error, "the code of the start stays in memory");
    }
}

fn environment(domain: &Domain) -> Vec<(OsString, OsString)> {
    domain.environment.iter().map(|(name, value)| (name.into(), value.into())).collect()
}
