//! The schemas of KubeVirt, as the files of a folder list them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use kubevirt_api::crd::{KINDS, Kind};
use serde_json::{Value, json};

use super::rows::Row;

/// The rows of one kind.
#[derive(Debug)]
pub struct Reference {
    /// By path.
    pub rows: BTreeMap<String, Row>,
}

impl Reference {
    /// Reads `KIND.tsv` and the lines of `schema-rules.tsv` that are about this kind.
    pub fn read(folder: &Path, kind: &str) -> Result<Self> {
        let mut rows = BTreeMap::new();
        for line in read(&folder.join(format!("{kind}.tsv")))?.lines().filter(|line| !line.is_empty()) {
            let mut columns = line.split('\t');
            let (Some(path), Some(type_)) = (columns.next(), columns.next()) else {
                bail!("{kind}.tsv: not a path and a type: {line}");
            };
            let facets = columns.next().unwrap_or_default();
            let row = Row {
                type_: type_.into(),
                required: path.ends_with('!'),
                facets: facets.split(' ').filter(|facet| !facet.is_empty()).map(str::to_owned).collect(),
                ..Row::default()
            };
            rows.insert(path.replace('!', ""), row);
        }
        for line in read(&folder.join("schema-rules.tsv"))?.lines() {
            let mut columns = line.split('\t');
            if columns.next() != Some(kind) {
                continue;
            }
            let (path, rules) = (columns.next().unwrap_or_default(), columns.next().unwrap_or_default());
            let row =
                rows.get_mut(path).with_context(|| format!("schema-rules.tsv: {kind} has no {path}"))?;
            // That unknown fields are kept is said in KIND.tsv already.
            let rules = rules.split("; ").filter(|rule| *rule != "preserve-unknown-fields");
            row.rules.extend(rules.map(str::to_owned));
        }
        Ok(Self { rows })
    }
}

/// The kinds that the folder lists.
pub fn kinds(folder: &Path) -> Result<Vec<String>> {
    let mut kinds = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if let Some(kind) = name.strip_suffix(".tsv").filter(|kind| *kind != "schema-rules") {
            kinds.push(kind.to_owned());
        }
    }
    kinds.sort();
    Ok(kinds)
}

/// How our definitions differ from `crds.json` in names, versions, columns and subresources.
pub fn definitions(folder: &Path) -> Result<Vec<String>> {
    let listed: Vec<Value> = serde_json::from_str(&read(&folder.join("crds.json"))?).context("crds.json")?;
    let ours: Vec<Value> = KINDS.iter().flat_map(entries).collect();
    let mut found = Vec::new();
    for entry in &listed {
        let mut wanted = entry.clone();
        wanted.as_object_mut().context("crds.json: not a list of objects")?.remove("fields");
        let same = |other: &&Value| ["kind", "group", "version"].iter().all(|key| other[key] == wanted[key]);
        let Some(own) = ours.iter().find(same) else {
            found.push(format!("{} {}: not served", wanted["kind"], wanted["version"]));
            continue;
        };
        for (key, value) in wanted.as_object().into_iter().flatten() {
            if own[key] != *value {
                found.push(format!(
                    "{} {}: {key} is {}, not {value}",
                    wanted["kind"], wanted["version"], own[key]
                ));
            }
        }
    }
    if listed.len() != ours.len() {
        found.push(format!("{} versions are served instead of {}", ours.len(), listed.len()));
    }
    Ok(found)
}

/// Our kind in the form of `crds.json`: one entry a version.
fn entries(kind: &Kind) -> Vec<Value> {
    let columns: Vec<Value> = kind.columns.iter().map(|c| json!([c.name, c.path, c.type_])).collect();
    let mut subresources = Vec::new();
    subresources.extend(kind.scale.is_some().then_some("scale"));
    subresources.extend(kind.status.then_some("status"));
    let scale = kind.scale.map(|scale| {
        json!({
            "specReplicasPath": scale.spec,
            "statusReplicasPath": scale.status,
            "labelSelectorPath": scale.selector,
        })
    });
    let entry = |version: &kubevirt_api::crd::Version| {
        json!({
            "group": kind.group, "version": version.name, "kind": kind.name, "plural": kind.plural,
            "short": kind.short_names, "categories": kind.categories, "scope": kind.scope.as_str(),
            "served": true, "storage": version.storage, "deprecated": version.deprecated,
            "subresources": subresources, "scale": scale, "columns": columns,
        })
    };
    kind.versions.iter().map(entry).collect()
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
