//! Whether two volumes, or lists of them, are the same.

use serde::Serialize;
use serde_json::Value;

/// Whether two values are the same; what is absent is the same as what is empty or false.
pub fn same<T: PartialEq + Serialize + ?Sized>(one: &T, other: &T) -> bool {
    one == other || plain(one) == plain(other)
}

fn plain<T: Serialize + ?Sized>(value: &T) -> Value {
    let mut value = serde_json::to_value(value).unwrap_or_default();
    drop_empty(&mut value);
    value
}

fn drop_empty(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_empty),
        Value::Object(fields) => {
            fields.values_mut().for_each(drop_empty);
            fields.retain(|_, value| match value {
                Value::Null | Value::Bool(false) => false,
                Value::String(text) => !text.is_empty(),
                Value::Array(items) => !items.is_empty(),
                _ => true,
            });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_api::vmi::volumes::Volume;
    use serde_json::json;

    use super::*;
    use crate::testing::read;

    #[test]
    fn what_is_absent_is_the_same_as_what_is_empty() {
        let claim = |more: Value| {
            let mut claim = json!({ "claimName": "c" });
            claim.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            read::<Volume>(json!({ "name": "v", "persistentVolumeClaim": claim }))
        };
        let plain = claim(json!({}));
        assert!(same(&plain, &claim(json!({ "hotpluggable": false, "readOnly": false }))));
        assert!(!same(&plain, &claim(json!({ "hotpluggable": true }))));
        assert!(!same(&plain, &read::<Volume>(json!({ "name": "v" }))));
    }
}
