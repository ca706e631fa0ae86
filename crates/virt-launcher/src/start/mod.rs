//! From the wish for a machine to one that runs.

mod boot;
mod companions;
mod facts;
pub(crate) mod files;
mod network;
pub(crate) mod pins;
mod tracker;

pub(crate) use boot::Way;

use std::sync::Arc;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::Domain;
use kubevirt_launcher_rpc::cmd::VirtualMachineOptions;
use kubevirt_launcher_rpc::report::{Reason, State};

use crate::error::CommandError;
use crate::launcher::{Launcher, Stage};
use crate::volumes::Purpose;

impl Launcher {
    /// Starts the machine, or brings a running one in line with its VMI.
    pub async fn sync(
        self: &Arc<Self>,
        vmi: &VirtualMachineInstance,
        options: &VirtualMachineOptions,
    ) -> Result<(), CommandError> {
        let _work = self.work.lock().await;
        self.remember(vmi);
        match self.stage() {
            Stage::Waiting if self.is_target().await => Err(CommandError::ComesFromElsewhere),
            Stage::Waiting => self.start(vmi, options).await,
            // What a machine is made of must be the same at both ends; the one that has it afterwards follows up.
            Stage::Running if self.is_moving() => Ok(()),
            Stage::Running => self.update(vmi, options).await,
            Stage::Ended | Stage::Dismissed => {
                let status = self.board.report().status;
                Err(CommandError::Ended(format!("{:?}, {:?}", status.status, status.reason)))
            }
        }
    }

    async fn start(
        self: &Arc<Self>,
        vmi: &VirtualMachineInstance,
        options: &VirtualMachineOptions,
    ) -> Result<(), CommandError> {
        let domain = self.prepare(vmi, options, Purpose::Start).await?;
        let start_paused = domain.lifecycle.start_paused;
        let running = self.boot(domain, Way::Fresh).await?;
        if start_paused {
            self.board.change_status(|status| (status.status, status.reason) = (State::Paused, Reason::User));
            return Ok(());
        }
        if let Err(error) = self.resume(&running).await {
            let words = running.process.output();
            tracing::error!(%error, ?words, "the machine does not run");
            return Err(error);
        }
        Ok(())
    }

    /// Everything short of starting QEMU, whether the machine starts here or comes from elsewhere.
    pub(crate) async fn prepare(
        &self,
        vmi: &VirtualMachineInstance,
        options: &VirtualMachineOptions,
        purpose: Purpose,
    ) -> Result<Domain, CommandError> {
        if self.arguments.hook_sidecars > 0 {
            return Err(CommandError::Unsupported(
                "hook sidecars exchange libvirt domains, which this hypervisor does not have: remove the annotation \
                 hooks.kubevirt.io/hookSidecars"
                    .into(),
            ));
        }
        self.describe(vmi, options, purpose).await
    }
}
