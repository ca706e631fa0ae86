//! An object that may not be readable: the others of a list or a watch are read all the same.

use std::borrow::Cow;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::PartialObjectMeta;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::unread::{Managers, Unread, cut};

/// An object, or why it could not be read.
///
/// `kube` has a type for this, which builds a tree of each object, copies it and reads the copy; that was most of what an
/// event cost. Here the text is looked at where it is. It is for JSON in memory only, which is all that API servers send us. What
/// `U` names is left out.
#[derive(Clone, Debug)]
pub struct Readable<K, U = Managers>(pub Result<K, Unreadable>, PhantomData<U>);

/// What is known of an object that could not be read.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// What is wrong with it.
    pub error: String,
    /// Which one it is.
    pub metadata: ObjectMeta,
}

impl<'de, K: Resource + DeserializeOwned, U: Unread> Deserialize<'de> for Readable<K, U> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?;
        let read = match U::fields(text.get()) {
            [] => serde_json::from_str(text.get()),
            unread => {
                let mut kept = String::with_capacity(text.get().len());
                cut(text.get(), unread, &mut kept);
                serde_json::from_str(&kept)
            }
        };
        read.map_or_else(|error| unreadable::<K>(text, &error).map(Err), |object| Ok(Ok(object)))
            .map(|read| Self(read, PhantomData))
            .map_err(D::Error::custom)
    }
}

fn unreadable<K>(text: &RawValue, error: &serde_json::Error) -> serde_json::Result<Unreadable> {
    let PartialObjectMeta::<K> { metadata, .. } = serde_json::from_str(text.get())?;
    Ok(Unreadable { error: error.to_string(), metadata })
}

impl<K: Resource, U> Resource for Readable<K, U> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dynamic)
    }

    fn group(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dynamic)
    }

    fn version(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dynamic)
    }

    fn plural(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.as_ref().map_or_else(|broken| &broken.metadata, K::meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.as_mut().map_or_else(|broken| &mut broken.metadata, K::meta_mut)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::WatchEvent;
    use kube::core::ObjectList;

    use super::*;

    const GOOD: &str = r#"{"metadata": {"name": "good"}, "data": {"a": "b"}}"#;
    const BROKEN: &str = r#"{"metadata": {"name": "broken", "namespace": "here"}, "data": [1]}"#;

    #[test]
    fn one_that_cannot_be_read_spoils_no_list() {
        let list = format!(
            r#"{{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {{}}, "items": [{GOOD}, {BROKEN}]}}"#
        );
        let list: ObjectList<Readable<ConfigMap>> = serde_json::from_str(&list).unwrap();
        let [good, broken] = &list.items[..] else { panic!("{list:?}") };
        assert_eq!(good.0.as_ref().unwrap().data.as_ref().unwrap()["a"], "b");
        assert_eq!(good.meta().name.as_deref(), Some("good"));
        assert!(broken.0.as_ref().unwrap_err().error.contains("invalid type"), "{broken:?}");
        assert_eq!(broken.meta().namespace.as_deref(), Some("here"));
    }

    #[test]
    fn one_that_cannot_be_read_spoils_no_watch() {
        for (object, readable) in [(GOOD, true), (BROKEN, false)] {
            let event = format!(r#"{{"type": "ADDED", "object": {object}}}"#);
            let event: WatchEvent<Readable<ConfigMap>> = serde_json::from_str(&event).unwrap();
            let WatchEvent::Added(object) = event else { panic!("{event:?}") };
            assert_eq!(object.0.is_ok(), readable, "{object:?}");
        }
    }

    #[test]
    fn who_wrote_which_field_is_not_read() {
        let managed = r#"[{"manager": "kubectl", "fieldsV1": {"f:data": {"f:a": {}}}}]"#;
        for (text, expected) in [
            (format!(r#"{{"metadata": {{"managedFields": {managed}, "name": "a"}}, "data": {{}}}}"#), true),
            (format!(r#"{{"data": {{}}, "metadata": {{"name": "a", "managedFields":{managed}}}}}"#), true),
            (r#"{"metadata": {"name": "a", "managedFields": []}, "data": {}}"#.to_owned(), true),
            (r#"{"metadata": {"name": "a", "managedFields": null}, "data": {}}"#.to_owned(), true),
            (r#"{"metadata": {"name": "a"}, "data": {"managedFields": "[]"}}"#.to_owned(), false),
        ] {
            let object: Readable<ConfigMap> = serde_json::from_str(&text).unwrap();
            let object = object.0.unwrap();
            assert_eq!(object.metadata.name.as_deref(), Some("a"), "{text}");
            assert_eq!(object.metadata.managed_fields, None, "{text}");
            assert_eq!(object.data.unwrap().is_empty(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in ["7", "[]", r#"{"metadata": 7, "data": 7}"#, "{"] {
            assert!(serde_json::from_str::<Readable<ConfigMap>>(text).is_err(), "{text}");
        }
    }
}
