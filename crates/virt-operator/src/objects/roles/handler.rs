//! virt-handler: reports on the instances of its node and labels the node.

use kubevirt_api::names::components::secrets;
use kubevirt_api::names::{accounts, groups};

use super::Rights;
use super::rules::{READ, Rule};

/// Roles do not know nodes: a policy holds a handler to its own.
pub(super) fn rights() -> Rights {
    const CHANGE: &[&str] = &["get", "list", "watch", "patch"];
    Rights {
        account: accounts::HANDLER,
        global: vec![
            Rule::new(groups::KUBEVIRT, &["virtualmachineinstances"], CHANGE),
            Rule::new(groups::KUBEVIRT, &["kubevirts"], READ),
            Rule::new("", &["nodes"], CHANGE),
            Rule::new("", &["events"], &["create", "patch"]),
        ],
        local: vec![Rule::new("", &["configmaps"], READ).named(&[secrets::CA])],
    }
}
