//! What becomes of the references in stored VMs, as the cluster's policy says.

use kubevirt_api::kubevirt::configuration::InstancetypeReferencePolicy;
use kubevirt_api::vm::VirtualMachine;

use super::reference::Role;
use super::revision::noted;

/// What is done about a VM's references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Copies of what they name are kept in ControllerRevisions.
    Keep,
    /// What they name is written into the VM, and the references go.
    Expand,
    /// Nothing.
    Leave,
}

/// What is done about the references of a VM.
pub fn treatment(policy: &InstancetypeReferencePolicy, vm: &VirtualMachine) -> Treatment {
    if Role::ALL.iter().all(|role| role.matcher(vm).is_none()) {
        return Treatment::Leave;
    }
    let has_kept = || Role::ALL.iter().any(|role| noted(role.status(vm)).is_some());
    match policy {
        InstancetypeReferencePolicy::Reference => Treatment::Keep,
        InstancetypeReferencePolicy::Expand if has_kept() => Treatment::Leave,
        InstancetypeReferencePolicy::Expand | InstancetypeReferencePolicy::ExpandAll => Treatment::Expand,
        InstancetypeReferencePolicy::Other(_) => Treatment::Leave,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::read;

    #[test]
    fn a_vm_that_has_revisions_is_only_expanded_with_all() {
        let kept = |role: &str| json!({ role: { "controllerRevisionRef": { "name": "r" } } });
        let unkept = json!({ "instancetypeRef": { "name": "a" } });
        let matcher = |role: &str| json!({ role: { "name": "a" }, "template": {} });
        let none = json!({ "template": {} });
        let cases = [
            ("reference", matcher("instancetype"), Value::Null, Treatment::Keep),
            ("reference", matcher("preference"), kept("preferenceRef"), Treatment::Keep),
            ("reference", none.clone(), Value::Null, Treatment::Leave),
            ("expand", matcher("instancetype"), Value::Null, Treatment::Expand),
            ("expand", matcher("instancetype"), unkept, Treatment::Expand),
            ("expand", matcher("instancetype"), kept("instancetypeRef"), Treatment::Leave),
            ("expand", matcher("instancetype"), kept("preferenceRef"), Treatment::Leave),
            ("expandAll", matcher("preference"), kept("preferenceRef"), Treatment::Expand),
            ("expandAll", none, kept("preferenceRef"), Treatment::Leave),
            ("forget", matcher("instancetype"), Value::Null, Treatment::Leave),
        ];
        for (policy, spec, status, expected) in cases {
            let vm = read(json!({ "spec": spec, "status": status }));
            let policy = InstancetypeReferencePolicy::from(policy);
            assert_eq!(treatment(&policy, &vm), expected, "{policy} {spec} {status}");
        }
    }
}
