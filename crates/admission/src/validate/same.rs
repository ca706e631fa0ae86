//! Whether two values mean the same, however they are written.

use kubevirt_api::duration::Duration;
use kubevirt_api::quantity::Amount;
use serde::Serialize;
use serde_json::{Map, Value};

/// Switches that are on where they are left out: switching one off is a change.
const ON_UNLESS_SAID: [&str; 2] = ["enabled", "preallocation"];

/// Whether two values mean the same: an empty text, an empty list, a zero or a `false` is as good as a field
/// that is not there, and amounts and durations count by their size.
///
/// Clients leave out on the way back what they found empty, which must not look like a change.
pub fn same<T: PartialEq + Serialize>(one: &T, other: &T) -> bool {
    if one == other {
        return true;
    }
    match (serde_json::to_value(one), serde_json::to_value(other)) {
        (Ok(one), Ok(other)) => alike("", &one, &other),
        _ => false,
    }
}

/// The same for two optional lists, of which an empty one is as good as none.
pub fn same_list<T: PartialEq + Serialize>(one: Option<&Vec<T>>, other: Option<&Vec<T>>) -> bool {
    let (one, other) =
        (one.map(Vec::as_slice).unwrap_or_default(), other.map(Vec::as_slice).unwrap_or_default());
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
}

fn alike(key: &str, one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => alike_objects(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| alike(key, one, other))
        }
        (Value::String(one), Value::String(other)) => one == other || same_size(key, one, other),
        (one, other) => one == other || (is_empty(key, one) && is_empty(key, other)),
    }
}

fn alike_objects(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let in_one = one.iter().all(|(key, value)| alike(key, value, other.get(key).unwrap_or(&Value::Null)));
    in_one && other.iter().all(|(key, value)| one.contains_key(key) || is_empty(key, value))
}

fn is_empty(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(on) => !on && !ON_UNLESS_SAID.contains(&key),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        // An object without fields still says something: `cdrom: {}`, `blank: {}`.
        Value::Object(_) => false,
    }
}

fn same_size(key: &str, one: &str, other: &str) -> bool {
    match key {
        "capacity" | "storage" => match (Amount::parse(one), Amount::parse(other)) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        },
        "failureDeadline" | "ttlDuration" => {
            let length = |text: &str| Duration(text.to_owned()).parse().ok();
            length(one).is_some_and(|one| length(other).is_some_and(|other| one == other))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{same, same_list};

    #[test]
    fn ways_of_writing_the_same_are_the_same() {
        let cases = [
            (json!({"a": 1}), json!({"a": 1}), true),
            (json!({"a": 1}), json!({"a": 2}), false),
            (json!({"a": ""}), json!({}), true),
            (json!({}), json!({"a": []}), true),
            (json!({"hotpluggable": false}), json!({}), true),
            (json!({"hotpluggable": true}), json!({}), false),
            (json!({"enabled": false}), json!({}), false),
            (json!({"preallocation": false}), json!({"preallocation": true}), false),
            (json!({"cdrom": {}}), json!({}), false),
            (json!({"cdrom": {}}), json!({"cdrom": {"readonly": false}}), true),
            (json!({"capacity": "1Gi"}), json!({"capacity": "1024Mi"}), true),
            (json!({"capacity": "1Gi"}), json!({"capacity": "1025Mi"}), false),
            (json!({"capacity": "x"}), json!({"capacity": "y"}), false),
            (json!({"name": "1k"}), json!({"name": "1000"}), false),
            (json!({"ttlDuration": "60m"}), json!({"ttlDuration": "1h"}), true),
            (json!({"ttlDuration": "60m"}), json!({"ttlDuration": "2h"}), false),
            (json!([{"a": 0}, 1]), json!([{}, 1]), true),
            (json!([1]), json!([1, 1]), false),
            (json!({"a": "x"}), json!({"a": 1}), false),
        ];
        for (one, other, expected) in cases {
            assert_eq!(same(&one, &other), expected, "{one} {other}");
            assert_eq!(same(&other, &one), expected, "{other} {one}");
        }
        assert!(same_list::<u8>(None, Some(&vec![])));
        assert!(!same_list(Some(&vec![1]), Some(&vec![2])));
    }
}
