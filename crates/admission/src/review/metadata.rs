//! The metadata of an object as an API server would judge it: for manifests that no API server has seen.

use serde_json::Value;

use crate::validate::names::{
    DNS_SUBDOMAIN, LABEL_KEY, LABEL_VALUE, is_dns_subdomain, is_label_key, is_label_value,
};
use crate::{Path, Problems};

/// The most that all annotations may take together.
const ANNOTATIONS_LIMIT: usize = 256 << 10;

/// Everything that is wrong with the names, labels and annotations of an object.
pub fn check(object: &Value) -> Problems {
    let mut problems = Problems::default();
    let path = Path::new("metadata");
    let metadata = &object["metadata"];
    match (metadata["name"].as_str(), metadata["generateName"].as_str()) {
        (Some(name), _) => check_name(&path.at("name"), name, &mut problems),
        (None, Some(_)) => {}
        (None, None) if metadata["name"].is_null() => {
            problems.required(&path.at("name"), "an object needs a name, or generateName");
        }
        (None, None) => {}
    }
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        let labels = path.at("labels");
        if !is_label_key(key) {
            problems.invalid(&labels, format!("{key:?} cannot be the key of a label: {LABEL_KEY}"));
        }
        if let Some(value) = value.as_str().filter(|value| !is_label_value(value)) {
            problems.invalid(&labels, format!("{value:?} cannot be the value of a label: {LABEL_VALUE}"));
        }
    }
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    let size: usize = annotations.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > ANNOTATIONS_LIMIT {
        problems.invalid(&path.at("annotations"), "annotations may take 256 KiB together");
    }
    problems
}

fn check_name(field: &Path<'_>, name: &str, problems: &mut Problems) {
    if !is_dns_subdomain(name) {
        problems.invalid(field, format!("{name:?} cannot name an object: {DNS_SUBDOMAIN}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::check;
    use crate::testing::assert_fields;

    #[test]
    fn names_labels_and_annotations() {
        let cases = [
            ("good", json!({ "name": "a.b-c", "labels": { "x.io/y": "Z" } }), &[][..]),
            ("generated", json!({ "generateName": "a-" }), &[]),
            ("no name", json!({}), &["metadata.name"]),
            ("bad name", json!({ "name": "A b" }), &["metadata.name"]),
            ("bad label", json!({ "name": "a", "labels": { "a b": "c" } }), &["metadata.labels"]),
            ("bad value", json!({ "name": "a", "labels": { "a": "c d" } }), &["metadata.labels"]),
            (
                "too much",
                json!({ "name": "a", "annotations": { "a": "x".repeat(300 << 10) } }),
                &["metadata.annotations"],
            ),
        ];
        for (case, metadata, expected) in cases {
            assert_fields(case, &check(&json!({ "metadata": metadata })), expected);
        }
    }
}
