//! Changes to objects that hold only as long as nobody else changed the same.

use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};

use super::failure::{About, Failure};
use super::seen::Seen;

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A virtual machine.
    Machine,
    /// The status of a virtual machine.
    MachineStatus,
    /// An instance.
    Instance,
}

/// A change to an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Of what.
    pub target: Target,
    /// The operations of a JSON patch.
    pub operations: Vec<Value>,
}

impl Change {
    /// Nothing so far.
    pub fn of(target: Target) -> Self {
        Self { target, operations: Vec::new() }
    }

    /// Only if this is what stands at the path; null stands for nothing.
    pub fn test(mut self, path: &str, value: &Value) -> Self {
        self.operations.push(json!({ "op": "test", "path": path, "value": value }));
        self
    }

    /// Only if the same stands at the path as was seen.
    pub fn unchanged<K: serde::de::DeserializeOwned>(self, seen: &Seen<K>, path: &str) -> Self {
        self.test(path, seen.at(path))
    }

    /// Puts a value where something else, or nothing, was seen.
    pub fn put<K: serde::de::DeserializeOwned>(mut self, seen: &Seen<K>, path: &str, value: Value) -> Self {
        let op = if seen.at(path).is_null() { "add" } else { "replace" };
        self.operations.push(json!({ "op": op, "path": path, "value": value }));
        self
    }

    /// Takes away what stands at the path.
    pub fn remove(mut self, path: &str) -> Self {
        self.operations.push(json!({ "op": "remove", "path": path }));
        self
    }

    /// Carries it out.
    pub async fn apply(&self, client: &Client, object: &Object<'_>) -> Result<(), Failure> {
        let operations = serde_json::from_value(self.operations.clone().into()).map_err(Failure::internal)?;
        let patch = Patch::<()>::Json(operations);
        let parameters = PatchParams { dry_run: object.dry_run, ..PatchParams::default() };
        let (about, result) = match self.target {
            Target::Machine => {
                let api: Api<VirtualMachine> = Api::namespaced(client.clone(), object.namespace);
                (About::Machine, api.patch(object.name, &parameters, &patch).await.map(drop))
            }
            Target::MachineStatus => {
                let api: Api<VirtualMachine> = Api::namespaced(client.clone(), object.namespace);
                (About::Machine, api.patch_status(object.name, &parameters, &patch).await.map(drop))
            }
            Target::Instance => {
                let api: Api<VirtualMachineInstance> = Api::namespaced(client.clone(), object.namespace);
                (About::Instance, api.patch(object.name, &parameters, &patch).await.map(drop))
            }
        };
        result.map_err(|error| refused(about, object.name, &error))
    }
}

/// The object that a request is about, and whether it only tries.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    /// Where it is.
    pub namespace: &'a str,
    /// What it is called.
    pub name: &'a str,
    /// Whether nothing is to be changed.
    pub dry_run: bool,
}

/// Why the API server did not take a change.
fn refused(about: About, name: &str, error: &kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) if status.code == 404 => Failure::not_found(about, name),
        kube::Error::Api(status) if status.code == 409 => Failure::conflict(about, name, &status.message),
        kube::Error::Api(status) if failed_test(&status.message) => {
            Failure::conflict(about, name, "jsonpatch test operation does not apply: it changed in between")
        }
        other => Failure::from_api(other, "unable to patch"),
    }
}

/// Whether something else stood at a path than was seen. The API server only says that it could not apply the patch,
/// and ours apply to anything that is as it was seen.
fn failed_test(message: &str) -> bool {
    message == "the server rejected our request due to an error in our request"
        || message.contains("jsonpatch test operation does not apply")
        || message.contains("test failed")
}
