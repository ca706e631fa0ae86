//! Following what happens to QEMU, and drawing the conclusions.

use std::sync::Arc;
use std::time::Duration;

use kubevirt_api::names::events;
use kubevirt_launcher_rpc::report::{Reason, State};
use kubevirt_qemu::migration::MigrationStatus;
use kubevirt_qemu::qmp::{Event, Events};

use crate::agent;
use crate::board::{Notice, now};
use crate::launcher::{Launcher, Stage};
use crate::lifecycle::{self, Meaning};
use crate::running::Running;

/// How long QEMU may take to leave once the machine is off.
const LEAVE: Duration = Duration::from_secs(10);

impl Launcher {
    /// Follows a machine until its end.
    pub(crate) async fn watch(self: Arc<Self>, running: Arc<Running>, mut events: Events) {
        while let Some(happened) = events.next().await {
            tracing::debug!(event = ?happened.event, "QEMU tells");
            self.happened(&running, &happened.event).await;
        }
        let exit = running.process.exited().await;
        let out_of_memory = running.lacked_memory();
        let (state, reason, message) = lifecycle::end(&exit, &self.intent(), out_of_memory);
        tracing::info!(?state, ?reason, words = %message, "the machine has ended");
        self.set_running(None);
        self.board.change(|report| {
            let status = &mut report.status;
            (status.status, status.reason) = (state, reason);
            status.agent_connected = false;
            if !message.is_empty() {
                status.message = message;
            }
            report.metadata.deletion_timestamp = Some(now());
        });
        running.finish_console_log().await;
        self.set_stage(Stage::Ended);
    }

    pub(crate) async fn happened(self: &Arc<Self>, running: &Arc<Running>, event: &Event) {
        self.conclude(running, lifecycle::meaning(event, &self.intent()));
        match event {
            Event::BlockIoError { node_name, nospace, action, .. } if action == "stop" => {
                let disk = running.disk_of_node(node_name.as_deref().unwrap_or(""));
                self.notice_io_error(disk.as_deref(), nospace.unwrap_or(false));
            }
            Event::SerialPortChange { id, open }
                if running.agent.as_ref().is_some_and(|(channel, _)| channel == id) =>
            {
                self.agent_came_or_went(running, *open);
            }
            Event::MemoryDeviceSizeChange { .. } | Event::BalloonChange { .. } => {
                self.memory_changed(running);
            }
            // A guest whose memory follows again goes on without any further word.
            Event::Migration { status: MigrationStatus::PostcopyActive | MigrationStatus::Completed }
                if self.state() == (State::Paused, Reason::PostcopyFailed) && !self.is_moving() =>
            {
                self.look_again(running).await;
            }
            Event::Missed { count } => {
                tracing::warn!(count, "events were missed, so QEMU is asked");
                self.look_again(running).await;
            }
            _ => {}
        }
    }

    /// Asks for what missed events would have told. What cannot be asked now is told by events to come.
    async fn look_again(self: &Arc<Self>, running: &Arc<Running>) {
        match running.machine.status().await {
            Ok(status) => match lifecycle::found(&status, &self.intent()) {
                // The reason that is known is as good as the one that can be guessed.
                Meaning::Becomes(state, _) if state == self.state().0 => {}
                meaning => self.conclude(running, meaning),
            },
            Err(error) => tracing::warn!(%error, "the state of the machine is not known"),
        }
        match agent::is_open(running).await {
            Ok(open) if open != self.board.report().status.agent_connected => {
                self.agent_came_or_went(running, open);
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "it is not known whether the guest agent is there"),
        }
        self.memory_changed(running);
    }

    fn conclude(self: &Arc<Self>, running: &Arc<Running>, meaning: Meaning) {
        match meaning {
            Meaning::Becomes(state, reason) => {
                self.intend(|intent| intent.stop = None);
                self.board.change_status(|status| (status.status, status.reason) = (state, reason));
            }
            Meaning::WillStop(reason) => self.intend(|intent| intent.stop = Some(reason)),
            Meaning::Ended(state, reason) => self.machine_is_off(running, state, reason),
            Meaning::Panicked { panic, fatal } => {
                self.notice_panic(&panic);
                self.board.change_status(|status| {
                    status.panic = Some(panic);
                    status.panic_count += 1;
                });
                if fatal {
                    self.machine_is_off(running, State::Crashed, Reason::Panicked);
                }
            }
            Meaning::Nothing => {}
        }
    }

    /// The machine is off: QEMU may go, unless this was half of a reboot.
    fn machine_is_off(self: &Arc<Self>, running: &Arc<Running>, state: State, reason: Reason) {
        let (launcher, running) = (self.clone(), running.clone());
        if self.intent().reboot && reason == Reason::Shutdown {
            self.intend(|intent| intent.reboot = false);
            tokio::spawn(async move {
                let reset = running.machine.reset().await;
                if reset.is_err() || launcher.resume(&running).await.is_err() {
                    running.process.kill();
                }
            });
            return;
        }
        self.intend(|intent| {
            intent.ending.get_or_insert((state, reason));
        });
        self.board.change_status(|status| (status.status, status.reason) = (State::ShuttingDown, reason));
        tokio::spawn(async move { running.process.quit(&running.machine, LEAVE).await });
    }

    fn notice_panic(&self, panic: &kubevirt_launcher_rpc::report::GuestPanic) {
        let code = panic.arguments.first().map(|code| format!(", code {code:#x}")).unwrap_or_default();
        let message = format!("The guest's kernel panicked ({}{code})", panic.kind);
        self.board.notice(Notice { kind: "Warning", reason: events::vmi::GUEST_PANICKED, message });
    }

    fn notice_io_error(&self, disk: Option<&str>, no_space: bool) {
        let disk = disk.map_or_else(|| "a disk".to_owned(), |disk| format!("volume {disk}"));
        let message = if no_space {
            format!("The VM is paused: there is no space left for {disk}; make room and unpause it")
        } else {
            format!("The VM is paused: reading or writing {disk} failed; repair the storage and unpause it")
        };
        self.board.change_status(|status| status.message.clone_from(&message));
        self.board.notice(Notice { kind: "Warning", reason: events::vmi::IO_ERROR, message });
    }
}
