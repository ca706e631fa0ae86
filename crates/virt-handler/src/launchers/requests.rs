//! What users ask of a machine, handed to its launcher.

use kubevirt_api::backup::{BackupCheckpoint, BackupOptions};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::attestation::SevSecretOptions;
use kubevirt_launcher_rpc::cmd::{
    BackupRequest, EmptyRequest, FreezeRequest, InjectLaunchSecretRequest, RedefineCheckpointRequest,
};

use super::client::{CommandError, LONG, Launcher, done, request, within};

/// What is known of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkpoint {
    /// A backup can start from it.
    Known,
    /// No backup will ever start from it again; why.
    Spoilt(String),
}

/// Commands that take no more than the instance.
macro_rules! commands {
    ($($(#[doc = $doc:literal])+ $name:ident => $command:ident;)*) => {
        $($(#[doc = $doc])+
        pub async fn $name(&self, vmi: &VirtualMachineInstance) -> Result<(), CommandError> {
            let mut commands = self.commands();
            done(Some(within(LONG, commands.$command(request(vmi, None)?)).await?))
        })*
    };
}

/// Questions about the guest, whose answers are JSON.
macro_rules! questions {
    ($($(#[doc = $doc:literal])+ $name:ident => $question:ident . $field:ident;)*) => {
        $($(#[doc = $doc])+
        pub async fn $name(&self, _: &VirtualMachineInstance) -> Result<Vec<u8>, CommandError> {
            let mut commands = self.commands();
            let answer = within(LONG, commands.$question(EmptyRequest {})).await?;
            done(answer.response)?;
            Ok(answer.$field.into())
        })*
    };
}

impl Launcher {
    commands! {
        /// Stops the CPUs.
        pause => pause_virtual_machine;
        /// Lets the guest write to its file systems again.
        unfreeze => unfreeze_virtual_machine;
        /// Presses the reset button.
        reset => reset_virtual_machine;
        /// Asks the guest to reboot.
        soft_reboot => soft_reboot_virtual_machine;
    }

    questions! {
        /// What the guest's agent says of its system.
        guest_info => get_guest_info.guest_info_response;
        /// Who is logged in.
        users => get_users.guest_user_list_response;
        /// The guest's file systems.
        filesystems => get_filesystems.guest_filesystems_response;
        /// Who the host is, for SEV.
        sev_certificates => get_sev_info.sev_info;
    }

    /// What was loaded into the guest, for SEV.
    pub async fn sev_measurement(&self, vmi: &VirtualMachineInstance) -> Result<Vec<u8>, CommandError> {
        let answer = within(LONG, self.commands().get_launch_measurement(request(vmi, None)?)).await?;
        done(answer.response)?;
        Ok(answer.launch_measurement)
    }

    /// Makes the guest hold its file systems still, for so long at most.
    pub async fn freeze(&self, vmi: &VirtualMachineInstance, seconds: i32) -> Result<(), CommandError> {
        let vmi = request(vmi, None)?.vmi;
        let wish = FreezeRequest { vmi, unfreeze_timeout_seconds: seconds };
        done(Some(within(LONG, self.commands().freeze_virtual_machine(wish)).await?))
    }

    /// Begins a backup, or ends one.
    pub async fn back_up(
        &self,
        vmi: &VirtualMachineInstance,
        options: &BackupOptions,
    ) -> Result<(), CommandError> {
        let wish = BackupRequest { vmi: request(vmi, None)?.vmi, options: serde_json::to_vec(options)? };
        done(Some(within(LONG, self.commands().backup_virtual_machine(wish)).await?))
    }

    /// Makes a checkpoint of an earlier run known again.
    pub async fn redefine_checkpoint(
        &self,
        vmi: &VirtualMachineInstance,
        checkpoint: &BackupCheckpoint,
    ) -> Result<Checkpoint, CommandError> {
        let vmi = request(vmi, None)?.vmi;
        let wish = RedefineCheckpointRequest { vmi, checkpoint: serde_json::to_vec(checkpoint)? };
        let answer = within(LONG, self.commands().redefine_checkpoint(wish)).await?;
        if !answer.checkpoint_invalid {
            return done(answer.response).map(|()| Checkpoint::Known);
        }
        let why = answer.response.map(|response| response.message).filter(|why| !why.is_empty());
        let name = checkpoint.name.as_deref().unwrap_or_default();
        Ok(Checkpoint::Spoilt(why.unwrap_or_else(|| format!("no disk has a usable checkpoint {name}"))))
    }

    /// Gives a secret to a guest whose measurement is right.
    pub async fn inject_secret(
        &self,
        vmi: &VirtualMachineInstance,
        secret: &SevSecretOptions,
    ) -> Result<(), CommandError> {
        let vmi = request(vmi, None)?.vmi;
        let wish = InjectLaunchSecretRequest { vmi, options: serde_json::to_vec(secret)? };
        done(Some(within(LONG, self.commands().inject_launch_secret(wish)).await?))
    }

    /// A picture of the display, and its type. The pointer may be moved first, which wakes a display that sleeps.
    pub async fn screenshot(
        &self,
        vmi: &VirtualMachineInstance,
        move_cursor: bool,
    ) -> Result<(String, Vec<u8>), CommandError> {
        let mut wish = request(vmi, None)?;
        wish.move_cursor = move_cursor;
        let answer = within(LONG, self.commands().get_screenshot(wish)).await?;
        done(answer.response)?;
        Ok((answer.mime, answer.data))
    }
}
