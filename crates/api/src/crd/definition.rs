//! The CustomResourceDefinition of a kind, with every version that is served.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::structural::Extent;
use super::{Kind, Version, structural};
use crate::names::labels;

/// The structural schema of a kind, as its CRD has it.
pub fn schema(kind: &Kind) -> Value {
    to_extent(kind, Extent::Definition)
}

/// The schema that admission holds a kind to: that of the CRD, and what the original's decoder and webhooks refuse
/// beyond it, such as negative counts.
pub fn strict_schema(kind: &Kind) -> Value {
    to_extent(kind, Extent::Strict)
}

fn to_extent(kind: &Kind, extent: Extent) -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let root = (kind.schema)(&mut generator);
    let mut schema = structural::root(kind.description, kind.spec_required, generator, root);
    structural::settle(&mut schema, extent);
    schema
}

/// The CustomResourceDefinition of a kind.
pub fn definition(kind: &Kind) -> Value {
    let schema = schema(kind);
    let mut names = json!({
        "kind": kind.name,
        "listKind": format!("{}List", kind.name),
        "plural": kind.plural,
        "singular": kind.name.to_lowercase(),
    });
    if !kind.short_names.is_empty() {
        names["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        names["categories"] = json!(kind.categories);
    }
    let versions: Vec<Value> = kind.versions.iter().map(|version| served(kind, version, &schema)).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{}", kind.plural, kind.group), "labels": { labels::APP: "" } },
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": kind.scope.as_str(),
            "versions": versions,
        },
    })
}

fn served(kind: &Kind, version: &Version, schema: &Value) -> Value {
    let mut entry = json!({
        "name": version.name,
        "served": true,
        "storage": version.storage,
        "schema": { "openAPIV3Schema": schema },
    });
    if version.deprecated {
        entry["deprecated"] = json!(true);
        if let Some(warning) = version.warning {
            entry["deprecationWarning"] = json!(warning);
        }
    }
    if !kind.columns.is_empty() {
        entry["additionalPrinterColumns"] = kind.columns.iter().map(column).collect();
    }
    if kind.status || kind.scale.is_some() {
        entry["subresources"] = subresources(kind);
    }
    entry
}

fn column(column: &super::Column) -> Value {
    json!({ "name": column.name, "jsonPath": column.path, "type": column.type_ })
}

fn subresources(kind: &Kind) -> Value {
    let mut subresources = json!({});
    if kind.status {
        subresources["status"] = json!({});
    }
    if let Some(scale) = &kind.scale {
        subresources["scale"] = json!({
            "specReplicasPath": scale.spec,
            "statusReplicasPath": scale.status,
            "labelSelectorPath": scale.selector,
        });
    }
    subresources
}
