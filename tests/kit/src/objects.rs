//! Objects of any kind, from manifests.

use anyhow::{Context, Result};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use kube::{Api, ResourceExt};
use serde_json::Value;

use crate::Test;

impl Test {
    /// Creates the object, or changes it to what the manifest says; in the test's namespace if it can be in
    /// one and does not name another.
    pub async fn apply(&self, manifest: &Value) -> Result<DynamicObject> {
        let object: DynamicObject = serde_json::from_value(manifest.clone()).context("read manifest")?;
        let (name, parameters) = (object.name_any(), PatchParams::apply("test").force().validation_strict());
        let api = self.api_of(&object).await?;
        let applied = api.patch(&name, &parameters, &Patch::Apply(&object)).await;
        applied.with_context(|| format!("apply {} {name}", manifest["kind"]))
    }

    /// The objects of the same version and kind as this one, where [`apply`](Self::apply) puts it.
    pub async fn api_of(&self, object: &DynamicObject) -> Result<Api<DynamicObject>> {
        let types = object.types.as_ref().context("the object has no kind")?;
        let kind = GroupVersionKind::try_from(types)?;
        let (resource, capabilities) = discovery::pinned_kind(&self.client(), &kind)
            .await
            .with_context(|| format!("look for {} in {}", kind.kind, kind.api_version()))?;
        Ok(match (capabilities.scope, &object.metadata.namespace) {
            (Scope::Cluster, _) => Api::all_with(self.client(), &resource),
            (Scope::Namespaced, None) => Api::namespaced_with(self.client(), self.namespace(), &resource),
            (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(self.client(), namespace, &resource),
        })
    }
}
