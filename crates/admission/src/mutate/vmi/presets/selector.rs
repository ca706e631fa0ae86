//! Which labels a selector finds.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

type Labels = BTreeMap<String, String>;

/// Whether the labels meet every requirement; an empty selector finds everything.
pub fn matches(selector: &LabelSelector, labels: Option<&Labels>) -> Result<bool, String> {
    let label = |key: &str| labels.and_then(|labels| labels.get(key));
    let mut found = selector.match_labels.iter().flatten().all(|(key, value)| label(key) == Some(value));
    // Every requirement is read, even if one before it fails: a selector is either sound or not.
    for requirement in selector.match_expressions.iter().flatten() {
        found &= meets(requirement, label(&requirement.key))?;
    }
    Ok(found)
}

fn meets(requirement: &LabelSelectorRequirement, label: Option<&String>) -> Result<bool, String> {
    let values = requirement.values.as_deref().unwrap_or_default();
    let listed = label.is_some_and(|label| values.contains(label));
    let key = &requirement.key;
    match (requirement.operator.as_str(), values.is_empty()) {
        ("In", false) => Ok(listed),
        ("NotIn", false) => Ok(!listed),
        ("Exists", true) => Ok(label.is_some()),
        ("DoesNotExist", true) => Ok(label.is_none()),
        (operator @ ("In" | "NotIn"), _) => Err(format!("{operator} for label {key:?} needs values")),
        (operator @ ("Exists" | "DoesNotExist"), _) => {
            Err(format!("{operator} for label {key:?} takes no values"))
        }
        (operator, _) => Err(format!("label {key:?} has the unknown operator {operator:?}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::read;

    #[test]
    fn a_selector_finds_labels_that_meet_all_of_it() {
        let expression = |operator: &str, values: Value| json!({ "matchExpressions": [{ "key": "os", "operator": operator, "values": values }] });
        let cases = [
            (json!({}), Some(true)),
            (json!({ "matchLabels": { "os": "linux" } }), Some(true)),
            (json!({ "matchLabels": { "os": "linux", "size": "small" } }), Some(false)),
            (expression("In", json!(["linux", "bsd"])), Some(true)),
            (expression("In", json!(["bsd"])), Some(false)),
            (expression("NotIn", json!(["bsd"])), Some(true)),
            (expression("NotIn", json!(["linux"])), Some(false)),
            (expression("Exists", json!([])), Some(true)),
            (expression("DoesNotExist", json!(null)), Some(false)),
            (
                json!({ "matchExpressions": [{ "key": "x", "operator": "NotIn", "values": ["y"] }] }),
                Some(true),
            ),
            (json!({ "matchExpressions": [{ "key": "x", "operator": "DoesNotExist" }] }), Some(true)),
            (
                json!({ "matchLabels": { "os": "bsd" }, "matchExpressions": [{ "key": "os", "operator": "Exists" }] }),
                Some(false),
            ),
            (expression("In", json!([])), None),
            (expression("Exists", json!(["linux"])), None),
            (expression("Gt", json!(["1"])), None),
        ];
        let labels: Labels = read(json!({ "os": "linux" }));
        for (selector, expected) in cases {
            assert_eq!(matches(&read(selector.clone()), Some(&labels)).ok(), expected, "{selector}");
        }
        assert_eq!(matches(&LabelSelector::default(), None), Ok(true));
    }
}
