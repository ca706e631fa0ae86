//! What must be there in the cluster: the containerized data importer and its upload proxy.

use anyhow::{Context as _, Result};
use http::Method;
use kubevirt_api::names::groups;
use serde_json::Value;

use super::objects::{UPLOAD, VERSION};
use crate::connect::Session;
use crate::failure::{Failure, Refusal};
use crate::subresource;

/// Makes sure that the importer is there, before anything is created that nobody would fill.
pub async fn check(session: &Session) -> Result<()> {
    match session.call(Method::GET, &format!("/apis/{UPLOAD}/{VERSION}"), None).await {
        // Who may not look may still be allowed to upload.
        Ok(_) => Ok(()),
        Err(error) if error.refusal().is_some_and(|refusal| refusal.code == 403) => Ok(()),
        Err(error) => Err(explained(error)),
    }
}

/// A cluster without the importer knows nothing of its paths.
fn explained(error: subresource::Error) -> anyhow::Error {
    match error.refusal() {
        Some(Refusal { code: 404, .. }) => Failure::new(
            "this cluster has no containerized data importer (CDI), which takes uploads",
            "Install it first: https://github.com/kubevirt/containerized-data-importer.",
        )
        .into(),
        Some(Refusal { code: 503, .. }) => Failure::new(
            "the containerized data importer (CDI) of this cluster does not answer",
            "See `kubectl get pods -A -l app=containerized-data-importer`.",
        )
        .into(),
        _ => error.into(),
    }
}

/// The address of the upload proxy, as the importer knows it.
pub async fn proxy(session: &Session) -> Result<String> {
    let path = format!("/apis/{}/{VERSION}/cdiconfigs/config", groups::CDI);
    let answer = session
        .call(Method::GET, &path, None)
        .await
        .context("the importer's configuration cannot be read")?;
    let config: Value = serde_json::from_slice(&answer).context("the answer cannot be understood")?;
    found(&config).map(str::to_owned).ok_or_else(|| {
        Failure::new(
            "uploadproxy URL not found",
            "Name it with --uploadproxy-url: with `kubectl port-forward -n cdi service/cdi-uploadproxy 8443:443`, for \
             example, it is https://localhost:8443, and --insecure is needed.",
        )
        .into()
    })
}

/// What an administrator has set comes first.
fn found(config: &Value) -> Option<&str> {
    let set = config["spec"]["uploadProxyURLOverride"].as_str().filter(|url| !url.is_empty());
    set.or_else(|| config["status"]["uploadProxyURL"].as_str()).filter(|url| !url.is_empty())
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_set_comes_first() {
        let both = json!({ "spec": { "uploadProxyURLOverride": "a" }, "status": { "uploadProxyURL": "b" } });
        assert_eq!(found(&both), Some("a"));
        assert_eq!(found(&json!({ "spec": {}, "status": { "uploadProxyURL": "b" } })), Some("b"));
        assert_eq!(found(&json!({ "spec": {} })), None);
    }

    #[test]
    fn a_cluster_without_the_importer_is_told_what_to_do() {
        let words = |status| {
            let refusal = subresource::refusal(status, b"404 page not found");
            crate::failure::words(&explained(refusal.into()))
        };
        assert!(words(StatusCode::NOT_FOUND).contains("Install it first"));
        assert!(words(StatusCode::SERVICE_UNAVAILABLE).contains("does not answer"));
        assert!(words(StatusCode::CONFLICT).contains("404 page not found"));
    }
}
