//! An object as the API server gave it: our type to decide by, and the text to compare with.

use std::ops::Deref;

use kube::core::params::GetParams;
use kube::{Client, Resource};
use kubevirt_component::patch::is_gone;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::failure::{About, Failure};
use crate::cluster::is_name;

/// An object as the API server gave it.
#[derive(Clone, Debug)]
pub struct Seen<K> {
    raw: Value,
    object: K,
}

impl<K> Deref for Seen<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.object
    }
}

impl<K: DeserializeOwned> Seen<K> {
    /// From what the API server gave.
    pub fn of(raw: Value) -> serde_json::Result<Self> {
        Ok(Self { object: serde_json::from_value(raw.clone())?, raw })
    }

    /// What stands at a path, exactly; null if nothing does.
    pub fn at(&self, path: &str) -> &Value {
        self.raw.pointer(path).unwrap_or(&Value::Null)
    }
}

/// The object of this name, or none. Names come from users and become parts of paths, so the API server is asked only
/// for those that an object can have.
pub async fn look<K>(client: &Client, namespace: &str, name: &str) -> Result<Option<Seen<K>>, Failure>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let what = K::kind(&()).to_lowercase();
    let failed = |error: &dyn std::fmt::Display| {
        Failure::internal(format!("unable to retrieve {what} [{name}]: {error}"))
    };
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    if !is_name(name) || !namespace.is_none_or(is_name) {
        return Ok(None);
    }
    let request = kube::core::Request::new(K::url_path(&(), namespace)).get(name, &GetParams::default());
    let request = request.map_err(|error| failed(&error))?;
    match client.request::<Value>(request).await {
        Ok(raw) => Seen::of(raw).map(Some).map_err(|error| failed(&error)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}

/// The object of this name, which must be there.
pub async fn fetch<K>(client: &Client, about: About, namespace: &str, name: &str) -> Result<Seen<K>, Failure>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    look(client, namespace, name).await?.ok_or_else(|| Failure::not_found(about, name))
}
