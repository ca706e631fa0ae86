//! Moving the machine.

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_launcher_rpc::cmd::VirtualMachineOptions;

use crate::error::CommandError;
use crate::launcher::Launcher;

impl Launcher {
    /// Begins to move the machine away.
    pub async fn migrate(&self, _: &VirtualMachineInstance, _: &[u8]) -> Result<(), CommandError> {
        missing("migration")
    }

    /// Gets ready to receive the machine.
    pub async fn prepare_target(
        &self,
        _: &VirtualMachineInstance,
        _: &VirtualMachineOptions,
    ) -> Result<(), CommandError> {
        missing("migration")
    }

    /// Cancels.
    pub async fn cancel_migration(&self) -> Result<(), CommandError> {
        missing("migration")
    }

    /// After arrival.
    pub async fn finalize_migration(
        &self,
        _: &VirtualMachineInstance,
        _: &VirtualMachineOptions,
    ) -> Result<(), CommandError> {
        missing("migration")
    }

    /// Nothing will arrive.
    pub async fn dismiss_target(
        &self,
        _: &VirtualMachineInstance,
        _: &VirtualMachineOptions,
    ) -> Result<(), CommandError> {
        missing("migration")
    }
}

fn missing<T>(what: &str) -> Result<T, CommandError> {
    Err(CommandError::Unsupported(format!("{what} is not part of this version yet")))
}
