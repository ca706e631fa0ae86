//! What is told of the installation itself.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{Response, StatusCode};
use kube::Api;
use kube::api::ListParams;
use kubevirt_api::kubevirt::KubeVirt;
use kubevirt_api::version::{VERSION, platform};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::failure::{Failure, json_response};
use super::routes::Action;
use super::{Call, Subresources};

/// Everybody may ask whether we are well, and asking must not be a way to keep the API server busy.
const FRESH: Duration = Duration::from_secs(5);

/// What was last found out.
#[derive(Default)]
pub struct Health(Mutex<Option<(Instant, StatusCode, Value)>>);

/// The version, in the fields in which clients read it.
fn version() -> Value {
    json!({
        "gitVersion": VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": platform(),
    })
}

impl Subresources {
    pub(super) async fn about_installation(&self, call: &Call<'_>) -> Result<Response<Body>, Failure> {
        match call.matched.route.action {
            Action::Version => Ok(json_response(StatusCode::OK, &version())),
            Action::Guestfs => self.guestfs().await,
            Action::Health => {
                let (code, answer) = self.health().await;
                Ok(json_response(code, &answer))
            }
            Action::Profiler(what) => self.profiler(what, call).await,
            _ => Err(Failure::no_such_path()),
        }
    }

    async fn installation(&self) -> kube::Result<Option<KubeVirt>> {
        let api: Api<KubeVirt> = Api::namespaced(self.client.clone(), &self.namespace);
        Ok(api.list(&ListParams::default()).await?.items.into_iter().next())
    }

    /// The image of the libguestfs tools, which the operator writes down.
    async fn guestfs(&self) -> Result<Response<Body>, Failure> {
        let installation = self.installation().await.map_err(Failure::internal)?;
        let found =
            installation.as_ref().ok_or_else(|| "there is no KubeVirt object".to_owned()).and_then(image);
        Ok(match found {
            Ok(image) => json_response(StatusCode::OK, &image),
            Err(error) => {
                let answer = json!({ "guestfs": { "status": "failed", "error": error } });
                json_response(StatusCode::INTERNAL_SERVER_ERROR, &answer)
            }
        })
    }

    async fn health(&self) -> (StatusCode, Value) {
        let mut last = self.health.0.lock().await;
        if let Some((_, code, answer)) = last.as_ref().filter(|(when, ..)| when.elapsed() < FRESH) {
            return (*code, answer.clone());
        }
        let reached = async {
            let version = self.client.apiserver_version().await?;
            Ok::<_, kube::Error>((version, self.installation().await?))
        };
        let (code, apiserver, seen) = match reached.await {
            Ok((version, installation)) => {
                let seen = installation.and_then(|it| it.metadata.resource_version).unwrap_or_default();
                (StatusCode::OK, json!({ "connectivity": "ok", "version": version }), seen)
            }
            Err(error) => {
                let failed = json!({ "connectivity": "failed", "error": error.to_string() });
                (StatusCode::INTERNAL_SERVER_ERROR, failed, String::new())
            }
        };
        let answer = json!({ "apiserver": apiserver, "config-resource-version": seen });
        *last = Some((Instant::now(), code, answer.clone()));
        (code, answer)
    }
}

/// The image that the operator wrote down.
fn image(installation: &KubeVirt) -> Result<Value, String> {
    let status = installation.status.clone().unwrap_or_default();
    let text = status.observed_deployment_config.unwrap_or_default();
    if text.is_empty() {
        return Err(
            "status.observedDeploymentConfig of KubeVirt does not say which image has the tools".into()
        );
    }
    let config: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let word = |name: &str| config[name].as_str().unwrap_or_default();
    let prefix = config["additionalProperties"]["ImagePrefix"].as_str().unwrap_or_default();
    let prefix = if prefix.is_empty() { word("imagePrefix") } else { prefix };
    Ok(json!({
        "registry": status.observed_kube_virt_registry.unwrap_or_default(),
        "tag": status.observed_kube_virt_version.unwrap_or_default(),
        "digest": word("gsSha"),
        "imagePrefix": prefix,
        "gsImage": word("gsImage"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_is_the_one_that_the_operator_wrote_down() {
        let with = |config: &str| -> KubeVirt {
            let status = json!({
                "observedKubeVirtRegistry": "quay.io/kubevirt", "observedKubeVirtVersion": "v1.9.0",
                "observedDeploymentConfig": config,
            });
            serde_json::from_value(
                json!({ "metadata": { "name": "kubevirt" }, "spec": {}, "status": status }),
            )
            .unwrap()
        };
        let found = image(&with(r#"{"gsImage":"quay.io/x/libguestfs-tools:1"}"#)).unwrap();
        assert_eq!(
            (&found["gsImage"], &found["tag"]),
            (&json!("quay.io/x/libguestfs-tools:1"), &json!("v1.9.0"))
        );
        assert!(image(&with("")).is_err() && image(&with("{")).is_err());
    }

    #[test]
    fn a_version_has_all_fields_that_clients_read() {
        let version = version();
        for field in
            ["gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"]
        {
            assert!(version[field].is_string(), "{field}");
        }
    }
}
