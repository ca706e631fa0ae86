//! `virtctl create instancetype`: sizes of machines from flags.

use kubevirt_api::instancetype::{
    CpuInstancetype, MemoryInstancetype, VirtualMachineClusterInstancetype, VirtualMachineInstancetype,
    VirtualMachineInstancetypeSpec,
};
use kubevirt_api::vmi::disks::IoThreadsPolicy;
use kubevirt_api::vmi::host_devices::{Gpu, HostDevice};
use serde_json::Value;

use super::Scope;
use super::params::{self, FlagError, Params};

/// Write the manifest of a VirtualMachineInstancetype or VirtualMachineClusterInstancetype.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Name of the instance type; a random one if left out
    #[arg(long)]
    pub name: Option<String>,
    /// Number of CPUs
    #[arg(long)]
    pub cpu: u32,
    /// Amount of memory
    #[arg(long, value_name = "QUANTITY")]
    pub memory: String,
    /// How disks share I/O threads: auto or shared
    #[arg(long, value_name = "POLICY")]
    pub iothreadspolicy: Option<String>,
    /// For one namespace instead of the whole cluster; --namespace says the same
    #[arg(long)]
    pub namespaced: bool,
    /// GPU to pass through; may be given several times. Parameters: name, devicename
    #[arg(long, value_name = "PARAMS")]
    pub gpu: Vec<String>,
    /// Host device to pass through; may be given several times. Parameters: name, devicename
    #[arg(long, value_name = "PARAMS")]
    pub hostdevice: Vec<String>,
}

const EXAMPLES: &str = "  # For the whole cluster
  {program} create instancetype --name small --cpu 2 --memory 2Gi | kubectl create -f -

  # For one namespace, with a GPU
  {program} create instancetype --namespaced --cpu 4 --memory 8Gi --gpu name:gpu1,devicename:nvidia.com/GP102GL_Tesla_P40";

/// The instance type that the flags describe.
pub fn instancetype(
    arguments: &Arguments,
    namespace: Option<&str>,
    suffix: &mut dyn FnMut() -> String,
) -> anyhow::Result<Value> {
    let spec = spec(arguments)?;
    let scope = Scope::of(arguments.namespaced, namespace);
    let name = scope.name(arguments.name.as_deref(), "instancetype", suffix);
    Ok(match scope {
        Scope::Cluster => serde_json::to_value(VirtualMachineClusterInstancetype::new(&name, spec))?,
        Scope::Namespace(namespace) => {
            let mut object = VirtualMachineInstancetype::new(&name, spec);
            object.metadata.namespace = namespace;
            serde_json::to_value(object)?
        }
    })
}

fn spec(arguments: &Arguments) -> Result<VirtualMachineInstancetypeSpec, FlagError> {
    let cpus = i32::try_from(arguments.cpu).ok().filter(|cpus| *cpus > 0);
    let guest = cpus.ok_or_else(|| FlagError::new("cpu", "cpu value must be greater than zero"))?;
    let memory = params::quantity("memory", &arguments.memory)?;
    let gpus = devices("gpu", &arguments.gpu)?;
    let host_devices = devices("hostdevice", &arguments.hostdevice)?;
    Ok(VirtualMachineInstancetypeSpec {
        cpu: CpuInstancetype { guest, ..Default::default() },
        memory: MemoryInstancetype { guest: memory, ..Default::default() },
        gpus: gpus.map(|all| all.into_iter().map(gpu).collect()),
        host_devices: host_devices.map(|all| all.into_iter().map(host_device).collect()),
        io_threads_policy: arguments.iothreadspolicy.as_deref().map(policy).transpose()?,
        ..Default::default()
    })
}

fn gpu((name, device): (String, String)) -> Gpu {
    Gpu { name, device_name: Some(device), ..Default::default() }
}

fn host_device((name, device): (String, String)) -> HostDevice {
    HostDevice { name, device_name: Some(device), ..Default::default() }
}

/// Names and resources of devices.
fn devices(flag: &'static str, texts: &[String]) -> Result<Option<Vec<(String, String)>>, FlagError> {
    let one = |text: &String| {
        let mut params = Params::parse(flag, text)?;
        let (name, device) = (params.text("name"), params.text("devicename"));
        params.finish()?;
        let name = name.ok_or_else(|| params.problem("name must be specified"))?;
        let device = device.ok_or_else(|| params.problem("deviceName must be specified"))?;
        Ok((name, device))
    };
    let all = texts.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(all).filter(|all| !all.is_empty()))
}

fn policy(text: &str) -> Result<IoThreadsPolicy, FlagError> {
    match IoThreadsPolicy::from(text) {
        policy @ (IoThreadsPolicy::Auto | IoThreadsPolicy::Shared) => Ok(policy),
        _ => Err(FlagError::new("iothreadspolicy", "IOThread must be of value auto or shared")),
    }
}
