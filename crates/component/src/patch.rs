//! The one way to change an object: say what differs from what was seen, and nothing else.

use std::fmt::Debug;

use axum::http::HeaderValue;
use axum::http::header::ACCEPT;
use json_patch::jsonptr::PointerBuf;
use json_patch::{Patch as Operations, PatchOperation, ReplaceOperation};
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{ObjectMeta, PartialObjectMeta, Request};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use serde_json::Value;

use crate::readable::Readable;
use crate::unread::Managers;

/// Asks for the metadata of an object instead of the whole.
const METADATA: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");

/// What makes the object that was seen the object that is wanted, or nothing if they are the same.
///
/// Only what our types hold can be in it, so fields that they do not know stay as they are. The version of the
/// object that was seen is part of it: the API server refuses it with a conflict if somebody wrote in between.
pub fn difference<K>(seen: &K, wanted: &K) -> serde_json::Result<Option<Operations>>
where
    K: Resource + Serialize + PartialEq,
{
    // Mostly they are the same, and to compare them costs a hundredth of writing both out.
    if seen == wanted {
        return Ok(None);
    }
    let mut operations = json_patch::diff(&serde_json::to_value(seen)?, &serde_json::to_value(wanted)?);
    if operations.0.is_empty() {
        return Ok(None);
    }
    if let Some(version) = &seen.meta().resource_version {
        let path = PointerBuf::from_tokens(["metadata", "resourceVersion"]);
        let value = Value::String(version.clone());
        operations.0.push(PatchOperation::Replace(ReplaceOperation { path, value }));
    }
    Ok(Some(operations))
}

/// Writes what differs from what was seen. Nothing is sent if nothing differs.
pub async fn write<K>(api: &Api<K>, seen: &K, wanted: &K) -> kube::Result<Option<K>>
where
    K: Resource + Serialize + DeserializeOwned + Clone + Debug + PartialEq,
{
    let Some((name, patch)) = request(seen, wanted)? else { return Ok(None) };
    let request = Request::new(api.resource_url()).patch(name, &PatchParams::default(), &patch);
    object(api.clone().into_client(), request).await.map(Some)
}

/// Makes an object, and returns what the API server calls it.
pub async fn create<K: Resource + Serialize + Clone>(api: &Api<K>, new: &K) -> kube::Result<ObjectMeta>
where
    K::DynamicType: Default,
{
    let request = brief(creation(api, new)?);
    object::<PartialObjectMeta<K>>(api.clone().into_client(), request).await.map(|made| made.metadata)
}

/// The same where nobody asks what became of it.
pub async fn create_unread<K: Resource + Serialize + Clone>(api: &Api<K>, new: &K) -> kube::Result<()> {
    done(api, brief(creation(api, new)?)).await
}

fn creation<K: Resource + Serialize>(api: &Api<K>, new: &K) -> kube::Result<Made> {
    let body = serde_json::to_vec(new).map_err(kube::Error::SerdeError)?;
    Ok(Request::new(api.resource_url()).create(&PostParams::default(), body))
}

/// Changes an object whatever it is now, where nobody asks what became of it.
pub async fn overwrite<K: Resource + Clone>(
    api: &Api<K>,
    name: &str,
    patch: &Patch<Value>,
) -> kube::Result<()> {
    done(api, Request::new(api.resource_url()).patch_metadata(name, &PatchParams::default(), patch)).await
}

/// The same for the status of a kind that has it apart.
pub async fn overwrite_status<K: Resource + Clone>(
    api: &Api<K>,
    name: &str,
    patch: &Patch<Value>,
) -> kube::Result<()> {
    let parameters = PatchParams::default();
    done(api, brief(Request::new(api.resource_url()).patch_subresource("status", name, &parameters, patch)))
        .await
}

/// The same where nobody asks what became of the object: whether something was sent. What is sent is known when this
/// returns, so that nobody has to keep two large objects until there is an answer.
pub fn changed<K>(
    api: &Api<K>,
    seen: &K,
    wanted: &K,
) -> impl Future<Output = kube::Result<bool>> + Send + use<K>
where
    K: Resource + Serialize + DeserializeOwned + Clone + Debug + PartialEq,
{
    let change = request(seen, wanted).map(|change| {
        change.map(|(name, patch)| {
            Request::new(api.resource_url()).patch_metadata(name, &PatchParams::default(), &patch)
        })
    });
    let client = api.clone().into_client();
    async move {
        let Some(request) = change? else { return Ok(false) };
        send(client, request).await.map(|()| true)
    }
}

/// The same for the status of a kind that has it apart.
pub async fn write_status<K>(api: &Api<K>, seen: &K, wanted: &K) -> kube::Result<Option<K>>
where
    K: Resource + Serialize + DeserializeOwned + Clone + Debug + PartialEq,
{
    let Some((name, patch)) = request(seen, wanted)? else { return Ok(None) };
    let parameters = PatchParams::default();
    let request = Request::new(api.resource_url()).patch_subresource("status", name, &parameters, &patch);
    object(api.clone().into_client(), request).await.map(Some)
}

type Made = Result<axum::http::Request<Vec<u8>>, kube::core::request::Error>;

/// The same request, answered with no more of the object than its metadata.
fn brief(request: Made) -> Made {
    request.map(|mut request| {
        request.headers_mut().insert(ACCEPT, METADATA);
        request
    })
}

/// Sends a request that is answered with an object, and reads of it what [`Readable`] does.
async fn object<K: Resource + DeserializeOwned>(client: Client, request: Made) -> kube::Result<K> {
    let request = request.map_err(kube::Error::BuildRequest)?;
    let answer: Readable<K, Managers> = client.request(request).await?;
    answer.0.map_err(|broken| kube::Error::SerdeError(serde_json::Error::custom(broken.error)))
}

/// Sends a request whose answer nobody reads, unless it is an error.
async fn done<K: Resource + Clone>(api: &Api<K>, request: Made) -> kube::Result<()> {
    send(api.clone().into_client(), request).await
}

async fn send(client: Client, request: Made) -> kube::Result<()> {
    let request = request.map_err(kube::Error::BuildRequest)?;
    client.request::<IgnoredAny>(request).await.map(drop)
}

fn request<'a, K>(seen: &'a K, wanted: &K) -> kube::Result<Option<(&'a str, Patch<()>)>>
where
    K: Resource + Serialize + PartialEq,
{
    let name = seen.meta().name.as_deref().unwrap_or_default();
    let operations = difference(seen, wanted).map_err(kube::Error::SerdeError)?;
    Ok(operations.map(|operations| (name, Patch::Json(operations))))
}

/// Whether the object was written by somebody else since it was seen.
pub fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409 && status.reason == "Conflict")
}

/// Whether there is an object of this name already.
pub fn is_taken(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.reason == "AlreadyExists")
}

/// Whether there is no such object.
pub fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_differs_and_only_over_what_was_seen() {
        let mut seen = ConfigMap::default();
        seen.metadata.resource_version = Some("7".into());
        seen.data = Some([("a".to_owned(), "1".to_owned())].into());
        assert_eq!(difference(&seen, &seen.clone()).unwrap(), None);
        let mut wanted = seen.clone();
        wanted.data = Some([("a".to_owned(), "2".to_owned())].into());
        let difference = serde_json::to_value(difference(&seen, &wanted).unwrap()).unwrap();
        let expected = json!([
            {"op": "replace", "path": "/data/a", "value": "2"},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
        ]);
        assert_eq!(difference, expected);
    }

    #[test]
    fn no_more_than_metadata_is_asked_for() {
        let request = Request::new("/api/v1/pods").create(&PostParams::default(), vec![]);
        let asked = |request: Made| request.unwrap().headers().get(ACCEPT).cloned();
        assert_eq!(asked(brief(request)), Some(METADATA));
    }
}
