//! Our own CustomResourceDefinitions, for tests of objects of our kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt};

use tokio::sync::Mutex;

use crate::{Test, conditions};

/// The clusters, by their kubeconfig, that have them, and what they are called.
static ESTABLISHED: Mutex<BTreeMap<PathBuf, BTreeSet<String>>> = Mutex::const_new(BTreeMap::new());

impl Test {
    /// Applies every file of `manifests/crds` and waits until the API server serves it; returns their names. Tests of
    /// one process do it once for all of them.
    pub async fn establish_crds(&self) -> Result<BTreeSet<String>> {
        let mut established = ESTABLISHED.lock().await;
        let cluster = self.cluster().kubeconfig();
        if let Some(names) = established.get(&cluster) {
            return Ok(names.clone());
        }
        let names = self.apply_crds().await?;
        established.insert(cluster, names.clone());
        Ok(names)
    }

    async fn apply_crds(&self) -> Result<BTreeSet<String>> {
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
