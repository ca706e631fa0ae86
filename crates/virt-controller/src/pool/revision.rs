//! How a pool looked when its machines were made.

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::{Resource, ResourceExt};
use kubevirt_api::names::labels;
use kubevirt_api::pool::{VirtualMachinePool, VirtualMachinePoolSpec};
use serde::Deserialize;

use super::decide::{Action, Observed};
use crate::owned::controller_reference;

/// What the revision of the pool as it is now is called.
pub fn name(pool: &VirtualMachinePool) -> String {
    format!("{}-{}", pool.name_any(), pool.metadata.generation.unwrap_or_default())
}

/// The revision that a machine or instance was made from.
pub fn of<K: Resource>(object: &K) -> Option<&str> {
    object.meta().labels.as_ref()?.get(labels::POOL_REVISION_NAME).map(String::as_str)
}

/// How the pool looked in a revision.
pub fn find(observed: &Observed, name: &str) -> Option<VirtualMachinePoolSpec> {
    let revision = observed.revisions.iter().find(|revision| revision.name_any() == name)?;
    VirtualMachinePoolSpec::deserialize(&revision.data.as_ref()?.0).ok()
}

/// The name of the current revision, and what must be done so that there is one.
pub fn current(observed: &Observed) -> (Vec<Action>, String) {
    let pool = &observed.pool;
    let name = name(pool);
    if observed.revisions.iter().any(|revision| revision.name_any() == name) {
        return (vec![], name);
    }
    let mut revision = ControllerRevision {
        revision: pool.metadata.generation.unwrap_or_default(),
        data: serde_json::to_value(&pool.spec)
            .ok()
            .map(k8s_openapi::apimachinery::pkg::runtime::RawExtension),
        ..ControllerRevision::default()
    };
    revision.metadata.name = Some(name.clone());
    revision.metadata.namespace = pool.namespace();
    revision.metadata.owner_references = Some(vec![controller_reference(&**pool)]);
    (vec![Action::KeepRevision(Box::new(revision))], name)
}
