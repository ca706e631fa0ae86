//! Changes to objects that hold only as long as nobody else changed the same.

use kube::api::{Patch, PatchParams};
use kube::core::Request;
use kube::{Client, Resource};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde::de::IgnoredAny;
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
    /// How a client is told that somebody else was faster.
    pub race: Race,
}

/// How a client is told that somebody else changed the same in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Race {
    /// As a conflict.
    #[default]
    Conflict,
    /// In the API server's own words, by which clients know that they may ask again.
    Verbatim,
}

impl Change {
    /// Nothing so far.
    pub fn of(target: Target) -> Self {
        Self { target, operations: Vec::new(), race: Race::default() }
    }

    /// Clients ask again if somebody else was faster.
    pub fn asked_again(mut self) -> Self {
        self.race = Race::Verbatim;
        self
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

    /// Gives an object without a status its first one, unless somebody else gave it one in between.
    pub fn first_status<K: serde::de::DeserializeOwned>(self, seen: &Seen<K>, status: Value) -> Self {
        self.unchanged(seen, "/status").put(seen, "/status", status)
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
                (About::Machine, send::<VirtualMachine>(client, object, None, &parameters, &patch).await)
            }
            Target::MachineStatus => {
                let part = Some("status");
                (About::Machine, send::<VirtualMachine>(client, object, part, &parameters, &patch).await)
            }
            Target::Instance => (
                About::Instance,
                send::<VirtualMachineInstance>(client, object, None, &parameters, &patch).await,
            ),
        };
        result.map_err(|error| refused(self.race, about, object.name, &error))
    }
}

async fn send<K: Resource<DynamicType = ()>>(
    client: &Client,
    object: &Object<'_>,
    part: Option<&str>,
    parameters: &PatchParams,
    patch: &Patch<()>,
) -> kube::Result<()> {
    let all = Request::new(K::url_path(&(), Some(object.namespace)));
    let request = match part {
        Some(part) => all.patch_subresource(part, object.name, parameters, patch),
        None => all.patch(object.name, parameters, patch),
    };
    let request = request.map_err(kube::Error::BuildRequest)?.map(as_stored);
    client.request::<IgnoredAny>(request).await.map(drop)
}

/// JSON as API servers write it. They hold what a test names against what is stored letter by letter, and write some
/// letters in another way than we do.
fn as_stored(json: Vec<u8>) -> Vec<u8> {
    let Ok(text) = String::from_utf8(json) else { return Vec::new() };
    // All of these can only stand in strings.
    let escaped = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    escaped.iter().fold(text, |text, (letter, code)| text.replace(*letter, code)).into_bytes()
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
fn refused(race: Race, about: About, name: &str, error: &kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) if status.code == 404 => Failure::not_found(about, name),
        kube::Error::Api(status) if status.code == 409 => Failure::conflict(about, name, &status.message),
        kube::Error::Api(status) if race == Race::Conflict && failed_test(&status.message) => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_written_as_api_servers_write_them() {
        let value = json!({ "a<b": "x && y > \"z\"\u{2028}\u{2029} ü \\u003c" });
        let written = as_stored(value.to_string().into_bytes());
        let text = String::from_utf8(written.clone()).unwrap();
        assert_eq!(text, r#"{"a\u003cb":"x \u0026\u0026 y \u003e \"z\"\u2028\u2029 ü \\u003c"}"#);
        assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), value);
    }
}
