//! Manifests: YAML or JSON, several documents a file, lists unrolled.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use kubevirt_api::crd::{KINDS, Scope};
use kubevirt_api::kubevirt::KubeVirt;
use serde_json::Value;

/// An object and where it was read.
pub struct Document {
    /// The file, and which document of it where there are several.
    pub source: String,
    /// The object.
    pub object: Value,
}

/// Kinds outside of namespaces that are not ours.
const CLUSTER_KINDS: [&str; 4] =
    ["Namespace", "CustomResourceDefinition", "StorageClass", "PersistentVolume"];

/// The kinds that rules may look up while a manifest beside them is checked.
const REFERENCES: [&str; 6] = [
    "VirtualMachineInstancetype",
    "VirtualMachineClusterInstancetype",
    "VirtualMachinePreference",
    "VirtualMachineClusterPreference",
    "VirtualMachineInstancePreset",
    "VirtualMachine",
];

impl Document {
    /// Whether other manifests may refer to this one.
    pub fn is_reference(&self) -> bool {
        let kind = self.object["kind"].as_str().unwrap_or_default();
        REFERENCES.contains(&kind) || !KINDS.iter().any(|own| own.name == kind)
    }
}

/// The objects of a file, `-` being standard input.
pub fn read(file: &Path, namespace: &str) -> Result<Vec<Document>> {
    let name = if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() };
    let text = text(file).with_context(|| format!("cannot read {name}"))?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).map_err(|error| anyhow::anyhow!("{name} is not YAML: {error}"))?;
    let several = documents.len() > 1;
    let mut found = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        let source = if several { format!("{name} (document {})", index + 1) } else { name.clone() };
        unroll(source, document, &mut found)?;
    }
    for document in &mut found {
        place(&mut document.object, namespace);
    }
    Ok(found)
}

/// The KubeVirt object of a file, which holds the configuration.
pub fn installation(file: &Path, namespace: &str) -> Result<KubeVirt> {
    let documents = read(file, namespace)?;
    let mut found = documents.into_iter().filter(|document| document.object["kind"] == "KubeVirt");
    let Some(document) = found.next() else { bail!("{} holds no object of kind KubeVirt", file.display()) };
    if found.next().is_some() {
        bail!("{} holds several objects of kind KubeVirt; keep one", file.display());
    }
    serde_json::from_value(document.object).with_context(|| format!("{}: KubeVirt", file.display()))
}

fn text(file: &Path) -> std::io::Result<String> {
    if file != Path::new("-") {
        return std::fs::read_to_string(file);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text)
}

fn unroll(source: String, mut document: Value, found: &mut Vec<Document>) -> Result<()> {
    if document.is_null() {
        return Ok(());
    }
    let kind = document["kind"].as_str().unwrap_or_default().to_owned();
    if kind.is_empty() || !document["apiVersion"].is_string() {
        bail!("{source} is not a Kubernetes object: it has no apiVersion or no kind");
    }
    if kind == "List" || (kind.ends_with("List") && document["items"].is_array()) {
        let items = document["items"].take();
        for item in items.as_array().cloned().unwrap_or_default() {
            unroll(source.clone(), item, found)?;
        }
        return Ok(());
    }
    found.push(Document { source, object: document });
    Ok(())
}

/// Puts an object that names no namespace into the default one, as an API server does.
fn place(object: &mut Value, namespace: &str) {
    let kind = object["kind"].as_str().unwrap_or_default();
    let ours = KINDS.iter().find(|own| own.name == kind);
    let outside = ours.map_or_else(|| CLUSTER_KINDS.contains(&kind), |own| own.scope == Scope::Cluster);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        && !outside
        && metadata.get("namespace").is_none_or(Value::is_null)
    {
        metadata.insert("namespace".into(), namespace.into());
    }
}
