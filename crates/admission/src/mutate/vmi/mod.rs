//! What an instance leaves open: the defaults of its specification, its first status and its marks.

pub mod addresses;
pub mod architecture;
pub mod clock;
pub mod cpu;
pub mod devices;
pub mod disks;
pub mod features;
pub mod firmware;
pub mod hyperv;
pub mod machine;
pub mod memory;
pub mod metadata;
pub mod network;
mod presets;
pub mod probes;
pub mod resources;
mod status;
#[cfg(test)]
mod tests;

use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec};
use uuid::Uuid;

use crate::{ClusterConfig, Context, Operation, Problems};

/// Completes a new instance; of a change, takes back what its user may not write.
pub fn apply(
    cx: &Context<'_>,
    vmi: &mut VirtualMachineInstance,
    old: Option<&VirtualMachineInstance>,
) -> Problems {
    match (cx.request.operation, old) {
        (Operation::Create, _) => complete(cx, vmi),
        (Operation::Update, Some(old)) => {
            status::keep_unless_own(cx, vmi, old);
            Problems::default()
        }
        _ => Problems::default(),
    }
}

fn complete(cx: &Context<'_>, vmi: &mut VirtualMachineInstance) -> Problems {
    // Presets come first: what they set, defaults must leave alone.
    let mut problems = presets::apply(cx, vmi);
    problems.append(default_instance(cx.config, cx.fresh_uuid, vmi));
    metadata::mark(cx.config, vmi);
    metadata::mark_versions(&mut vmi.metadata);
    status::begin(cx, vmi);
    problems
}

/// Fills in everything that an instance leaves open, in the specification and in the status that repeats it.
pub fn default_instance(
    config: &ClusterConfig,
    fresh_uuid: &dyn Fn() -> Uuid,
    vmi: &mut VirtualMachineInstance,
) -> Problems {
    let spec = &mut vmi.spec;
    let problems = default_instance_spec(config, spec);
    firmware::set(fresh_uuid, spec);
    features::set(spec);
    clock::set(spec);
    disks::set_devices(spec);
    devices::set(spec);
    probes::set(spec);
    hyperv::set_dependencies(spec);
    cpu::set_model(config, spec);
    status::repeat_resources(vmi);
    if config.live_update() && !architecture::is_arm64(&vmi.spec) {
        cpu::set_hotplug_room(config, &mut vmi.spec);
        memory::set_hotplug_room(config, &mut vmi.spec);
    }
    problems
}

/// Fills in what the specification of an instance needs before it can be judged: architecture, machine, CPU and
/// memory, eviction, network and disks.
pub fn default_instance_spec(config: &ClusterConfig, spec: &mut VirtualMachineInstanceSpec) -> Problems {
    addresses::set(spec);
    architecture::set(config, spec);
    machine::set(config, spec);
    resources::set(config, spec);
    memory::set_guest(spec);
    cpu::set_topology(spec);
    disks::set_pull_policies(spec);
    if spec.eviction_strategy.is_none() {
        spec.eviction_strategy = config.configuration().eviction_strategy.clone();
    }
    let problems = network::add_default(config, spec);
    disks::add_missing(spec);
    problems
}
