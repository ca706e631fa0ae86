//! Changing a machine that runs.

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_launcher_rpc::cmd::VirtualMachineOptions;

use crate::error::CommandError;
use crate::launcher::Launcher;

impl Launcher {
    /// CPUs.
    pub async fn sync_cpus(
        &self,
        _: &VirtualMachineInstance,
        _: &VirtualMachineOptions,
    ) -> Result<(), CommandError> {
        missing("CPU hotplug")
    }

    /// Memory.
    pub async fn sync_memory(
        &self,
        _: &VirtualMachineInstance,
        _: &VirtualMachineOptions,
    ) -> Result<(), CommandError> {
        missing("memory hotplug")
    }

    /// Host devices.
    pub async fn plug_host_devices(
        &self,
        _: &VirtualMachineInstance,
        _: &VirtualMachineOptions,
    ) -> Result<(), CommandError> {
        missing("host device hotplug")
    }
}

fn missing<T>(what: &str) -> Result<T, CommandError> {
    Err(CommandError::Unsupported(format!("{what} is not part of this version yet")))
}
