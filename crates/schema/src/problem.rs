//! What is wrong with a document, and where.

use std::fmt;

use serde_json::Value;

use crate::node::Type;
use crate::path::Path;

/// One thing that is wrong with a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Where in the document; for [`ProblemKind::Required`], where the missing field would be.
    pub path: Path,
    /// What sort of problem it is.
    pub kind: ProblemKind,
    /// The problem in words, without the path: "must be an integer, not the string \"two\"".
    pub detail: String,
}

/// The sorts of problems, named as Kubernetes names them.
#[derive(Clone, Debug, PartialEq)]
pub enum ProblemKind {
    /// A field that must be there is missing.
    Required,
    /// The value has another type than the schema asks for.
    WrongType {
        /// What the schema asks for.
        expected: Type,
        /// What the document has.
        found: Found,
    },
    /// The value is not one of the allowed ones.
    NotSupported {
        /// The allowed values, strings without their quotes.
        allowed: Vec<String>,
    },
    /// The value breaks a rule that has no kind of its own.
    Invalid,
    /// The field may not be there at all.
    Forbidden,
    /// A string has too many characters.
    TooLong {
        /// The most that are allowed.
        max: u64,
    },
    /// A list or an object has too many entries.
    TooMany {
        /// How many there are.
        actual: usize,
        /// The most that are allowed.
        max: u64,
    },
    /// The item of a set or of a keyed list repeats an earlier one.
    Duplicate,
    /// The document is nested too deeply to be looked at.
    TooDeep,
}

impl ProblemKind {
    /// The reason of a `Status` cause that Kubernetes uses for this kind.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::WrongType { .. } => "FieldValueTypeInvalid",
            Self::NotSupported { .. } => "FieldValueNotSupported",
            Self::Invalid | Self::TooDeep => "FieldValueInvalid",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong { .. } => "FieldValueTooLong",
            Self::TooMany { .. } => "FieldValueTooMany",
            Self::Duplicate => "FieldValueDuplicate",
        }
    }
}

/// The type of a value in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number without a fraction.
    Integer,
    /// Any other number.
    Number,
    /// A string.
    String,
    /// A list.
    Array,
    /// An object.
    Object,
}

impl Found {
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(n) if n.is_f64() => Self::Number,
            Value::Number(_) => Self::Integer,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_root() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.detail)
    }
}

/// A value in words, short enough for a message: `the string "two"`.
pub(crate) fn in_words(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => format!("the boolean {b}"),
        Value::Number(n) => format!("the number {n}"),
        Value::String(s) => format!("the string {}", quoted(s)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// A string in quotes, cut when it is long.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// A number of things: `1 item`, `2 items`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_stay_short() {
        for (value, words) in [
            (json!(null), "null"),
            (json!(true), "the boolean true"),
            (json!(1.5), "the number 1.5"),
            (json!("a\"b"), r#"the string "a\"b""#),
            (json!([1]), "a list"),
            (json!({"a": 1}), "an object"),
        ] {
            assert_eq!(in_words(&value), words);
        }
        let long = in_words(&json!("é".repeat(1000)));
        assert!(long.chars().count() < 100, "{long}");
    }
}
