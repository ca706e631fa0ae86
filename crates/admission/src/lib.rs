//! Defaults and validation: pure functions on the API types.
//!
//! `mutate` fills in what an object leaves open, `validate` finds everything that is wrong with it, and
//! `instancetype` turns a VM with an instance type and a preference into the instance that it asks for.
//! What they need to know of the cluster is in the [`Context`]; nothing here reads a clock, a file or a socket.

pub mod config;
pub mod gates;
pub mod instancetype;
pub mod mutate;
pub mod objects;
mod path;
pub mod problem;
pub mod request;
pub mod review;
#[cfg(test)]
mod testing;
pub mod validate;

pub use config::ClusterConfig;
pub use gates::Gate;
pub use objects::{KnownObjects, Objects};
pub use path::Path;
pub use problem::{Problem, Problems, Reason};
pub use request::{Operation, OwnAccounts, Request, User};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use uuid::Uuid;

/// All that a rule may know beside the object itself.
pub struct Context<'a> {
    /// Who asks for what.
    pub request: &'a Request,
    /// What the installation is set to.
    pub config: &'a ClusterConfig,
    /// The other objects of the cluster.
    pub objects: &'a dyn Objects,
    /// The service accounts of our own components.
    pub own_accounts: &'a OwnAccounts,
    /// The present time.
    pub now: Time,
    /// A source of fresh random UUIDs.
    pub fresh_uuid: &'a dyn Fn() -> Uuid,
}

impl Context<'_> {
    /// Whether one of our own components asks.
    pub fn by_own_component(&self) -> bool {
        self.own_accounts.contains(&self.request.user)
    }

    /// Whether this one of our own components asks, by the name of its service account.
    pub fn by_account(&self, name: &str) -> bool {
        self.by_own_component() && self.request.user.name.rsplit(':').next() == Some(name)
    }
}
