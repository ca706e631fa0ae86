//! Which instance is the machine's: the one of its name, unless it is somebody else's.

use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;

use crate::vm::view;

/// Whose the instance of the machine's name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// There is no such instance.
    Absent,
    /// The machine's.
    Ours,
    /// Nobody's: it becomes the machine's.
    Orphan,
    /// Somebody else's, or nobody's and not to be taken.
    Foreign,
}

/// Finds out whose an instance is. Neither a machine nor an instance that is being deleted enters a new bond.
pub fn claim(vm: &VirtualMachine, vmi: Option<&VirtualMachineInstance>) -> Claim {
    let Some(vmi) = vmi else { return Claim::Absent };
    match view::controller(&vmi.metadata) {
        Some(owner) if Some(&owner.uid) == vm.metadata.uid.as_ref() => Claim::Ours,
        Some(_) => Claim::Foreign,
        None if view::is_deleting(&vm.metadata) || view::is_deleting(&vmi.metadata) => Claim::Foreign,
        None => Claim::Orphan,
    }
}

/// The instance with the machine as its owner.
pub fn adopted(vm: &VirtualMachine, vmi: &VirtualMachineInstance) -> VirtualMachineInstance {
    let mut vmi = vmi.clone();
    vmi.metadata.owner_references.get_or_insert_default().push(view::owner_reference(vm));
    vmi
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::testing::read;
    use serde_json::json;

    #[test]
    fn only_an_orphan_of_its_name_is_taken_and_never_on_the_way_out() {
        let owned = |uid: &str| json!([{ "apiVersion": "v1", "kind": "K", "name": "n", "uid": uid, "controller": true }]);
        let mentioned = json!([{ "apiVersion": "v1", "kind": "K", "name": "n", "uid": "other" }]);
        let gone = json!("2026-01-01T00:00:00Z");
        let cases = [
            (json!({}), None, Claim::Absent),
            (json!({}), Some(json!({})), Claim::Orphan),
            (json!({}), Some(json!({ "ownerReferences": mentioned })), Claim::Orphan),
            (json!({}), Some(json!({ "ownerReferences": owned("me") })), Claim::Ours),
            (json!({}), Some(json!({ "ownerReferences": owned("other") })), Claim::Foreign),
            (json!({}), Some(json!({ "deletionTimestamp": gone })), Claim::Foreign),
            (json!({ "deletionTimestamp": gone }), Some(json!({})), Claim::Foreign),
            (
                json!({ "deletionTimestamp": gone }),
                Some(json!({ "deletionTimestamp": gone, "ownerReferences": owned("me") })),
                Claim::Ours,
            ),
        ];
        for (metadata, vmi, expected) in cases {
            let mut vm: VirtualMachine = read(json!({ "metadata": metadata }));
            vm.metadata.uid = Some("me".to_owned());
            let vmi: Option<VirtualMachineInstance> =
                vmi.map(|metadata| read(json!({ "metadata": metadata })));
            assert_eq!(claim(&vm, vmi.as_ref()), expected, "{vmi:?}");
            if expected == Claim::Orphan {
                let taken = adopted(&vm, &vmi.unwrap());
                assert_eq!(claim(&vm, Some(&taken)), Claim::Ours);
            }
        }
    }
}
