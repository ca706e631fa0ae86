//! The reference of a VM to its instance type or to its preference.

use std::collections::BTreeMap;

use kubevirt_api::names::{annotations, labels};
use kubevirt_api::vm::status::InstancetypeStatusRef;
use kubevirt_api::vm::{
    InferFromVolumeFailurePolicy, InstancetypeMatcher, PreferenceMatcher, VirtualMachine,
};

/// What a VM can refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The size of the VM.
    Instancetype,
    /// The settings that the guest prefers.
    Preference,
}

/// Where the object is that a reference names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In the VM's own namespace.
    Namespace,
    /// Outside of namespaces.
    Cluster,
}

/// How a role is called in fields, kinds, labels and annotations.
struct Words {
    what: &'static str,
    field: &'static str,
    kinds: [(&'static str, Scope, &'static str); 2],
    name_label: &'static str,
    kind_label: &'static str,
}

const INSTANCETYPE: Words = Words {
    what: "instance type",
    field: "spec.instancetype",
    kinds: [
        ("VirtualMachineInstancetype", Scope::Namespace, annotations::INSTANCETYPE),
        ("VirtualMachineClusterInstancetype", Scope::Cluster, annotations::CLUSTER_INSTANCETYPE),
    ],
    name_label: labels::DEFAULT_INSTANCETYPE,
    kind_label: labels::DEFAULT_INSTANCETYPE_KIND,
};

const PREFERENCE: Words = Words {
    what: "preference",
    field: "spec.preference",
    kinds: [
        ("VirtualMachinePreference", Scope::Namespace, annotations::PREFERENCE),
        ("VirtualMachineClusterPreference", Scope::Cluster, annotations::CLUSTER_PREFERENCE),
    ],
    name_label: labels::DEFAULT_PREFERENCE,
    kind_label: labels::DEFAULT_PREFERENCE_KIND,
};

/// A reference, whichever its role; what it leaves open is empty.
#[derive(Clone, Copy, Debug)]
pub struct Matcher<'a> {
    /// The name of the object.
    pub name: &'a str,
    /// The kind of the object, or of its resource, in any case.
    pub kind: &'a str,
    /// The ControllerRevision that holds the copy to use.
    pub revision_name: &'a str,
    /// The volume that says which object it is.
    pub infer_from_volume: &'a str,
    /// What becomes of a VM whose volume does not say.
    pub failure_policy: Option<&'a InferFromVolumeFailurePolicy>,
}

impl Role {
    /// Both, in the order in which they are looked at.
    pub const ALL: [Self; 2] = [Self::Instancetype, Self::Preference];

    fn words(self) -> &'static Words {
        match self {
            Self::Instancetype => &INSTANCETYPE,
            Self::Preference => &PREFERENCE,
        }
    }

    /// What messages call it.
    pub fn what(self) -> &'static str {
        self.words().what
    }

    /// The field of a VM that holds the reference.
    pub fn field(self) -> &'static str {
        self.words().field
    }

    /// The kinds that the reference may name.
    pub fn kinds(self) -> [&'static str; 2] {
        self.words().kinds.map(|(kind, ..)| kind)
    }

    /// The label of a volume that names the object.
    pub fn name_label(self) -> &'static str {
        self.words().name_label
    }

    /// The label of a volume that names the object's kind.
    pub fn kind_label(self) -> &'static str {
        self.words().kind_label
    }

    /// Where objects of this kind are: it may be written in any case and as a plural, and means the cluster's
    /// where it is empty. Nothing for a kind that cannot be referred to.
    pub fn scope(self, kind: &str) -> Option<Scope> {
        self.kind_named(kind).map(|(_, scope, _)| scope)
    }

    fn kind_named(self, kind: &str) -> Option<(&'static str, Scope, &'static str)> {
        let singular = kind.strip_suffix(['s', 'S']).unwrap_or(kind);
        let mut kinds = self.words().kinds.into_iter();
        kinds.find(|(known, scope, _)| {
            known.eq_ignore_ascii_case(singular) || kind.is_empty() && *scope == Scope::Cluster
        })
    }

    /// The reference of a VM.
    pub fn matcher(self, vm: &VirtualMachine) -> Option<Matcher<'_>> {
        match self {
            Self::Instancetype => vm.spec.instancetype.as_ref().map(Matcher::from),
            Self::Preference => vm.spec.preference.as_ref().map(Matcher::from),
        }
    }

    /// What the VM's status says of the reference.
    pub fn status(self, vm: &VirtualMachine) -> Option<&InstancetypeStatusRef> {
        let status = vm.status.as_ref()?;
        match self {
            Self::Instancetype => status.instancetype_ref.as_ref(),
            Self::Preference => status.preference_ref.as_ref(),
        }
    }

    /// Makes the VM refer to an object by name, or to none.
    pub(super) fn refer(self, vm: &mut VirtualMachine, object: Option<(String, String)>) {
        let filled = |text: String| Some(text).filter(|text| !text.is_empty());
        let object = object.map(|(name, kind)| (filled(name), filled(kind)));
        match self {
            Self::Instancetype => {
                vm.spec.instancetype =
                    object.map(|(name, kind)| InstancetypeMatcher { name, kind, ..Default::default() });
            }
            Self::Preference => {
                vm.spec.preference =
                    object.map(|(name, kind)| PreferenceMatcher { name, kind, ..Default::default() });
            }
        }
    }

    /// Notes in the annotations of an instance what its VM refers to.
    pub(super) fn annotate(self, vm: &VirtualMachine, annotations: &mut Option<BTreeMap<String, String>>) {
        let Some(matcher) = self.matcher(vm) else { return };
        if let Some((.., annotation)) = self.kind_named(matcher.kind) {
            let annotations = annotations.get_or_insert_default();
            annotations.insert(annotation.to_owned(), matcher.name.to_owned());
        }
    }
}

macro_rules! matcher {
    ($($matcher:ty),+) => {
        $(impl<'a> From<&'a $matcher> for Matcher<'a> {
            fn from(matcher: &'a $matcher) -> Self {
                Self {
                    name: matcher.name.as_deref().unwrap_or_default(),
                    kind: matcher.kind.as_deref().unwrap_or_default(),
                    revision_name: matcher.revision_name.as_deref().unwrap_or_default(),
                    infer_from_volume: matcher.infer_from_volume.as_deref().unwrap_or_default(),
                    failure_policy: matcher.infer_from_volume_failure_policy.as_ref(),
                }
            }
        })+
    };
}

matcher!(InstancetypeMatcher, PreferenceMatcher);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_may_be_written_in_any_case_and_as_a_plural() {
        let cases = [
            (Role::Instancetype, "", Some(Scope::Cluster)),
            (Role::Instancetype, "VirtualMachineInstancetype", Some(Scope::Namespace)),
            (Role::Instancetype, "virtualmachineinstancetypes", Some(Scope::Namespace)),
            (Role::Instancetype, "VirtualMachineClusterInstancetype", Some(Scope::Cluster)),
            (Role::Instancetype, "VIRTUALMACHINECLUSTERINSTANCETYPES", Some(Scope::Cluster)),
            (Role::Instancetype, "VirtualMachinePreference", None),
            (Role::Instancetype, "s", None),
            (Role::Preference, "", Some(Scope::Cluster)),
            (Role::Preference, "virtualMachinePreference", Some(Scope::Namespace)),
            (Role::Preference, "virtualmachineclusterpreferences", Some(Scope::Cluster)),
            (Role::Preference, "VirtualMachineInstancetype", None),
        ];
        for (role, kind, expected) in cases {
            assert_eq!(role.scope(kind), expected, "{role:?} {kind}");
        }
    }
}
