//! Running, pausing and ending.

use serde::{Deserialize, Serialize};

use super::{Machine, words};
use crate::qmp::{NoArguments, QmpError};

words! {
    /// What the machine is doing.
    RunState {
        Debug = "debug",
        FinishMigrate = "finish-migrate",
        GuestPanicked = "guest-panicked",
        InMigrate = "inmigrate",
        InternalError = "internal-error",
        IoError = "io-error",
        Paused = "paused",
        PostMigrate = "postmigrate",
        Prelaunch = "prelaunch",
        RestoreVm = "restore-vm",
        Running = "running",
        SaveVm = "save-vm",
        Shutdown = "shutdown",
        Suspended = "suspended",
        Watchdog = "watchdog",
        Colo = "colo",
    }
}

/// What QEMU does by itself when something happens. Only the given ones are changed.
#[derive(Debug, Clone, Default, Serialize)]
pub struct OnEvent {
    /// At a reboot: `reset` or `shutdown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reboot: Option<&'static str>,
    /// At a shutdown: `poweroff` or `pause`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown: Option<&'static str>,
    /// At a panic: `pause`, `shutdown`, `exit-failure` or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panic: Option<&'static str>,
    /// When the watchdog fires: `reset`, `shutdown`, `poweroff`, `pause`, `debug`, `none` or `inject-nmi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watchdog: Option<&'static str>,
}

impl Machine {
    /// What the machine is doing.
    pub async fn status(&self) -> Result<RunState, QmpError> {
        #[derive(Deserialize)]
        struct Status {
            status: RunState,
        }
        self.qmp.call::<Status>("query-status", NoArguments {}).await.map(|told| told.status)
    }

    /// Stops the guest's CPUs.
    pub async fn pause(&self) -> Result<(), QmpError> {
        self.qmp.run("stop", NoArguments {}).await
    }

    /// Lets the guest's CPUs run, for the first time or again.
    pub async fn resume(&self) -> Result<(), QmpError> {
        self.qmp.run("cont", NoArguments {}).await
    }

    /// Resets the machine, as the button does.
    pub async fn reset(&self) -> Result<(), QmpError> {
        self.qmp.run("system_reset", NoArguments {}).await
    }

    /// Presses the power button. What comes of it is up to the guest.
    pub async fn powerdown(&self) -> Result<(), QmpError> {
        self.qmp.run("system_powerdown", NoArguments {}).await
    }

    /// Wakes a guest that suspended to memory.
    pub async fn wake_up(&self) -> Result<(), QmpError> {
        self.qmp.run("system_wakeup", NoArguments {}).await
    }

    /// Sends a non-maskable interrupt, upon which many guests write a crash dump.
    pub async fn inject_nmi(&self) -> Result<(), QmpError> {
        self.qmp.run("inject-nmi", NoArguments {}).await
    }

    /// Sets what QEMU does by itself when something happens.
    pub async fn set_on_event(&self, actions: OnEvent) -> Result<(), QmpError> {
        self.qmp.run("set-action", actions).await
    }

    /// Tells QEMU to leave. It may be gone before it has answered.
    pub async fn quit(&self) -> Result<(), QmpError> {
        match self.qmp.run("quit", NoArguments {}).await {
            Err(error) if error.is_gone() => Ok(()),
            result => result,
        }
    }

    /// Forgets the clock ticks that the guest missed while it was paused, once its clock was set otherwise.
    pub async fn forget_missed_ticks(&self) -> Result<(), QmpError> {
        self.qmp.run("rtc-reset-reinjection", NoArguments {}).await
    }
}
