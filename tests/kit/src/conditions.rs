//! Conditions to wait for, see [`Test::wait`](crate::Test::wait).

use serde::Serialize;
use serde_json::Value;

/// Whether the object's status has the condition `kind`, and it is true.
pub fn has<K: Serialize>(kind: &str) -> impl Fn(&K) -> bool {
    is(kind, "True")
}

/// Whether the object's status has the condition `kind` with this status.
pub fn is<K: Serialize>(kind: &str, status: &str) -> impl Fn(&K) -> bool {
    move |object| {
        let object = serde_json::to_value(object).unwrap_or(Value::Null);
        let conditions = object["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|one| one["type"] == kind && one["status"] == status)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_conditions() {
        let object = json!({"status": {"conditions": [
            {"type": "Initialized", "status": "True"},
            {"type": "Ready", "status": "False"},
        ]}});
        assert!(has("Initialized")(&object));
        assert!(!has("Ready")(&object));
        assert!(is("Ready", "False")(&object));
        assert!(!has("Ready")(&json!({"status": {"conditions": null}})));
        assert!(!has("Ready")(&json!({})));
    }
}
