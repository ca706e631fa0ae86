//! Label selectors and topology keys.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::validate::names::{LABEL_KEY, LABEL_VALUE, is_label_key, is_label_value};
use crate::{Path, Problems};

/// Adds a problem if the text cannot be the key of a label.
pub(super) fn check_key(field: &Path<'_>, key: &str, problems: &mut Problems) {
    if key.is_empty() {
        problems.invalid(field, "name the key of a label");
    } else if !is_label_key(key) {
        problems.invalid(field, format!("{key:?} cannot be the key of a label: {LABEL_KEY}"));
    }
}

/// Everything that is wrong with a label selector.
pub(super) fn check(field: &Path<'_>, selector: Option<&LabelSelector>, problems: &mut Problems) {
    let Some(selector) = selector else { return };
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

fn check_value(field: &Path<'_>, value: &str, problems: &mut Problems) {
    if !is_label_value(value) {
        problems.invalid(field, format!("{value:?} cannot be the value of a label: {LABEL_VALUE}"));
    }
}
