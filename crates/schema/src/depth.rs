//! A limit on how deeply documents may be nested, so that no walk can exhaust the stack.

use serde_json::Value;

use crate::path::{Path, Trail};

/// Values nested deeper than this are refused; the root is level one.
pub const MAX_DEPTH: usize = 100;

/// The first place that lies below the limit, if there is one.
pub(crate) fn too_deep(value: &Value) -> Option<Path> {
    search(value, &Trail::ROOT, MAX_DEPTH)
}

fn search(value: &Value, at: &Trail, left: usize) -> Option<Path> {
    if left == 0 {
        return Some(at.path());
    }
    match value {
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(i, item)| search(item, &at.index(i), left - 1))
        }
        Value::Object(fields) => {
            fields.iter().find_map(|(name, field)| search(field, &at.missing(name), left - 1))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_levels_from_the_root() {
        let nest = |levels: usize| (1..levels).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(too_deep(&nest(MAX_DEPTH)), None);
        let path = too_deep(&nest(MAX_DEPTH + 1)).unwrap();
        assert_eq!(path.segments().len(), MAX_DEPTH);
        assert!(too_deep(&nest(1000)).is_some());
    }
}
