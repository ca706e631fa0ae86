//! `pause`: freezes a guest; its memory stays as it is.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use kubevirt_api::vm::{RunStrategy, VirtualMachine};

use super::dry_run_body;
use crate::connect::{Connect, Session};
use crate::failure::Failure;
use crate::output::say;
use crate::subresource::Kind;
use crate::target;

/// Pause a virtual machine.
///
/// The guest is frozen, and its state stays in memory. The first argument is vm or vmi (also in their long and plural
/// forms), the second is the name.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Pause a virtual machine called 'myvm':\n  {program} pause vm myvm")]
pub struct Arguments {
    /// vm or vmi
    #[arg(value_name = "vm|vmi")]
    kind: String,
    /// Its name
    name: String,
    /// Only check: nothing is changed
    #[arg(long)]
    dry_run: bool,
}

impl Arguments {
    /// Pauses the instance.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let kind = target::kind(&self.kind)?;
        let session = connect.session().await?;
        let vm = match kind {
            Kind::Vm => Some(machine(session, &self.name).await?),
            Kind::Vmi => None,
        };
        let body = dry_run_body(self.dry_run);
        let done = session.put(Kind::Vmi, &session.namespace, &self.name, "pause", Some(&body)).await;
        if let (Err(error), Some(vm)) = (&done, &vm)
            && error.is_not_found()
        {
            return Err(no_instance(vm, &self.name).into());
        }
        done.with_context(|| format!("Error pausing VirtualMachineInstance {}", self.name))?;
        say!("VMI {} was scheduled to pause", self.name);
        Ok(ExitCode::SUCCESS)
    }
}

/// The machine by this name.
pub async fn machine(session: &Session, name: &str) -> Result<VirtualMachine> {
    let api = session.api::<VirtualMachine>(None);
    api.get(name).await.with_context(|| format!("Error getting VirtualMachine {name}"))
}

/// Whether the machine is to stay off.
pub fn is_halted(vm: &VirtualMachine) -> bool {
    vm.spec.run_strategy == Some(RunStrategy::Halted)
        || vm.spec.run_strategy.is_none() && vm.spec.running != Some(true)
}

/// Why a machine that exists has no instance to pause.
fn no_instance(vm: &VirtualMachine, name: &str) -> Failure {
    if is_halted(vm) {
        let what =
            format!("Error pausing VirtualMachineInstance {name}. VirtualMachine {name} is not set to run");
        return Failure::new(what, format!("Start it with `virtctl start {name} --paused`."));
    }
    let what = format!("Error pausing VirtualMachineInstance {name}, it was not found");
    Failure::new(what, format!("`virtctl why {name}` tells why there is none."))
}
