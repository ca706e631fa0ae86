//! What machines are made after, as far as it may be told: names of users' own types are their business.

use kubevirt_admission::instancetype::{Role, Scope};
use kubevirt_api::names::annotations;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;

/// Whose names are told.
const VENDORS: [&str; 2] = ["kubevirt.io", "redhat.com"];

/// What is told of others.
const OTHER: &str = "<other>";

/// Says who made what a role refers to: role, scope, namespace and name.
pub type Vendors<'a> = &'a dyn Fn(Role, Scope, &str, &str) -> Option<String>;

/// The instance type and the preference of a machine, or nothing.
pub fn of_machine(vendors: Vendors<'_>, vm: &VirtualMachine) -> [String; 2] {
    let namespace = vm.metadata.namespace.as_deref().unwrap_or_default();
    Role::ALL.map(|role| {
        let Some(matcher) = role.matcher(vm) else { return String::new() };
        let Some(scope) = role.scope(matcher.kind) else { return String::new() };
        told(vendors(role, scope, namespace, matcher.name), matcher.name)
    })
}

/// The instance type and the preference of an instance, or nothing.
pub fn of_instance(vendors: Vendors<'_>, vmi: &VirtualMachineInstance) -> [String; 2] {
    let namespace = vmi.metadata.namespace.as_deref().unwrap_or_default();
    Role::ALL.map(|role| {
        let (own, shared) = match role {
            Role::Instancetype => (annotations::INSTANCETYPE, annotations::CLUSTER_INSTANCETYPE),
            Role::Preference => (annotations::PREFERENCE, annotations::CLUSTER_PREFERENCE),
        };
        let noted = vmi.metadata.annotations.as_ref();
        let name = |scope, mark: &str| Some((scope, noted?.get(mark)?));
        match name(Scope::Namespace, own).or_else(|| name(Scope::Cluster, shared)) {
            Some((scope, name)) => told(vendors(role, scope, namespace, name), name),
            None => String::new(),
        }
    })
}

fn told(vendor: Option<String>, name: &str) -> String {
    let known = vendor.is_some_and(|vendor| VENDORS.contains(&vendor.as_str()));
    if known { name } else { OTHER }.to_owned()
}
