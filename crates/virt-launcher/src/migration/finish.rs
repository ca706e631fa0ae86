//! After the machine has come: what its new host and the guest must learn.

use std::sync::Arc;
use std::time::Duration;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::qemu::{self, names};
use kubevirt_launcher_rpc::cmd::VirtualMachineOptions;
use kubevirt_launcher_rpc::report::{Reason, State};
use kubevirt_qemu::machine::RunState;
use kubevirt_qemu::qmp::QmpError;

use crate::agent;
use crate::error::CommandError;
use crate::launcher::Launcher;
use crate::running::Running;

/// How a binding asks that its interface be unplugged and plugged, so that the guest renews its addresses.
const LINK_REFRESH: &str = "link-refresh";
/// How long a cable is out: some guests would not notice less.
const CABLE_OUT: Duration = Duration::from_millis(100);
/// The command that opens a drive; the machine has brought its trays as they are.
const OPEN_TRAY: &str = "blockdev-open-tray";

impl Launcher {
    /// Brings an arrived machine in line with its host.
    pub async fn finalize_migration(
        self: &Arc<Self>,
        _: &VirtualMachineInstance,
        options: &VirtualMachineOptions,
    ) -> Result<(), CommandError> {
        let _work = self.work.lock().await;
        let running = self.running()?;
        for card in running.domain().interfaces.iter().filter(|card| card.link_up) {
            let method = options.interface_migration.get(&card.name).map(|how| how.method.as_str());
            if method == Some(LINK_REFRESH) {
                let device = names::interface(&card.name);
                running.machine.set_link(&device, false).await?;
                tokio::time::sleep(CABLE_OUT).await;
                running.machine.set_link(&device, true).await?;
            }
        }
        running.machine.announce().await?;
        tokio::spawn(self.clone().set_clock(running));
        Ok(())
    }

    /// Sets the guest's clock, which stood still while the guest did.
    async fn set_clock(self: Arc<Self>, running: Arc<Running>) {
        let Some(agent) = self.agent(&running) else { return };
        let now = i64::try_from(jiff::Timestamp::now().as_nanosecond()).ok();
        match agent.set_time(now).await {
            Ok(()) => {
                // Otherwise the guest's hardware clock would make up for the time once more. Not every board has one.
                let _ = running.machine.forget_missed_ticks().await;
            }
            Err(error) => tracing::warn!(%error, "the guest's clock cannot be set"),
        }
    }

    /// Makes good what does not come with a machine.
    pub(super) async fn settle(self: Arc<Self>, running: Arc<Running>) {
        for command in qemu::start_commands(&running.domain()) {
            if command.execute == OPEN_TRAY {
                continue;
            }
            let told: Result<(), QmpError> =
                running.machine.qmp().run(command.execute, command.arguments).await;
            if let Err(error) = told {
                tracing::warn!(%error, command = command.execute, "a setting of the machine is lost");
            }
        }
        if let Ok(RunState::Suspended) = running.machine.status().await {
            self.board.change_status(|status| {
                (status.status, status.reason) = (State::Suspended, Reason::Unknown);
            });
        }
        // It opened its end on the source, so no event tells of it.
        match agent::is_open(&running).await {
            Ok(true) => self.agent_came_or_went(&running, true),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "it is not known whether the guest agent is there"),
        }
    }
}
