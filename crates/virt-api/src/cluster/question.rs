//! What a rule asked for, and how to get it.

use std::any::{Any, TypeId};
use std::fmt;
use std::fmt::Debug;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kube::core::params::{GetParams, ListParams};
use kube::core::{ObjectList, Request};
use kube::{Client, Resource};
use kubevirt_api::names::groups;
use kubevirt_component::Readable;
use kubevirt_component::patch::is_gone;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What a rule asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    kind: Kind,
    namespace: String,
    /// None for all of them.
    name: Option<String>,
}

/// A kind of objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Typed(TypeId, String),
    Untyped(&'static Untyped),
}

/// A kind that has no type of ours.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Untyped {
    kind: &'static str,
    group: &'static str,
    version: &'static str,
    plural: &'static str,
}

const UNTYPED: [Untyped; 3] = [
    Untyped { kind: "DataVolume", group: groups::CDI, version: "v1beta1", plural: "datavolumes" },
    Untyped { kind: "DataSource", group: groups::CDI, version: "v1beta1", plural: "datasources" },
    Untyped {
        kind: "VolumeSnapshot",
        group: groups::VOLUME_SNAPSHOT,
        version: "v1",
        plural: "volumesnapshots",
    },
];

/// An answer: an `Option<Arc<K>>` for a name, a `Vec<Arc<K>>` for all.
pub(super) type Answer = Arc<dyn Any + Send + Sync>;
/// How to get an answer.
pub(super) type Fetch = fn(Client, Question) -> BoxFuture<'static, kube::Result<Answer>>;

/// A kind of objects that can be fetched.
pub(super) trait Fetched:
    Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static
{
}

impl<K> Fetched for K where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static
{
}

impl Question {
    /// For an object by its name; none if there can be no such object.
    pub(super) fn one<K: Fetched>(namespace: &str, name: &str) -> Option<(Self, Fetch)> {
        let kind = Kind::Typed(TypeId::of::<K>(), K::kind(&()).into_owned());
        Some((Self::named(kind, namespace, name)?, |client, question| one::<K>(client, question).boxed()))
    }

    /// For all objects of a namespace.
    pub(super) fn all<K: Fetched>(namespace: &str) -> Option<(Self, Fetch)> {
        let kind = Kind::Typed(TypeId::of::<K>(), K::kind(&()).into_owned());
        let question = Self { kind, namespace: namespace.to_owned(), name: None };
        let fetch: Fetch = |client, question| all::<K>(client, question).boxed();
        (namespace.is_empty() || is_name(namespace)).then_some((question, fetch))
    }

    /// For an object of a kind that has no type of ours.
    pub(super) fn untyped(kind: &str, namespace: &str, name: &str) -> Option<(Self, Fetch)> {
        let kind = UNTYPED.iter().find(|known| known.kind == kind)?;
        let question = Self::named(Kind::Untyped(kind), namespace, name)?;
        Some((question, |client, question| untyped(client, question).boxed()))
    }

    fn named(kind: Kind, namespace: &str, name: &str) -> Option<Self> {
        let namespace_is_good = namespace.is_empty() || is_name(namespace);
        (namespace_is_good && is_name(name)).then(|| Self {
            kind,
            namespace: namespace.to_owned(),
            name: Some(name.to_owned()),
        })
    }

    fn namespace(&self) -> Option<&str> {
        Some(self.namespace.as_str()).filter(|namespace| !namespace.is_empty())
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Typed(_, kind) => kind,
            Kind::Untyped(kind) => kind.kind,
        };
        match &self.name {
            Some(name) if self.namespace.is_empty() => write!(f, "{kind} {name}"),
            Some(name) => write!(f, "{kind} {}/{name}", self.namespace),
            None => write!(f, "all {kind} of {:?}", self.namespace),
        }
    }
}

/// Whether an object can have this name. It comes from users and becomes a part of a path.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    name.bytes().all(fits) && name.bytes().any(|byte| byte != b'.')
}

async fn one<K: Fetched>(client: Client, question: Question) -> kube::Result<Answer> {
    let path = K::url_path(&(), question.namespace());
    let found: Option<Arc<K>> = get(&client, path, &question).await?.map(Arc::new);
    Ok(Arc::new(found))
}

async fn untyped(client: Client, question: Question) -> kube::Result<Answer> {
    let Kind::Untyped(Untyped { group, version, plural, .. }) = question.kind else {
        return Ok(Arc::new(None::<Arc<Value>>));
    };
    let path = format!("/apis/{group}/{version}/namespaces/{}/{plural}", question.namespace);
    let found: Option<Arc<Value>> = get(&client, path, &question).await?.map(Arc::new);
    Ok(Arc::new(found))
}

/// The object; none also where the API server does not know its kind.
async fn get<K: DeserializeOwned>(
    client: &Client,
    path: String,
    question: &Question,
) -> kube::Result<Option<K>> {
    let name = question.name.as_deref().unwrap_or_default();
    let request = Request::new(path).get(name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
    match client.request(request).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn all<K: Fetched>(client: Client, question: Question) -> kube::Result<Answer> {
    let path = K::url_path(&(), question.namespace());
    let request = Request::new(path).list(&ListParams::default()).map_err(kube::Error::BuildRequest)?;
    let list = client.request::<ObjectList<Readable<K>>>(request).await;
    let items = match list {
        Ok(list) => list.items,
        Err(error) if is_gone(&error) => Vec::new(),
        Err(error) => return Err(error),
    };
    // One that cannot be read is not in the way of all others.
    let found: Vec<Arc<K>> = items.into_iter().filter_map(|item| item.0.ok()).map(Arc::new).collect();
    Ok(Arc::new(found))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn names_of_users_do_not_lead_elsewhere() {
        for good in ["a", "a.b-c", "0", "x..y"] {
            assert!(Question::one::<Pod>("default", good).is_some(), "{good}");
        }
        for bad in ["", ".", "..", "../nodes", "a/b", "a?b", "a%2fb", "A", "a b", "ä"] {
            assert!(Question::one::<Pod>("default", bad).is_none(), "{bad}");
            assert!(Question::untyped("DataVolume", "default", bad).is_none(), "{bad}");
            if !bad.is_empty() {
                assert!(Question::one::<Pod>(bad, "a").is_none(), "{bad}");
                assert!(Question::all::<Pod>(bad).is_none(), "{bad}");
            }
        }
        assert!(Question::untyped("Secret", "default", "a").is_none());
    }

    #[test]
    fn questions_say_what_they_ask_for() {
        let text = |question: Option<(Question, Fetch)>| question.unwrap().0.to_string();
        assert_eq!(text(Question::one::<Pod>("a", "b")), "Pod a/b");
        assert_eq!(text(Question::all::<Pod>("a")), "all Pod of \"a\"");
        assert_eq!(text(Question::untyped("DataVolume", "a", "b")), "DataVolume a/b");
    }
}
