//! Bringing a machine that runs in line with its VMI.

use std::sync::Arc;
use std::time::Duration;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::change::{Change, Scope, Step, changes};
use kubevirt_domain::qemu::Command;
use kubevirt_launcher_rpc::cmd::VirtualMachineOptions;
use kubevirt_qemu::qmp::QmpError;

use crate::error::CommandError;
use crate::launcher::Launcher;
use crate::running::Running;
use crate::start::{files, pins};
use crate::volumes::Purpose;

/// How long a guest may take to let a device go before the handler is told to ask again.
const LET_GO: Duration = Duration::from_secs(10);

impl Launcher {
    /// Adds and removes devices.
    pub(crate) async fn update(
        &self,
        vmi: &VirtualMachineInstance,
        options: &VirtualMachineOptions,
    ) -> Result<(), CommandError> {
        self.bring_in_line(vmi, options, Scope::Devices).await
    }

    /// Adds CPUs.
    pub async fn sync_cpus(
        self: &Arc<Self>,
        vmi: &VirtualMachineInstance,
        options: &VirtualMachineOptions,
    ) -> Result<(), CommandError> {
        let _work = self.work.lock().await;
        self.bring_in_line(vmi, options, Scope::Cpus).await?;
        pins::pin(self.running()?.as_ref()).await
    }

    /// Adds memory, or takes it back.
    pub async fn sync_memory(
        self: &Arc<Self>,
        vmi: &VirtualMachineInstance,
        options: &VirtualMachineOptions,
    ) -> Result<(), CommandError> {
        let _work = self.work.lock().await;
        self.bring_in_line(vmi, options, Scope::Memory).await
    }

    /// Adds host devices that left for a migration.
    pub async fn plug_host_devices(
        self: &Arc<Self>,
        vmi: &VirtualMachineInstance,
        options: &VirtualMachineOptions,
    ) -> Result<(), CommandError> {
        let _work = self.work.lock().await;
        self.update(vmi, options).await
    }

    async fn bring_in_line(
        &self,
        vmi: &VirtualMachineInstance,
        options: &VirtualMachineOptions,
        scope: Scope,
    ) -> Result<(), CommandError> {
        if self.is_moving() {
            return Err(CommandError::Refused("the virtual machine is being moved to another node".into()));
        }
        let running = self.running()?;
        let wanted = self.describe(vmi, options, Purpose::Hotplug).await?;
        let plan = changes(&running.domain(), &wanted);
        let mut outcome = files::prepare_disks(&running.domain(), &wanted).await;
        for change in plan.list.iter().filter(|change| change.scope() == scope) {
            // One guest that holds on to one disk does not keep others from coming.
            if let Err(error) = make(&running, change).await {
                outcome = outcome.and(Err(error));
            }
        }
        self.board.change(|report| {
            report.spec = Some(running.domain());
            report.status.needs_restart = plan.restart.iter().map(ToString::to_string).collect();
        });
        outcome
    }
}

/// Makes one change, or leaves things as they were.
async fn make(running: &Running, change: &Change) -> Result<(), CommandError> {
    let mut domain = running.domain();
    tracing::info!(?change, "the machine changes");
    for step in change.steps(&domain) {
        if let Err(error) = perform(running, step).await {
            for command in change.undo(&domain) {
                // What was never made cannot be removed.
                let _ = run(running, command).await;
            }
            return Err(error);
        }
    }
    if let Change::DetachDisk(disk) = change {
        files::forget_disk(disk);
    }
    change.apply(&mut domain);
    running.set_domain(domain);
    Ok(())
}

async fn perform(running: &Running, step: Step) -> Result<(), CommandError> {
    let machine = &running.machine;
    match step {
        Step::Run(command) => run(running, command).await?,
        Step::Clean(command) => match run(running, command).await {
            Err(error) if error.is_not_found() => {}
            done => done?,
        },
        Step::Unplug { device } => machine.unplug(&device, LET_GO).await?,
        Step::PlugCpus { count } => plug_cpus(running, count).await?,
        Step::PassFile { name, .. } => {
            // Launchers open no tap devices: QEMU opens them by name.
            let what = format!("the queue {name} is not open here");
            return Err(CommandError::Unsupported(what));
        }
    }
    Ok(())
}

async fn run(running: &Running, command: Command) -> Result<(), QmpError> {
    running.machine.qmp().run(command.execute, command.arguments).await
}

/// Plugs CPUs into free places, lowest first, until there are this many.
async fn plug_cpus(running: &Running, count: u32) -> Result<(), CommandError> {
    let mut slots = running.machine.cpu_slots().await?;
    // QEMU lists the last place first.
    slots.reverse();
    let mut present: u32 = slots.iter().filter(|slot| slot.taken.is_some()).map(|slot| slot.count).sum();
    for (index, slot) in slots.iter().enumerate() {
        if present >= count {
            return Ok(());
        }
        if slot.taken.is_none() {
            running.machine.plug_cpu(&format!("vcpu{index}"), slot).await?;
            present += slot.count;
        }
    }
    if present < count {
        let words = format!("the machine has room for {present} CPUs, not for {count}");
        return Err(CommandError::Unsupported(words));
    }
    Ok(())
}
