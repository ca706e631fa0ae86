//! One rule of a role.

use serde_json::{Value, json};

/// Who looks, and keeps looking.
pub(super) const READ: &[&str] = &["get", "list", "watch"];
/// Who owns objects of a kind. Nothing of ours puts whole objects back, so there is no `update`.
pub(super) const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

/// What may be done to some resources of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    names: &'static [&'static str],
}

impl Rule {
    /// On all objects.
    pub(super) const fn new(
        group: &'static str,
        resources: &'static [&'static str],
        verbs: &'static [&'static str],
    ) -> Self {
        Self { group, resources, verbs, names: &[] }
    }

    /// On objects of these names only.
    pub(super) const fn named(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }

    /// As a role has it.
    pub(super) fn to_value(self) -> Value {
        let mut value =
            json!({ "apiGroups": [self.group], "resources": self.resources, "verbs": self.verbs });
        if !self.names.is_empty() {
            value["resourceNames"] = json!(self.names);
        }
        value
    }
}
