//! What every object of an installation says of itself.

use kubevirt_api::names::external::kubernetes::{APP_COMPONENT, APP_NAME, MANAGED_BY};
use kubevirt_api::names::{labels, values};
use serde_json::{Value, json};

use crate::config::InstallConfig;

/// Of an object outside of namespaces.
pub(super) fn global(name: &str) -> Value {
    named(name, "")
}

/// Of an object in the namespace of the installation.
pub(super) fn local(config: &InstallConfig, name: &str) -> Value {
    within(config, named(name, ""))
}

/// Of an object that is a component, or belongs to just one.
pub(super) fn of_component(config: &InstallConfig, component: &str, name: &str) -> Value {
    let mut metadata = within(config, named(name, component));
    metadata["labels"][APP_NAME] = component.into();
    metadata
}

/// The name and the labels by which the operator finds what it looks after.
fn named(name: &str, app: &str) -> Value {
    json!({
        "name": name,
        "labels": {
            labels::APP: app,
            MANAGED_BY: values::managed_by::OPERATOR,
            APP_COMPONENT: values::component::KUBEVIRT,
        },
    })
}

fn within(config: &InstallConfig, mut metadata: Value) -> Value {
    metadata["namespace"] = config.namespace.as_str().into();
    metadata
}
