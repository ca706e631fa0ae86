//! The search for the labels that say what a volume is best used with.

use std::sync::Arc;

use kubevirt_api::data_volume::DataVolumeSpec;
use serde_json::Value;

use super::super::reference::Role;
use crate::Objects;

/// Why nothing could be inferred.
pub(super) enum Failure {
    /// What is there does not say; the VM may ask for this to be ignored.
    Unlabelled(String),
    /// What should say is not there.
    Missing(String),
}

/// A name and a kind, or why there is none.
pub(super) type Inferred = Result<(String, String), Failure>;

/// What a DataVolume is filled from, as far as it can have labels.
pub(super) enum Source<'a> {
    Claim(&'a str, &'a str),
    Snapshot(&'a str, &'a str),
    Referred { kind: &'a str, namespace: Option<&'a str>, name: &'a str },
    Other,
}

/// The search for labels.
pub(super) struct Search<'a> {
    pub objects: &'a dyn Objects,
    pub role: Role,
    pub own_namespace: &'a str,
}

impl Search<'_> {
    pub fn claim(&self, namespace: &str, name: &str) -> Inferred {
        let what = || format!("the claim {namespace}/{name}");
        let claim = self.objects.claim(namespace, name).ok_or_else(|| Failure::Missing(what()))?;
        let labels = claim.metadata.labels.as_ref();
        self.labels(|label| labels?.get(label).map(String::as_str), what)
    }

    fn snapshot(&self, namespace: &str, name: &str) -> Inferred {
        let what = || format!("the VolumeSnapshot {namespace}/{name}");
        let snapshot = self.untyped("VolumeSnapshot", namespace, name);
        self.labels_of(&*snapshot.ok_or_else(|| Failure::Missing(what()))?, what)
    }

    pub fn data_volume(&self, name: &str) -> Inferred {
        // A DataVolume may be gone once its claim is filled; the claim has the same name.
        let Some(data_volume) = self.untyped("DataVolume", self.own_namespace, name) else {
            return self.claim(self.own_namespace, name);
        };
        let own = self.labels_of(&data_volume, String::new);
        own.or_else(|_| self.source(Source::of_object(&data_volume["spec"])))
    }

    fn data_source(&self, namespace: &str, name: &str) -> Inferred {
        let what = || format!("the DataSource {namespace}/{name}");
        let data_source =
            self.untyped("DataSource", namespace, name).ok_or_else(|| Failure::Missing(what()))?;
        let own = self.labels_of(&data_source, String::new);
        own.or_else(|_| match Source::of_object(&data_source["spec"]) {
            Source::Claim(namespace, name) => self.claim(namespace, name),
            Source::Snapshot(namespace, name) => self.snapshot(namespace, name),
            _ => Err(Failure::Unlabelled(format!("{} holds neither a claim nor a snapshot", what()))),
        })
    }

    pub fn source(&self, source: Source<'_>) -> Inferred {
        match source {
            Source::Claim(namespace, name) => self.claim(namespace, name),
            Source::Snapshot(namespace, name) => self.snapshot(namespace, name),
            Source::Referred { kind: "DataSource", namespace, name } => {
                self.data_source(namespace.unwrap_or(self.own_namespace), name)
            }
            Source::Referred { kind, .. } => {
                let why =
                    format!("the DataVolume refers to an object of the kind {kind:?}, not to a DataSource");
                Err(Failure::Unlabelled(why))
            }
            Source::Other => {
                let why = "the DataVolume is filled neither from a claim nor from a snapshot";
                Err(Failure::Unlabelled(why.to_owned()))
            }
        }
    }

    fn untyped(&self, kind: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        // An empty namespace would mean all of them.
        if namespace.is_empty() { None } else { self.objects.untyped(kind, namespace, name) }
    }

    fn labels_of(&self, object: &Value, what: impl Fn() -> String) -> Inferred {
        self.labels(|label| object["metadata"]["labels"][label].as_str(), what)
    }

    fn labels<'o>(&self, label: impl Fn(&str) -> Option<&'o str>, what: impl Fn() -> String) -> Inferred {
        let kind = || label(self.role.kind_label()).unwrap_or_default().to_owned();
        match label(self.role.name_label()) {
            Some(name) => Ok((name.to_owned(), kind())),
            None => Err(Failure::Unlabelled(format!("{} has no label {}", what(), self.role.name_label()))),
        }
    }
}

impl<'a> Source<'a> {
    pub fn of_template(spec: &'a DataVolumeSpec) -> Self {
        let source = spec.source.as_ref();
        if let Some(claim) = source.and_then(|source| source.pvc.as_ref()) {
            return Self::Claim(&claim.namespace, &claim.name);
        }
        if let Some(snapshot) = source.and_then(|source| source.snapshot.as_ref()) {
            return Self::Snapshot(&snapshot.namespace, &snapshot.name);
        }
        match &spec.source_ref {
            Some(to) => Self::Referred { kind: &to.kind, namespace: to.namespace.as_deref(), name: &to.name },
            None => Self::Other,
        }
    }

    fn of_object(spec: &'a Value) -> Self {
        let text = |value: &'a Value| value.as_str().unwrap_or_default();
        let place =
            |value: &'a Value| value.is_object().then(|| (text(&value["namespace"]), text(&value["name"])));
        if let Some((namespace, name)) = place(&spec["source"]["pvc"]) {
            return Self::Claim(namespace, name);
        }
        if let Some((namespace, name)) = place(&spec["source"]["snapshot"]) {
            return Self::Snapshot(namespace, name);
        }
        let to = &spec["sourceRef"];
        if to.is_object() {
            return Self::Referred {
                kind: text(&to["kind"]),
                namespace: to["namespace"].as_str(),
                name: text(&to["name"]),
            };
        }
        Self::Other
    }
}
