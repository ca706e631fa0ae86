//! The machine as a whole: what it starts from, and in which order flags add to it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::vm::{
    InstancetypeMatcher, PreferenceMatcher, RunStrategy, VirtualMachine, VirtualMachineSpec,
};
use kubevirt_api::vmi::memory::Memory;
use kubevirt_api::vmi::{VirtualMachineInstanceSpec, VmiTemplate};

use super::{Arguments, access, cloud_init, import, infer, volumes};
use crate::commands::create::params::{self, FlagError};

/// What a machine has if nothing says how much memory it gets.
const MEMORY: &str = "512Mi";
/// The run strategies that make sense for a machine that is written by hand.
const STRATEGIES: [RunStrategy; 5] = [
    RunStrategy::Always,
    RunStrategy::Manual,
    RunStrategy::Halted,
    RunStrategy::Once,
    RunStrategy::RerunOnFailure,
];
const INSTANCETYPES: [&str; 2] = ["virtualmachineinstancetype", "virtualmachineclusterinstancetype"];
const PREFERENCES: [&str; 2] = ["virtualmachinepreference", "virtualmachineclusterpreference"];

/// What is not in the flags.
pub struct Inputs<'a> {
    /// The namespace, if the user named one.
    pub namespace: Option<&'a str>,
    /// What the password file holds.
    pub password: Option<&'a str>,
    /// A source of random endings for names.
    pub suffix: &'a mut dyn FnMut() -> String,
}

/// A machine, and what its user should be told.
#[derive(Debug)]
pub struct Made {
    /// The machine.
    pub machine: VirtualMachine,
    /// Words for the standard error.
    pub warnings: Vec<String>,
}

/// A machine in the making.
pub(super) struct Draft<'a> {
    pub arguments: &'a Arguments,
    pub name: String,
    pub spec: VirtualMachineSpec,
    pub instance: VirtualMachineInstanceSpec,
    pub cloud_init: cloud_init::Wishes,
    pub warnings: Vec<String>,
    /// Volumes by their place in the boot order.
    pub boot_orders: BTreeMap<u32, String>,
}

/// The machine that the flags describe.
pub fn virtual_machine(arguments: &Arguments, inputs: Inputs<'_>) -> Result<Made, FlagError> {
    let Inputs { namespace, password, suffix } = inputs;
    let mut draft = Draft::new(arguments, suffix)?;
    draft.spec.run_strategy = Some(run_strategy(&arguments.run_strategy)?);
    draft.set_instancetype()?;
    draft.set_preference()?;
    volumes::add(&mut draft)?;
    import::add(&mut draft, suffix)?;
    volumes::add_sysprep(&mut draft)?;
    access::add(&mut draft)?;
    cloud_init::add(&mut draft, password)?;
    infer::instancetype(&mut draft)?;
    infer::preference(&mut draft)?;
    Ok(draft.finish(namespace))
}

impl<'a> Draft<'a> {
    fn new(arguments: &'a Arguments, suffix: &mut dyn FnMut() -> String) -> Result<Self, FlagError> {
        let memory = params::quantity("memory", arguments.memory.as_deref().unwrap_or(MEMORY))?;
        let mut instance = VirtualMachineInstanceSpec {
            termination_grace_period_seconds: Some(arguments.termination_grace_period),
            ..Default::default()
        };
        instance.domain.memory = Some(guest_memory(memory));
        let name = arguments.name.clone().filter(|name| !name.is_empty());
        Ok(Self {
            arguments,
            name: name.unwrap_or_else(|| format!("vm-{}", suffix())),
            spec: VirtualMachineSpec::default(),
            instance,
            cloud_init: cloud_init::Wishes::of(arguments),
            warnings: Vec::new(),
            boot_orders: BTreeMap::new(),
        })
    }

    fn set_instancetype(&mut self) -> Result<(), FlagError> {
        let Some(text) = &self.arguments.instancetype else { return Ok(()) };
        let (kind, name) = reference("instancetype", text, INSTANCETYPES)?;
        self.spec.instancetype = Some(InstancetypeMatcher { name, kind, ..Default::default() });
        self.instance.domain.memory = None;
        Ok(())
    }

    fn set_preference(&mut self) -> Result<(), FlagError> {
        let Some(text) = &self.arguments.preference else { return Ok(()) };
        let (kind, name) = reference("preference", text, PREFERENCES)?;
        self.spec.preference = Some(PreferenceMatcher { name, kind, ..Default::default() });
        Ok(())
    }

    fn finish(self, namespace: Option<&str>) -> Made {
        let template = VmiTemplate { spec: Some(self.instance), ..Default::default() };
        let mut machine = VirtualMachine::new(&self.name, VirtualMachineSpec { template, ..self.spec });
        machine.metadata.namespace = namespace.map(str::to_owned);
        Made { machine, warnings: self.warnings }
    }
}

fn guest_memory(guest: Quantity) -> Memory {
    Memory { guest: Some(guest), ..Default::default() }
}

fn run_strategy(text: &str) -> Result<RunStrategy, FlagError> {
    let found = STRATEGIES.into_iter().find(|strategy| strategy.as_str().eq_ignore_ascii_case(text));
    found.ok_or_else(|| {
        let known: Vec<_> = STRATEGIES.iter().map(RunStrategy::as_str).collect();
        let known = known.join(", ");
        FlagError::new(
            "run-strategy",
            format!("invalid run strategy \"{text}\", supported values are: {known}"),
        )
    })
}

/// The kind and the name of an instance type or preference; admission fills in a kind that is left out.
fn reference(
    flag: &'static str,
    text: &str,
    kinds: [&str; 2],
) -> Result<(Option<String>, Option<String>), FlagError> {
    let (kind, name) = params::prefixed(text).map_err(|problem| FlagError::new(flag, problem))?;
    let kind = kind.map(str::to_ascii_lowercase);
    if let Some(kind) = kind.as_deref().filter(|kind| !kinds.contains(kind)) {
        let known = kinds.join(", ");
        let problem = format!("invalid {flag} kind \"{kind}\", supported values are: {known}");
        return Err(FlagError::new(flag, problem));
    }
    Ok((kind, Some(name.to_owned())))
}
