//! Labels and their selectors: how they are written, and what a selector matches.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::names::{LABEL_KEY, LABEL_VALUE, is_label_key, is_label_value};
use crate::{Path, Problems};

/// Whether a selector matches these labels; an error where the selector cannot be used.
pub fn matches(selector: &LabelSelector, labels: Option<&BTreeMap<String, String>>) -> Result<bool, String> {
    let mut problems = Problems::default();
    check(&Path::WHOLE, selector, &mut problems);
    if let Some(problem) = problems.iter().next() {
        return Err(problem.to_string());
    }
    let label = |key: &str| labels.and_then(|labels| labels.get(key));
    let by_labels = selector
        .match_labels
        .iter()
        .flatten()
        .all(|(key, value)| label(key).is_some_and(|have| have == value));
    let by_expressions = selector.match_expressions.iter().flatten().all(|wanted| {
        let have = label(&wanted.key);
        let listed = have.is_some_and(|have| wanted.values.iter().flatten().any(|value| value == have));
        match wanted.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => have.is_some(),
            _ => have.is_none(),
        }
    });
    Ok(by_labels && by_expressions)
}

/// Adds a problem if the text cannot be the key of a label.
pub(crate) fn check_key(field: &Path<'_>, key: &str, problems: &mut Problems) {
    if key.is_empty() {
        problems.invalid(field, "name the key of a label");
    } else if !is_label_key(key) {
        problems.invalid(field, format!("{key:?} cannot be the key of a label: {LABEL_KEY}"));
    }
}

/// Everything that is wrong with a label selector.
pub(crate) fn check(field: &Path<'_>, selector: &LabelSelector, problems: &mut Problems) {
    let labels = field.at("matchLabels");
    for (key, value) in selector.match_labels.iter().flatten() {
        check_key(&labels, key, problems);
        check_value(&labels, value, problems);
    }
    let expressions = field.at("matchExpressions");
    for (index, expression) in selector.match_expressions.iter().flatten().enumerate() {
        let field = expressions.index(index);
        let values = expression.values.as_deref().unwrap_or_default();
        match expression.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => {
                problems.invalid(&field.at("values"), "In and NotIn need at least one value");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                problems.invalid(&field.at("values"), "Exists and DoesNotExist take no values");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let message = format!("{other:?} is not In, NotIn, Exists or DoesNotExist");
                problems.invalid(&field.at("operator"), message);
            }
        }
        check_key(&field.at("key"), &expression.key, problems);
        for (index, value) in values.iter().enumerate() {
            check_value(&field.at("values").index(index), value, problems);
        }
    }
}

/// Adds a problem if the text cannot be the value of a label.
pub(crate) fn check_value(field: &Path<'_>, value: &str, problems: &mut Problems) {
    if !is_label_value(value) {
        problems.invalid(field, format!("{value:?} cannot be the value of a label: {LABEL_VALUE}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::read;

    #[test]
    fn a_selector_matches_when_every_part_of_it_does() {
        let labels = BTreeMap::from([("app".to_owned(), "db".to_owned())]);
        let cases = [
            (json!({}), Ok(true)),
            (json!({ "matchLabels": { "app": "db" } }), Ok(true)),
            (json!({ "matchLabels": { "app": "web" } }), Ok(false)),
            (
                json!({ "matchExpressions": [{ "key": "app", "operator": "In", "values": ["db", "x"] }] }),
                Ok(true),
            ),
            (
                json!({ "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": ["db"] }] }),
                Ok(false),
            ),
            (
                json!({ "matchExpressions": [{ "key": "b", "operator": "NotIn", "values": ["db"] }] }),
                Ok(true),
            ),
            (json!({ "matchExpressions": [{ "key": "app", "operator": "Exists" }] }), Ok(true)),
            (json!({ "matchExpressions": [{ "key": "app", "operator": "DoesNotExist" }] }), Ok(false)),
            (
                json!({ "matchExpressions": [{ "key": "app", "operator": "Exists", "values": ["x"] }] }),
                Err(()),
            ),
            (json!({ "matchExpressions": [{ "key": "app", "operator": "In" }] }), Err(())),
            (json!({ "matchExpressions": [{ "key": "app", "operator": "Like", "values": ["x"] }] }), Err(())),
            (json!({ "matchExpressions": [{ "key": "-", "operator": "Exists" }] }), Err(())),
            (json!({ "matchExpressions": [{ "key": "app", "operator": "In", "values": ["a/b"] }] }), Err(())),
            (json!({ "matchLabels": { "a b": "c" } }), Err(())),
            (json!({ "matchLabels": { "a": "b c" } }), Err(())),
        ];
        for (selector, expected) in cases {
            let found = matches(&read(selector.clone()), Some(&labels)).map_err(|_| ());
            assert_eq!(found, expected, "{selector}");
        }
        assert_eq!(matches(&LabelSelector::default(), None), Ok(true));
    }
}
