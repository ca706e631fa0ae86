//! Brings changes of a machine to its running instance, as far as they can be made while it runs.

pub mod cpu;
pub mod exchange;
pub mod firmware;
pub mod hotplug;
pub mod interfaces;
pub mod marks;
pub mod memory;
pub mod memory_dump;
pub mod placement;
pub mod volume_requests;

use jiff::Timestamp;
use kubevirt_admission::Gate;
use kubevirt_admission::instancetype::expand;
use kubevirt_api::names;
use kubevirt_api::vm::RunStrategy;
use kubevirt_api::vmi::VirtualMachineInstance;

use super::instancetypes::sentence;
use crate::vm::observe::Observed;
use crate::vm::plan::{Failure, Plan};
use crate::vm::status::conditions;
use crate::vm::view;

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is made, or there is none.
    Done,
    /// It takes effect only after a restart, and why.
    Restart(String),
}

/// Brings all changes over. The first that has to wait is the failure; those after it wait along.
pub fn decide(seen: &Observed, plan: &mut Plan, restart: bool, now: Timestamp) -> Result<(), Failure> {
    let leaving = |vmi: &VirtualMachineInstance| view::is_deleting(&vmi.metadata) || view::is_final(vmi);
    let leaving = plan.instance.as_ref().is_some_and(leaving);
    if !leaving {
        interfaces::sync(&mut plan.machine, plan.instance.as_mut());
    }
    firmware::keep_uuid(&mut plan.machine);
    volume_requests::apply(&mut plan.machine, plan.instance.as_mut().filter(|_| !leaving));
    let declared = seen.config.enabled(Gate::DeclarativeHotplugVolumes);
    if let (Some(vmi), true, false) =
        (&mut plan.instance, declared, seen.config.enabled(Gate::HotplugVolumes))
    {
        hotplug::apply(&plan.machine, vmi);
    }
    memory_dump::apply(seen, plan)?;
    marks::follow(seen, plan);
    let restart = restart || conditions::holds(plan.status(), names::conditions::vm::RESTART_REQUIRED);
    if leaving || restart || !seen.config.live_update() {
        return Ok(());
    }
    resize(seen, plan, now)?;
    if view::run_strategy(&seen.vm)? == RunStrategy::WaitAsReceiver {
        exchange::receive(seen, plan);
        return Ok(());
    }
    exchange::apply(seen, plan, now)
}

/// Brings CPUs, memory and placement over. A change that needs a restart does not keep the others from being made.
fn resize(seen: &Observed, plan: &mut Plan, now: Timestamp) -> Result<(), Failure> {
    let Some(vmi) = &mut plan.instance else { return Ok(()) };
    let expanded = expand::template(&seen.objects, &plan.machine).map_err(|all| sentence(&all))?;
    let wanted = expanded.spec.unwrap_or_default();
    let mut verdicts = vec![cpu::apply(&seen.config, &wanted, vmi, now)?];
    placement::apply(&wanted, vmi, now)?;
    verdicts.push(memory::apply(&wanted, vmi, now)?);
    for verdict in verdicts {
        if let Verdict::Restart(why) = verdict {
            conditions::require_restart(plan.status(), &why, now);
        }
    }
    Ok(())
}
