//! The steps of an upload in the cluster.

use std::cell::Cell;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::Method;
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use kubevirt_api::data_volume::DataVolume;
use kubevirt_api::names::external::cdi;
use kubevirt_api::names::groups;
use serde_json::{Value, json};

use super::claim;
use super::objects::{self, UPLOAD, VERSION};
use super::plan::{Kind, Plan};
use crate::connect::Session;
use crate::failure::Failure;
use crate::output::say;
use crate::subresource::escaped;
use crate::wait;

/// How long an image may take to be stored.
const PROCESSING: Duration = Duration::from_secs(24 * 3600);

/// An upload in a cluster.
pub struct Upload<'a> {
    /// The cluster.
    pub session: &'a Session,
    /// What is wanted.
    pub plan: &'a Plan,
}

impl Upload<'_> {
    fn claims(&self) -> Api<PersistentVolumeClaim> {
        self.session.api(None)
    }

    fn volumes(&self) -> Api<DataVolume> {
        self.session.api(None)
    }

    fn path(&self, group: &str, resource: &str) -> String {
        format!("/apis/{group}/{VERSION}/namespaces/{}/{resource}", escaped(&self.session.namespace))
    }

    /// Finds the volume and checks that it can be uploaded to, or creates it.
    pub async fn make_room(&self) -> Result<()> {
        let (namespace, name) = (&self.session.namespace, &self.plan.name);
        let Some(found) = self.claims().get_opt(name).await? else {
            say!("PVC {namespace}/{name} not found");
            return self.create().await;
        };
        let found = self.looked_at(found).await?;
        claim::check(&found, self.plan)?;
        if claim::needs_mark(&found) {
            let mark = json!({ "metadata": { "annotations": { cdi::UPLOAD_TARGET: "" } } });
            self.claims().patch(&found.name_any(), &PatchParams::default(), &Patch::Merge(&mark)).await?;
        }
        say!("Using existing PVC {namespace}/{}", found.name_any());
        Ok(())
    }

    /// The claim that tells how far it is: the one of this name, or the one that is filled in its place.
    async fn looked_at(&self, found: PersistentVolumeClaim) -> Result<PersistentVolumeClaim> {
        if self.plan.kind == Kind::Claim {
            return Ok(found);
        }
        let volume = self.volumes().get_opt(&self.plan.name).await?;
        match claim::filled(&found, volume.as_ref())? {
            None => Ok(found),
            Some(prime) => {
                let namespace = &self.session.namespace;
                self.claims()
                    .get(&prime)
                    .await
                    .with_context(|| format!("Unable to get PVC Prime {namespace}/{prime}"))
            }
        }
    }

    async fn create(&self) -> Result<()> {
        let (namespace, name) = (&self.session.namespace, &self.plan.name);
        if self.plan.no_create {
            bail!("PVC {namespace}/{name} is not there, and --no-create does not create it");
        }
        if self.plan.size.is_none() {
            bail!("when creating a resource, the size must be specified: add --size");
        }
        // The importer would wait for a class that is not there.
        if let Some(class) = &self.plan.storage_class {
            let classes: Api<StorageClass> = Api::all(self.session.client.clone());
            classes.get(class).await.context("the storage class cannot be used")?;
        }
        let (path, object) = match self.plan.kind {
            Kind::DataVolume => {
                (self.path(groups::CDI, "datavolumes"), objects::data_volume(self.plan, namespace))
            }
            Kind::Claim => {
                let path = format!("/api/v1/namespaces/{}/persistentvolumeclaims", escaped(namespace));
                (path, objects::claim(self.plan, namespace))
            }
        };
        let kind = claim::kind_name(self.plan.kind);
        let created = self.session.call(Method::POST, &path, Some(&object)).await;
        created.with_context(|| format!("{kind} {namespace}/{name} cannot be created"))?;
        say!("{kind} {namespace}/{name} created");
        Ok(())
    }

    /// Waits until the upload pod is ready.
    pub async fn wait_for_server(&self) -> Result<()> {
        let name = &self.plan.name;
        let told = &Cell::new(false);
        let ready = wait::until(self.plan.wait, || async move {
            let (ready, claim) = match self.plan.kind {
                Kind::Claim => {
                    let found = self.claims().get_opt(name).await?;
                    (found.as_ref().is_some_and(claim::is_ready), Some(name.clone()))
                }
                Kind::DataVolume => match self.volumes().get_opt(name).await? {
                    None => (false, None),
                    Some(volume) => {
                        let ready = claim::volume_is_ready(&volume, self.plan)?;
                        (ready, volume.status.and_then(|status| status.claim_name))
                    }
                },
            };
            if ready {
                return Ok(Some(()));
            }
            self.check_events(claim.as_deref()).await?;
            if !told.replace(true) {
                say!("Waiting for PVC {name} upload pod to be ready...");
            }
            Ok(None)
        });
        if ready.await?.is_none() {
            let what =
                format!("the upload pod of {name} is not ready after {} seconds", self.plan.wait.as_secs());
            let next = format!("See `kubectl describe pvc {name}`; --wait-secs waits longer.");
            return Err(Failure::new(what, next).into());
        }
        if told.get() {
            say!("Pod now ready");
        }
        Ok(())
    }

    /// An event may say that there is no use in waiting.
    async fn check_events(&self, claim: Option<&str>) -> Result<()> {
        // Who may not read events has to wait without them.
        let Ok(events) = self.session.api::<Event>(None).list(&ListParams::default()).await else {
            return Ok(());
        };
        let claim = match claim {
            Some(name) => self.claims().get_opt(name).await?.and_then(|claim| claim.metadata.uid),
            None => None,
        };
        let volume = match self.plan.kind {
            Kind::DataVolume => {
                self.volumes().get_opt(&self.plan.name).await?.and_then(|volume| volume.metadata.uid)
            }
            Kind::Claim => None,
        };
        Ok(claim::hopeless(&events.items, claim.as_deref(), volume.as_deref())?)
    }

    /// A token for the upload.
    pub async fn token(&self) -> Result<String, String> {
        let path = self.path(UPLOAD, "uploadtokenrequests");
        let request = objects::token_request(self.plan, &self.session.namespace);
        let answer = self
            .session
            .call(Method::POST, &path, Some(&request))
            .await
            .map_err(|error| error.to_string())?;
        let answer: Value = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
        let token = answer["status"]["token"].as_str().filter(|token| !token.is_empty());
        token.map(str::to_owned).ok_or_else(|| "the importer gave no token".to_owned())
    }

    /// Makes a data source point to the volume.
    pub async fn point(&self) -> Result<()> {
        let (namespace, name) = (&self.session.namespace, &self.plan.name);
        let path = self.path(groups::CDI, "datasources");
        let object = objects::data_source(self.plan, namespace);
        match self.session.call(Method::POST, &path, Some(&object)).await {
            Ok(_) => {
                say!("Created a new DataSource {namespace}/{name}");
                return Ok(());
            }
            Err(error) if error.refusal().is_some_and(|refusal| refusal.code == 409) => {}
            Err(error) => return Err(error).context("the DataSource cannot be created"),
        }
        let resource = kube::core::ApiResource {
            group: groups::CDI.into(),
            version: VERSION.into(),
            api_version: format!("{}/{VERSION}", groups::CDI),
            kind: "DataSource".into(),
            plural: "datasources".into(),
        };
        let sources: Api<kube::core::DynamicObject> =
            Api::namespaced_with(self.session.client.clone(), namespace, &resource);
        let patch = objects::pointing(self.plan, namespace);
        sources
            .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .context("the DataSource cannot be changed")?;
        say!("Updated an existing DataSource {namespace}/{name}");
        Ok(())
    }

    /// Waits until the image is stored.
    pub async fn wait_for_processing(&self) -> Result<()> {
        let name = &self.plan.name;
        let done = wait::until(PROCESSING, || async move {
            let found = self.claims().get(name).await?;
            Ok(claim::is_stored(&found).then_some(()))
        });
        match done.await? {
            Some(()) => {
                say!("Processing completed successfully");
                Ok(())
            }
            None => bail!(
                "Timed out waiting for post upload processing to complete, please check upload pod status for progress"
            ),
        }
    }
}
