//! `cargo xtask api-coverage DIR`: our schemas beside those of KubeVirt, path by path.

mod reference;
mod rows;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use kubevirt_api::crd::{KINDS, Kind, schema};

use reference::Reference;
use rows::Row;

/// Where we differ on purpose, each with a reason.
const ON_PURPOSE: &[(&str, &str, &str)] = &[];

/// What the comparison came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// How many paths are the same on both sides.
    pub covered: usize,
    /// How many paths there are.
    pub of: usize,
    /// What differs, in words.
    pub differences: Vec<String>,
}

/// Compares every kind with the files of a folder.
pub fn compare(folder: &Path) -> Result<Coverage> {
    let mut coverage = Coverage::default();
    for kind in KINDS {
        let reference = Reference::read(folder, kind.name)?;
        compare_kind(kind, &reference, &mut coverage);
    }
    coverage.differences.extend(reference::definitions(folder)?);
    for kind in reference::kinds(folder)? {
        if !KINDS.iter().any(|ours| ours.name == kind) {
            coverage.differences.push(format!("{kind}: missing"));
        }
    }
    Ok(coverage)
}

fn compare_kind(kind: &Kind, reference: &Reference, coverage: &mut Coverage) {
    let ours: BTreeMap<String, Row> = rows::of(&schema(kind)).into_iter().collect();
    coverage.of += reference.rows.len();
    for (path, theirs) in &reference.rows {
        let found: Vec<String> = match ours.get(path) {
            None => vec!["missing".into()],
            Some(row) => row.differences(theirs),
        };
        let found: Vec<String> =
            found.into_iter().filter(|what| !on_purpose(kind.name, path, what)).collect();
        coverage.covered += usize::from(found.is_empty());
        coverage.differences.extend(found.iter().map(|what| format!("{} {path}: {what}", kind.name)));
    }
    for path in ours.keys().filter(|path| !reference.rows.contains_key(*path)) {
        coverage.differences.push(format!("{} {path}: only ours", kind.name));
    }
}

fn on_purpose(kind: &str, path: &str, what: &str) -> bool {
    ON_PURPOSE.iter().any(|(k, p, reason)| *k == kind && *p == path && what.contains(reason))
}

/// Prints the differences and, last, how much is covered.
pub fn print(coverage: &Coverage) {
    for difference in &coverage.differences {
        println!("{difference}");
    }
    println!("covered {} of {}", coverage.covered, coverage.of);
}
