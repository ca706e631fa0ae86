//! Commands to machines.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use kubevirt_api::backup::{BackupCheckpoint, BackupOptions};
use kubevirt_api::duration::Duration;
use kubevirt_api::names::events::vmi as reasons;
use kubevirt_api::vmi::attestation::SevSecretOptions;
use kubevirt_component::events::Kind;
use serde::Deserialize;

use super::Shared;
use super::answers::{Answer, Refusal, accepted};
use super::body::read;
use super::parameters::Subject;
use crate::launchers::Checkpoint;

/// Commands that take nothing, and what users are told when they are done.
macro_rules! commands {
    ($($(#[doc = $doc:literal])+ $name:ident: $reason:ident, $message:literal;)*) => {
        $($(#[doc = $doc])+
        pub(super) async fn $name(State(desk): State<Shared>, Path(subject): Path<Subject>) -> Answer {
            let (vmi, launcher) = desk.launcher(&subject)?;
            launcher.$name(&vmi).await?;
            desk.server.recorder.event(&*vmi, Kind::Normal, reasons::$reason, $message);
            accepted()
        })*
    };
}

commands! {
    /// Stops the CPUs.
    pause: PAUSED, "VirtualMachineInstance paused";
    /// Lets them go on.
    unpause: UNPAUSED, "VirtualMachineInstance unpaused";
    /// Presses the reset button.
    reset: RESET, "VirtualMachineInstance reset";
    /// Asks the guest to reboot.
    soft_reboot: SOFT_REBOOTED, "VirtualMachineInstance soft rebooted";
}

/// How long file systems are held still.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Freeze {
    unfreeze_timeout: Option<Duration>,
}

impl Freeze {
    /// In whole seconds, as launchers want it.
    fn seconds(&self) -> Result<i32, Refusal> {
        let none = || Refusal::bad("Unfreeze timeout in freeze request is not set");
        let time = self.unfreeze_timeout.as_ref().filter(|time| !time.0.is_empty()).ok_or_else(none)?;
        let time = time.parse().map_err(|error| Refusal::bad(format!("unfreezeTimeout: {error}")))?;
        let seconds = (!time.is_negative()).then(|| std::time::Duration::from(time).as_secs());
        let seconds = seconds.and_then(|seconds| i32::try_from(seconds).ok());
        seconds.ok_or_else(|| Refusal::bad("unfreezeTimeout must be a time from 0s to 68 years"))
    }
}

/// Makes the guest hold its file systems still.
pub(super) async fn freeze(State(desk): State<Shared>, Path(subject): Path<Subject>, body: Body) -> Answer {
    let (vmi, launcher) = desk.launcher(&subject)?;
    let seconds = read::<Freeze>(body, "the unfreeze timeout").await?.seconds()?;
    if let Err(error) = launcher.freeze(&vmi, seconds).await {
        let error = failed("Freeze", &error);
        let message = format!("Failed to freeze VMI: {error}");
        desk.server.recorder.event(&*vmi, Kind::Warning, reasons::FREEZE_ERROR, message);
        return Err(Refusal::bad(error));
    }
    accepted()
}

/// Lets the guest write again.
pub(super) async fn unfreeze(State(desk): State<Shared>, Path(subject): Path<Subject>) -> Answer {
    let (vmi, launcher) = desk.launcher(&subject)?;
    launcher.unfreeze(&vmi).await.map_err(|error| Refusal::bad(failed("Unfreeze", &error)))?;
    accepted()
}

/// The words by which clients know which command failed.
fn failed(command: &str, error: &dyn std::fmt::Display) -> String {
    format!("command {command} failed: {error}")
}

/// Begins a backup, or ends one.
pub(super) async fn back_up(State(desk): State<Shared>, Path(subject): Path<Subject>, body: Body) -> Answer {
    let (vmi, launcher) = desk.launcher(&subject)?;
    let options: BackupOptions = read(body, "the backup parameters").await?;
    if let Err(error) = launcher.back_up(&vmi, &options).await {
        let message = format!("Failed backing up VM: {error}");
        desk.server.recorder.event(&*vmi, Kind::Warning, reasons::BACKUP_ERROR, message);
        return Err(Refusal::bad(error));
    }
    accepted()
}

/// Makes a checkpoint of an earlier run known again. One that is spoilt should be forgotten, anything else tried again.
pub(super) async fn redefine_checkpoint(
    State(desk): State<Shared>,
    Path(subject): Path<Subject>,
    body: Body,
) -> Answer {
    let (vmi, launcher) = desk.launcher(&subject)?;
    let checkpoint: BackupCheckpoint = read(body, "the checkpoint").await?;
    match launcher.redefine_checkpoint(&vmi, &checkpoint).await {
        Ok(Checkpoint::Known) => Ok(StatusCode::OK.into_response()),
        Ok(Checkpoint::Spoilt(why)) => Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, why)),
        Err(error) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error)),
    }
}

/// Gives a secret to a guest whose measurement is right.
pub(super) async fn inject_secret(
    State(desk): State<Shared>,
    Path(subject): Path<Subject>,
    body: Body,
) -> Answer {
    let (vmi, launcher) = desk.launcher(&subject)?;
    let secret: SevSecretOptions = read(body, "the SEV secret").await?;
    launcher.inject_secret(&vmi, &secret).await?;
    accepted()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freeze_is_bounded() {
        let seconds = |text: &str| {
            Freeze { unfreeze_timeout: Some(Duration(text.into())) }
                .seconds()
                .map_err(|refusal| refusal.status)
        };
        assert_eq!(seconds("5m0s"), Ok(300));
        assert_eq!(seconds("0s"), Ok(0));
        assert_eq!(seconds("1500ms"), Ok(1));
        for wrong in ["", "5", "-1s", "1000000h", "soon"] {
            assert_eq!(seconds(wrong), Err(StatusCode::BAD_REQUEST), "{wrong}");
        }
        let none = Freeze::default().seconds().unwrap_err();
        assert_eq!(none.why, "Unfreeze timeout in freeze request is not set");
    }
}
