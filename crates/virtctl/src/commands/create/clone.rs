//! `virtctl create clone`: the request to copy a machine, from flags.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use kubevirt_api::clone::{CloneTemplateFilters, VirtualMachineClone, VirtualMachineCloneSpec};
use kubevirt_api::names::groups;

use super::params::FlagError;

/// Write the manifest of a VirtualMachineClone.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Name of the clone; a random one if left out
    #[arg(long)]
    pub name: Option<String>,
    /// Name of what is copied
    #[arg(long)]
    pub source_name: String,
    /// Name of the copy; a random one if left out
    #[arg(long)]
    pub target_name: Option<String>,
    /// What is copied: vm or vmsnapshot
    #[arg(long, value_name = "TYPE")]
    pub source_type: Option<String>,
    /// What the copy is: vm
    #[arg(long, value_name = "TYPE")]
    pub target_type: Option<String>,
    /// Which labels are copied, as in '*' or '!some/key'; may be given several times
    #[arg(long, value_name = "FILTER")]
    pub label_filter: Vec<String>,
    /// Which annotations are copied; may be given several times
    #[arg(long, value_name = "FILTER")]
    pub annotation_filter: Vec<String>,
    /// Which labels of the template are copied; may be given several times
    #[arg(long, value_name = "FILTER")]
    pub template_label_filter: Vec<String>,
    /// Which annotations of the template are copied; may be given several times
    #[arg(long, value_name = "FILTER")]
    pub template_annotation_filter: Vec<String>,
    /// New hardware address of an interface, as INTERFACE:ADDRESS with dashes or colons in the address; may be given
    /// several times
    #[arg(long, value_name = "INTERFACE:ADDRESS")]
    pub new_mac_address: Vec<String>,
    /// New serial number of the machine
    #[arg(long, value_name = "SERIAL")]
    pub new_smbios_serial: Option<String>,
}

const EXAMPLES: &str = "  # A copy of a VM
  {program} create clone --source-name web --target-name web-2 | kubectl create -f -

  # A VM from a snapshot, without one of the labels
  {program} create clone --source-name before-update --source-type vmsnapshot --label-filter '*' --label-filter '!team'";

const FIRST_COLON: &str = "For example: 'interface0:address0'";

/// The clone that the flags describe.
pub fn clone(
    arguments: &Arguments,
    namespace: Option<&str>,
    suffix: &mut dyn FnMut() -> String,
) -> Result<VirtualMachineClone, FlagError> {
    if arguments.source_name.is_empty() {
        return Err(FlagError::new("source-name", "source name must not be empty"));
    }
    let source_kind = arguments.source_type.as_deref().filter(|kind| !kind.is_empty()).unwrap_or("vm");
    let target_kind = arguments.target_type.as_deref().filter(|kind| !kind.is_empty()).unwrap_or("vm");
    let filters = |filters: &Vec<String>| Some(filters.clone()).filter(|filters| !filters.is_empty());
    let template = CloneTemplateFilters {
        annotation_filters: filters(&arguments.template_annotation_filter),
        label_filters: filters(&arguments.template_label_filter),
    };
    let spec = VirtualMachineCloneSpec {
        source: source(source_kind, &arguments.source_name)?,
        target: Some(target(target_kind, arguments.target_name.as_deref().unwrap_or_default())?),
        annotation_filters: filters(&arguments.annotation_filter),
        label_filters: filters(&arguments.label_filter),
        template: Some(template).filter(|template| *template != CloneTemplateFilters::default()),
        new_mac_addresses: addresses(&arguments.new_mac_address)?,
        new_sm_bios_serial: arguments.new_smbios_serial.clone().filter(|serial| !serial.is_empty()),
        ..Default::default()
    };
    let name = arguments.name.clone().filter(|name| !name.is_empty());
    let mut clone = VirtualMachineClone::new(&name.unwrap_or_else(|| format!("clone-{}", suffix())), spec);
    clone.metadata.namespace = namespace.map(str::to_owned);
    Ok(clone)
}

fn reference(group: &str, kind: &str, name: &str) -> TypedLocalObjectReference {
    TypedLocalObjectReference { api_group: Some(group.into()), kind: kind.into(), name: name.into() }
}

fn source(kind: &str, name: &str) -> Result<TypedLocalObjectReference, FlagError> {
    match kind.to_ascii_lowercase().as_str() {
        "vm" | "virtualmachine" => Ok(reference(groups::KUBEVIRT, "VirtualMachine", name)),
        "snapshot" | "vmsnapshot" | "virtualmachinesnapshot" => {
            Ok(reference(groups::SNAPSHOT, "VirtualMachineSnapshot", name))
        }
        _ => {
            let problem = format!("source type {kind} is not supported. Supported types: vm, vmsnapshot");
            Err(FlagError::new("source-type", problem))
        }
    }
}

fn target(kind: &str, name: &str) -> Result<TypedLocalObjectReference, FlagError> {
    match kind.to_ascii_lowercase().as_str() {
        "vm" | "virtualmachine" => Ok(reference(groups::KUBEVIRT, "VirtualMachine", name)),
        _ => {
            let problem = format!("target type {kind} is not supported. Supported types: vm");
            Err(FlagError::new("target-type", problem))
        }
    }
}

/// Addresses by interface. The name of an interface has no colon in it, so that the first one ends it: an address
/// with colons, as they are usually written, needs no second spelling.
fn addresses(texts: &[String]) -> Result<Option<BTreeMap<String, String>>, FlagError> {
    let one = |text: &String| {
        let problem = |words: String| FlagError::new("new-mac-address", words);
        let (interface, address) = text.split_once(':').ok_or_else(|| {
            problem(format!("newMacAddress parameter {text} is invalid: a ':' is expected. {FIRST_COLON}"))
        })?;
        if interface.is_empty() {
            return Err(problem(format!("newMacAddress parameter {text} has empty interface name")));
        }
        if address.is_empty() {
            return Err(problem(format!("newMacAddress parameter {text} has empty address name")));
        }
        Ok((interface.to_owned(), address.to_owned()))
    };
    let all = texts.iter().map(one).collect::<Result<BTreeMap<_, _>, _>>()?;
    Ok(Some(all).filter(|all| !all.is_empty()))
}
