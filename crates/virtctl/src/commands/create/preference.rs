//! `virtctl create preference`: what machines like, from flags.

use kubevirt_api::preference::{
    CpuPreferences, MachinePreferences, PreferredCpuTopology, VirtualMachineClusterPreference,
    VirtualMachinePreference, VirtualMachinePreferenceSpec, VolumePreferences,
};
use serde_json::Value;

use super::Scope;
use super::params::FlagError;

/// Write the manifest of a VirtualMachinePreference or VirtualMachineClusterPreference.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Name of the preference; a random one if left out
    #[arg(long)]
    pub name: Option<String>,
    /// For one namespace instead of the whole cluster; --namespace says the same
    #[arg(long)]
    pub namespaced: bool,
    /// Storage class that volumes get
    #[arg(long, value_name = "CLASS")]
    pub volume_storage_class: Option<String>,
    /// Machine type that the VM gets
    #[arg(long, value_name = "TYPE")]
    pub machine_type: Option<String>,
    /// How CPUs appear to the guest: sockets, cores, threads, spread or any
    #[arg(long, value_name = "TOPOLOGY")]
    pub cpu_topology: Option<String>,
}

const EXAMPLES: &str = "  # For the whole cluster
  {program} create preference --name linux --machine-type q35 | kubectl create -f -

  # For one namespace
  {program} create preference --cpu-topology sockets --namespaced";

/// The preference that the flags describe.
pub fn preference(
    arguments: &Arguments,
    namespace: Option<&str>,
    suffix: &mut dyn FnMut() -> String,
) -> anyhow::Result<Value> {
    let spec = spec(arguments)?;
    let scope = Scope::of(arguments.namespaced, namespace);
    let name = scope.name(arguments.name.as_deref(), "preference", suffix);
    Ok(match scope {
        Scope::Cluster => serde_json::to_value(VirtualMachineClusterPreference::new(&name, spec))?,
        Scope::Namespace(namespace) => {
            let mut object = VirtualMachinePreference::new(&name, spec);
            object.metadata.namespace = namespace;
            serde_json::to_value(object)?
        }
    })
}

fn spec(arguments: &Arguments) -> Result<VirtualMachinePreferenceSpec, FlagError> {
    let cpu = arguments.cpu_topology.as_deref().map(topology).transpose()?;
    let cpu =
        cpu.map(|topology| CpuPreferences { preferred_cpu_topology: Some(topology), ..Default::default() });
    let machine =
        arguments.machine_type.clone().map(|kind| MachinePreferences { preferred_machine_type: Some(kind) });
    let volumes = arguments
        .volume_storage_class
        .clone()
        .map(|class| VolumePreferences { preferred_storage_class_name: Some(class) });
    Ok(VirtualMachinePreferenceSpec { cpu, machine, volumes, ..Default::default() })
}

fn topology(text: &str) -> Result<PreferredCpuTopology, FlagError> {
    Some(PreferredCpuTopology::from(text)).filter(PreferredCpuTopology::is_known).ok_or_else(|| {
        FlagError::new("cpu-topology", "CPU topology must have a value of sockets, cores, threads or spread")
    })
}
