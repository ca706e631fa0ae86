//! A raw object against the schema of its kind, before it becomes one of our types.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use kubevirt_api::crd::{KINDS, Kind, QUANTITY_PATTERN, strict_schema};
use kubevirt_api::duration::PATTERN as DURATION_PATTERN;
use kubevirt_schema::{
    ProblemKind, Schema, apply_defaults, drop_nulls, mend, normalize_numbers, unknown_fields, validate,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Path, Problems, Reason};

/// The schemas of the kinds, made when they are first asked for.
static SCHEMAS: LazyLock<BTreeMap<&'static str, OnceLock<Option<Schema>>>> =
    LazyLock::new(|| KINDS.iter().map(|kind| (kind.name, OnceLock::new())).collect());

fn schema_of(kind: &Kind) -> Option<&'static Schema> {
    SCHEMAS.get(kind.name)?.get_or_init(|| Schema::parse(&strict_schema(kind)).ok()).as_ref()
}

/// Checks an object against the schema of its kind, then puts it into the form that an API server would store:
/// nulls that mean absence dropped, defaults of the schema filled in. What could not be read is mended, so that
/// everything else can still be judged.
pub fn check(kind: &Kind, object: &mut Value, problems: &mut Problems) {
    let Some(schema) = schema_of(kind) else {
        problems.invalid(&Path::WHOLE, format!("the schema of {} is broken", kind.name));
        return;
    };
    drop_nulls(schema, object);
    apply_defaults(schema, object);
    let found = validate(schema, object);
    for problem in &found {
        let path = problem.path.to_string();
        problems.add(reason(&problem.kind), &Path::new(&path), in_words(&problem.detail));
    }
    for path in unknown_fields(schema, object) {
        let path = path.to_string();
        problems.add(Reason::Unknown, &Path::new(&path), "is not a known field; check its spelling");
    }
    normalize_numbers(schema, object);
    mend(schema, object, &found);
}

/// A problem in words that help: nobody wants to read the pattern of a quantity.
fn in_words(detail: &str) -> String {
    let patterns = [
        (QUANTITY_PATTERN, "a quantity such as 1Gi or 500m"),
        (DURATION_PATTERN, "a duration such as 1h30m"),
    ];
    for (pattern, what) in patterns {
        if let Some(value) = detail.strip_suffix(pattern).and_then(|text| text.split(" does not").next()) {
            return format!("{value} is not {what}");
        }
    }
    detail.to_owned()
}

fn reason(kind: &ProblemKind) -> Reason {
    match kind {
        ProblemKind::Required => Reason::Required,
        ProblemKind::WrongType { .. } => Reason::WrongType,
        ProblemKind::NotSupported { .. } => Reason::NotSupported,
        ProblemKind::Duplicate => Reason::Duplicate,
        _ => Reason::Invalid,
    }
}

/// The object as one of our types; where that fails, the field that stands in the way.
pub fn decode<K: DeserializeOwned>(object: &Value, problems: &mut Problems) -> Option<K> {
    // To note the way to each field costs half as much again, and mostly nobody asks for it.
    if let Ok(typed) = K::deserialize(object) {
        return Some(typed);
    }
    match serde_path_to_error::deserialize(object) {
        Ok(typed) => Some(typed),
        Err(error) => {
            let field = error.path().to_string();
            let field = if field == "." { String::new() } else { field };
            // The schema has mostly said it already, and better.
            let covers = |known: &str| known == field || field.starts_with(&format!("{known}."));
            if !problems.iter().any(|problem| covers(&problem.field)) {
                problems.add(Reason::WrongType, &Path::new(&field), error.inner().to_string());
            }
            None
        }
    }
}
