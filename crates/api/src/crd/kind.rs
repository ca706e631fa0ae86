//! What a kind is: its names, versions, columns and subresources.

use schemars::SchemaGenerator;
use serde_json::Value;

use super::RootSchema;

/// Whether objects of a kind live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// Outside of namespaces.
    Cluster,
}

impl Scope {
    /// As a CustomResourceDefinition writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespaced => "Namespaced",
            Self::Cluster => "Cluster",
        }
    }
}

/// A version of a kind that is served; all versions of a kind share one schema.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// Its name.
    pub name: &'static str,
    /// Whether objects are stored in this version.
    pub storage: bool,
    /// Whether clients that use it are warned.
    pub deprecated: bool,
    /// The warning, where it is not the API server's own.
    pub warning: Option<&'static str>,
}

/// A column of `kubectl get`.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// Where its value stands.
    pub path: &'static str,
    /// The type of its value.
    pub type_: &'static str,
}

/// Where the scale subresource finds its numbers.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The wanted number of replicas.
    pub spec: &'static str,
    /// The number that exists.
    pub status: &'static str,
    /// The selector of the replicas, as text.
    pub selector: &'static str,
}

/// A kind of the API.
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// One sentence on what it is.
    pub description: &'static str,
    /// Its API group.
    pub group: &'static str,
    /// Its name in paths.
    pub plural: &'static str,
    /// Short names for `kubectl`.
    pub short_names: &'static [&'static str],
    /// Groups of kinds, such as `all`.
    pub categories: &'static [&'static str],
    /// Whether its objects live in a namespace.
    pub scope: Scope,
    /// The versions that are served.
    pub versions: &'static [Version],
    /// The columns of `kubectl get`.
    pub columns: &'static [Column],
    /// Whether status is a subresource.
    pub status: bool,
    /// The scale subresource, for kinds that have replicas.
    pub scale: Option<Scale>,
    /// Whether an object without a spec is refused.
    pub spec_required: bool,
    pub(super) schema: fn(&mut SchemaGenerator) -> RootSchema,
    /// Reads an object of this kind as its type and writes it again, in the version of the type.
    pub through_types: fn(&Value) -> serde_json::Result<Value>,
}
