//! What a label selector matches.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::names::{is_label_key, is_label_value};

/// Whether a selector matches these labels; an error where the selector cannot be used.
pub fn matches(selector: &LabelSelector, labels: Option<&BTreeMap<String, String>>) -> Result<bool, String> {
    if let Some(problem) = problem(selector) {
        return Err(problem);
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

/// What is wrong with a selector, if anything.
pub fn problem(selector: &LabelSelector) -> Option<String> {
    for (key, value) in selector.match_labels.iter().flatten() {
        if !is_label_key(key) {
            return Some(format!("{key:?} is not the name of a label"));
        }
        if !is_label_value(value) {
            return Some(format!("{value:?} is not the value of a label"));
        }
    }
    for wanted in selector.match_expressions.iter().flatten() {
        let (key, values) = (&wanted.key, wanted.values.as_deref().unwrap_or_default());
        if !is_label_key(key) {
            return Some(format!("{key:?} is not the name of a label"));
        }
        match (wanted.operator.as_str(), values.is_empty()) {
            ("In" | "NotIn", false) | ("Exists" | "DoesNotExist", true) => {}
            (operator @ ("In" | "NotIn"), true) => {
                return Some(format!("{operator} for {key:?} needs values"));
            }
            (operator @ ("Exists" | "DoesNotExist"), false) => {
                return Some(format!("{operator} for {key:?} takes no values"));
            }
            (operator, _) => {
                return Some(format!("{operator:?} is not one of In, NotIn, Exists and DoesNotExist"));
            }
        }
        if let Some(value) = values.iter().find(|value| !is_label_value(value)) {
            return Some(format!("{value:?} is not the value of a label"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::read;

    #[test]
    fn names_and_values_follow_kubernetes() {
        for name in ["app", "a.b_c-d", "kubevirt.io/vm", "A1", &"a".repeat(63)] {
            assert!(is_label_key(name), "{name}");
        }
        for name in ["", "-a", "a-", "a/b/c", "/a", "a/", "UPPER.io/a", "a b", "ä", &"a".repeat(64)] {
            assert!(!is_label_key(name), "{name}");
        }
        assert!(is_label_value("") && is_label_value("x") && is_label_value("1.2_3-4"));
        assert!(!is_label_value("a/b") && !is_label_value(".") && !is_label_value(&"x".repeat(64)));
    }

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
