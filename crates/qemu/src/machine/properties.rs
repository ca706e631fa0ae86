//! QEMU's objects and their properties.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Machine;
use crate::qmp::QmpError;

impl Machine {
    /// Creates an object: `qom-type`, `id` and its properties, as in `-object`.
    pub async fn add_object(&self, object: impl Serialize) -> Result<(), QmpError> {
        self.qmp.run("object-add", object).await
    }

    /// Removes an object that nothing uses.
    pub async fn remove_object(&self, id: &str) -> Result<(), QmpError> {
        self.qmp.run("object-del", json!({ "id": id })).await
    }

    /// Reads a property of an object or a device, by its path or its id.
    pub async fn property<T: DeserializeOwned>(&self, path: &str, property: &str) -> Result<T, QmpError> {
        self.qmp.call("qom-get", json!({ "path": path, "property": property })).await
    }

    /// Sets a property of an object or a device.
    pub async fn set_property(
        &self,
        path: &str,
        property: &str,
        value: impl Serialize,
    ) -> Result<(), QmpError> {
        self.qmp.run("qom-set", json!({ "path": path, "property": property, "value": value })).await
    }

    /// The names of an object's properties and children.
    pub async fn properties_of(&self, path: &str) -> Result<Vec<String>, QmpError> {
        self.names("qom-list", json!({ "path": path })).await
    }

    /// The properties that devices of a type have: how to probe for what is newer than QEMU 7.2.
    pub async fn properties_of_type(&self, driver: &str) -> Result<Vec<String>, QmpError> {
        self.names("device-list-properties", json!({ "typename": driver })).await
    }

    /// The types of devices and objects that this QEMU knows.
    pub async fn types(&self) -> Result<Vec<String>, QmpError> {
        self.names("qom-list-types", json!({})).await
    }

    /// The commands that this QEMU knows.
    pub async fn commands(&self) -> Result<Vec<String>, QmpError> {
        self.names("query-commands", json!({})).await
    }

    async fn names(&self, command: &str, arguments: serde_json::Value) -> Result<Vec<String>, QmpError> {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let named: Vec<Named> = self.qmp.call(command, arguments).await?;
        Ok(named.into_iter().map(|one| one.name).collect())
    }
}
