//! The built-in schema of `metadata`, which custom resources cannot describe themselves.

use std::sync::LazyLock;

use crate::checks::Checks;
use crate::format::Format;
use crate::node::{Additional, Node, Type};

/// The schema of `ObjectMeta`.
pub(crate) fn object_meta() -> &'static Node {
    static OBJECT_META: LazyLock<Node> = LazyLock::new(build);
    &OBJECT_META
}

impl Node {
    /// The schema of a field, with the built-in one for the `metadata` of a resource.
    pub(crate) fn field_or_meta(&self, name: &str) -> Option<&Node> {
        if self.embedded && name == "metadata" {
            return Some(object_meta());
        }
        self.field(name)
    }
}

fn build() -> Node {
    object([
        ("annotations", map(text())),
        ("creationTimestamp", time()),
        ("deletionGracePeriodSeconds", of(Type::Integer)),
        ("deletionTimestamp", time()),
        ("finalizers", list(text())),
        ("generateName", text()),
        ("generation", of(Type::Integer)),
        ("labels", map(text())),
        ("managedFields", list(managed_fields())),
        ("name", text()),
        ("namespace", text()),
        ("ownerReferences", list(owner_reference())),
        ("resourceVersion", text()),
        ("selfLink", text()),
        ("uid", text()),
    ])
}

fn managed_fields() -> Node {
    let fields = Node { preserve_unknown: true, ..of(Type::Object) };
    object([
        ("apiVersion", text()),
        ("fieldsType", text()),
        ("fieldsV1", fields),
        ("manager", text()),
        ("operation", text()),
        ("subresource", text()),
        ("time", time()),
    ])
}

fn owner_reference() -> Node {
    object([
        ("apiVersion", text()),
        ("blockOwnerDeletion", of(Type::Boolean)),
        ("controller", of(Type::Boolean)),
        ("kind", text()),
        ("name", text()),
        ("uid", text()),
    ])
}

fn of(kind: Type) -> Node {
    Node { kind: Some(kind), ..Node::default() }
}

fn text() -> Node {
    of(Type::String)
}

fn time() -> Node {
    Node {
        checks: Some(Box::new(Checks {
            format: Format::named("date-time", Some(Type::String)),
            ..Checks::default()
        })),
        ..text()
    }
}

fn list(items: Node) -> Node {
    Node { items: Some(Box::new(items)), ..of(Type::Array) }
}

fn map(values: Node) -> Node {
    Node { additional: Additional::Values(Box::new(values)), ..of(Type::Object) }
}

fn object<const N: usize>(properties: [(&str, Node); N]) -> Node {
    Node { properties: properties.map(|(name, node)| (name.into(), node)).into(), ..of(Type::Object) }
}
