//! Patches that a restore makes to the virtual machine.

use serde_json::Value;

use crate::{Path, Problems};

/// The parts of a VM that a patch may touch.
const PATCHED: [&str; 3] = ["/spec/", "/metadata/labels/", "/metadata/annotations/"];

/// What is wrong with a JSON patch for the restored VM.
///
/// A patch is made of plain members: KubeVirt accepts none with a colon or a comma in its value.
pub(super) fn check(patch: &str, problems: &mut Problems) {
    let field = Path::new("spec.patches");
    let mut fine = true;
    for member in patch.trim_matches(['{', '}']).split(',') {
        let mut parts = member.split(':').map(str::trim);
        let (Some(key), Some(value), None) = (parts.next(), parts.next(), parts.next()) else {
            let message = format!("{member:?} is not one key and one value with a colon between them");
            problems.invalid(&field, message);
            fine = false;
            continue;
        };
        if key == "\"path\"" && !value.strip_prefix('"').is_some_and(can_be_patched) {
            refuse_path(&field, value, problems);
            fine = false;
        }
    }
    if !fine {
        return;
    }
    // The same path may be written with escapes: what is applied is what the JSON says.
    let operations = match serde_json::from_str(patch) {
        Ok(Value::Array(operations)) => operations,
        Ok(operation) => vec![operation],
        Err(_) => return,
    };
    let paths = operations.iter().filter_map(|operation| operation.get("path")?.as_str());
    for path in paths.filter(|path| !can_be_patched(path)) {
        refuse_path(&field, path, problems);
    }
}

fn can_be_patched(path: &str) -> bool {
    PATCHED.iter().any(|prefix| path.starts_with(prefix))
}

fn refuse_path(field: &Path<'_>, path: &str, problems: &mut Problems) {
    problems
        .invalid(field, format!("{path} cannot be patched: only what is below {} can", PATCHED.join(", ")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_fields;

    #[test]
    fn patches_stay_in_the_specification() {
        let cases = [
            (r#"{"op": "replace", "path": "/spec/running", "value": "x"}"#, 0),
            (r#"[{"op":"replace","path":"/spec/running","value":"x"}]"#, 0),
            (r#"{"op": "remove", "path": "/metadata/labels/a"}"#, 0),
            (r#"{"op": "remove", "path": "/metadata/annotations/a"}"#, 0),
            (r#"{"op": "test", "value": "x"}"#, 0),
            (r#"[{"op":"replace","path":"/metadata","value":"x"}]"#, 1),
            (r#"{"op": "replace", "path": "/metadata/name", "value": "x"}"#, 1),
            (r#"{"op": "remove", "path": "/apiVersion"}"#, 1),
            (r#"{"op": "remove", "path": "/spec"}"#, 1),
            (r#"{"op": "remove", "path": 7}"#, 1),
            (r#"{"op": "add", "path": "/status/ready", "value": "x"}"#, 1),
            (r#"{"op": "remove", "path": "/spec/running" : "x"}"#, 1),
            (r#"{"op": "remove", "p\u0061th": "/metadata/name"}"#, 1),
            (r#"{"op": "replace", "path": "/spec/x", "value": "02:00:00:00:00:01"}"#, 1),
            (r#"[{"op":"remove","path":"/kind"},{"op":"remove","path":"/metadata/name"}]"#, 2),
            ("nonsense", 1),
            ("", 1),
            ("{}", 1),
        ];
        for (patch, expected) in cases {
            let mut problems = Problems::default();
            check(patch, &mut problems);
            assert_fields(patch, &problems, &vec!["spec.patches"; expected]);
        }
    }
}
