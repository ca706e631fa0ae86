//! Which path answers for what.

use kubevirt_admission::review::{Incoming, Steps};

/// A path that reviews are sent to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hook {
    /// The path.
    pub(super) path: &'static str,
    /// Whether defaults are filled in or a verdict is given.
    pub(super) steps: Steps,
    /// The kinds that it is for.
    pub(super) kinds: &'static [&'static str],
    /// The subresource that it is for.
    pub(super) subresource: &'static str,
}

const fn mutate(path: &'static str, kinds: &'static [&'static str]) -> Hook {
    Hook { path, steps: Steps::Prepare, kinds, subresource: "" }
}

const fn validate(path: &'static str, kinds: &'static [&'static str]) -> Hook {
    Hook { path, steps: Steps::Validate, kinds, subresource: "" }
}

/// The path of evictions, which are answered in a way of their own.
pub(super) const EVICTIONS: &str = "/pod-eviction-validate";

/// All other paths.
pub(super) const HOOKS: [Hook; 25] = [
    mutate("/virtualmachines-mutate", &["VirtualMachine"]),
    mutate("/virtualmachineinstances-mutate", &["VirtualMachineInstance"]),
    mutate("/migration-mutate-create", &["VirtualMachineInstanceMigration"]),
    mutate("/vm-clone-mutate-create", &["VirtualMachineClone"]),
    validate("/virtualmachineinstances-validate-create", &["VirtualMachineInstance"]),
    validate("/virtualmachineinstances-validate-update", &["VirtualMachineInstance"]),
    validate("/virtualmachines-validate", &["VirtualMachine"]),
    validate("/virtualmachinereplicaset-validate", &["VirtualMachineInstanceReplicaSet"]),
    validate("/virtualmachinepool-validate", &["VirtualMachinePool"]),
    validate("/vmipreset-validate", &["VirtualMachineInstancePreset"]),
    validate("/migration-validate-create", &["VirtualMachineInstanceMigration"]),
    validate("/migration-validate-update", &["VirtualMachineInstanceMigration"]),
    validate("/virtualmachinesnapshots-validate", &["VirtualMachineSnapshot"]),
    validate("/virtualmachinerestores-validate", &["VirtualMachineRestore"]),
    validate("/virtualmachinebackups-validate", &["VirtualMachineBackup"]),
    validate("/virtualmachinebackuptrackers-validate", &["VirtualMachineBackupTracker"]),
    validate("/virtualmachineexports-validate", &["VirtualMachineExport"]),
    validate("/virtualmachineinstancetypes-validate", &["VirtualMachineInstancetype"]),
    validate("/virtualmachineclusterinstancetypes-validate", &["VirtualMachineClusterInstancetype"]),
    validate("/virtualmachinepreferences-validate", &["VirtualMachinePreference"]),
    validate("/virtualmachineclusterpreferences-validate", &["VirtualMachineClusterPreference"]),
    validate("/migration-policy-validate-create", &["MigrationPolicy"]),
    validate("/vm-clone-validate-create", &["VirtualMachineClone"]),
    validate("/plugin-validate", &["Plugin"]),
    Hook {
        subresource: "status",
        ..validate(
            "/status-validate",
            &["VirtualMachine", "VirtualMachineInstanceReplicaSet", "VirtualMachineInstanceMigration"],
        )
    },
];

impl Hook {
    /// Why a request does not belong here, if it does not.
    pub(super) fn objection(&self, incoming: &Incoming) -> Option<String> {
        let (kind, subresource) = (&incoming.resource.kind, &incoming.request.subresource);
        if !self.kinds.contains(&kind.as_str()) {
            return Some(format!("{} is for {}, not for {kind:?}", self.path, self.kinds.join(", ")));
        }
        if subresource != self.subresource {
            return Some(format!("{} is not for the subresource {subresource:?}", self.path));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kubevirt_api::crd::KINDS;
    use serde_json::{Value, json};

    use super::*;

    fn incoming(kind: &str, subresource: &str) -> Incoming {
        let mut incoming = Incoming::creation(json!({ "kind": kind, "metadata": Value::Null }));
        incoming.request.subresource = subresource.to_owned();
        incoming
    }

    #[test]
    fn paths_and_kinds_are_known_and_paths_differ() {
        let paths: BTreeSet<&str> = HOOKS.iter().map(|hook| hook.path).collect();
        assert_eq!(paths.len(), HOOKS.len());
        for hook in HOOKS {
            for kind in hook.kinds {
                assert!(KINDS.iter().any(|known| known.name == *kind), "{kind}");
                assert_eq!(hook.objection(&incoming(kind, hook.subresource)), None);
            }
        }
    }

    #[test]
    fn what_does_not_belong_is_refused() {
        let hook = |path: &str| HOOKS.into_iter().find(|hook| hook.path == path).unwrap();
        let vm = hook("/virtualmachines-validate");
        assert!(vm.objection(&incoming("VirtualMachineInstance", "")).is_some());
        assert!(vm.objection(&incoming("VirtualMachine", "status")).is_some());
        assert!(hook("/status-validate").objection(&incoming("VirtualMachine", "")).is_some());
    }
}
