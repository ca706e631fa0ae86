//! Our own CustomResourceDefinitions, for tests of objects of our kinds.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt};

use crate::{Test, conditions};

impl Test {
    /// Applies every file of `manifests/crds` and waits until the API server serves it; returns their names. Doing it
    /// again, or from several tests at once, changes nothing.
    pub async fn establish_crds(&self) -> Result<BTreeSet<String>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/crds");
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(folder)? {
            let text = fs::read_to_string(entry?.path())?;
            names.insert(self.apply(&serde_saphyr::from_str(&text)?).await?.name_any());
        }
        let api: Api<CustomResourceDefinition> = Api::all(self.client());
        for name in &names {
            self.wait(&api, name, "is established", conditions::has("Established")).await?;
        }
        Ok(names)
    }
}
