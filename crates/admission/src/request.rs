//! Who asks for what: the parts of an admission request that rules look at.

use std::collections::{BTreeMap, BTreeSet};

use kubevirt_api::names::accounts;

/// What is done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is removed.
    Delete,
}

/// The parts of an admission request that rules look at.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is done.
    pub operation: Operation,
    /// The namespace of the object; empty for objects outside of namespaces.
    pub namespace: String,
    /// The name of the object; empty while it is to be generated.
    pub name: String,
    /// The subresource that is written, such as `status`; empty for the object itself.
    pub subresource: String,
    /// Who asks.
    pub user: User,
    /// Whether nothing is going to be stored.
    pub dry_run: bool,
}

/// Who asks.
#[derive(Clone, Debug, Default)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// The groups that the user is in.
    pub groups: Vec<String>,
    /// What else was found out about the user, such as the node that a token was given to.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The service accounts of our own components, which may write what users may not.
#[derive(Clone, Debug, Default)]
pub struct OwnAccounts(BTreeSet<String>);

impl OwnAccounts {
    /// The accounts of an installation in this namespace.
    pub fn of_installation(namespace: &str) -> Self {
        Self(accounts::ALL.iter().map(|name| format!("system:serviceaccount:{namespace}:{name}")).collect())
    }

    /// Whether the user is one of our own components.
    pub fn contains(&self, user: &User) -> bool {
        self.0.contains(&user.name)
    }
}
