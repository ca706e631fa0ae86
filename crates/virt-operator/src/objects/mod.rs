//! Every object of an installation.

pub mod accounts;
pub mod api_services;
pub mod basics;
pub mod daemonset;
pub mod deployments;
pub mod kubevirt;
mod metadata;
mod placement;
mod pods;
pub mod policies;
pub mod roles;
pub mod secrets;
pub mod services;
pub mod webhooks;

use kubevirt_api::crd::{KINDS, definition};
use serde_json::Value;

use crate::config::InstallConfig;

/// The definitions of all kinds. The cluster must serve them before it takes the rest.
pub fn definitions() -> Vec<Value> {
    KINDS.iter().map(definition).collect()
}

/// Everything but the definitions, each after what it needs.
pub fn all(config: &InstallConfig) -> Vec<Value> {
    let mut objects = vec![basics::namespace(config), basics::priority_class()];
    objects.extend(accounts::all(config));
    objects.extend(roles::all(config));
    objects.extend(secrets::all(config));
    objects.extend(services::all(config));
    objects.extend(policies::all(config));
    objects.push(kubevirt::installation(config));
    for deployment in [deployments::api(config), deployments::controller(config)] {
        let budget = deployments::budget(config, &deployment);
        objects.push(deployment);
        objects.extend(budget);
    }
    objects.push(daemonset::handler(config));
    // Last: from then on nothing of ours is admitted without virt-api.
    objects.extend([webhooks::mutating(config), webhooks::validating(config)]);
    if config.api_services {
        objects.extend(api_services::all(config));
    }
    objects
}

#[cfg(test)]
mod tests;
