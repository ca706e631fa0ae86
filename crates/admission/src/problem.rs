//! Problems with an object: all of them, each with its field.

use std::collections::HashSet;
use std::fmt;

use crate::path::Path;

/// What kind of problem it is, in the words of Kubernetes' status causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The value cannot be used.
    Invalid,
    /// A value is missing.
    Required,
    /// The value is not one of those supported.
    NotSupported,
    /// The value stands there twice.
    Duplicate,
    /// What the value names does not exist.
    NotFound,
    /// The field may not be set or changed by this user or in this state.
    Forbidden,
    /// The value has the wrong type.
    WrongType,
    /// The field is not known.
    Unknown,
}

impl Reason {
    /// The cause's `reason` in a Kubernetes status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Required => "FieldValueRequired",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
            Self::Forbidden => "FieldValueForbidden",
            Self::WrongType => "FieldValueTypeInvalid",
            Self::Unknown => "FieldUnknown",
        }
    }
}

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of problem it is.
    pub reason: Reason,
    /// The path of the field; empty where it is about the object as a whole.
    pub field: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.names_its_field() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.field, self.message)
        }
    }
}

impl Problem {
    /// Whether the message says by itself where the problem is: those do that clients know word by word.
    fn names_its_field(&self) -> bool {
        let root = self.field.split(['.', '[']).next().unwrap_or_default();
        let begins = self.message.strip_prefix(root).is_some_and(|rest| rest.starts_with('.'));
        self.field.is_empty() || begins || self.message.contains(&self.field)
    }
}

/// The problems found so far, and what the user should know even if there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    found: Vec<Problem>,
    warnings: Vec<String>,
}

impl Problems {
    /// Adds a problem.
    pub fn add(&mut self, reason: Reason, field: &Path<'_>, message: impl Into<String>) {
        self.found.push(Problem { reason, field: field.to_string(), message: message.into() });
    }

    /// The value cannot be used.
    pub fn invalid(&mut self, field: &Path<'_>, message: impl Into<String>) {
        self.add(Reason::Invalid, field, message);
    }

    /// A value is missing.
    pub fn required(&mut self, field: &Path<'_>, message: impl Into<String>) {
        self.add(Reason::Required, field, message);
    }

    /// The value is not one of those supported.
    pub fn not_supported(&mut self, field: &Path<'_>, message: impl Into<String>) {
        self.add(Reason::NotSupported, field, message);
    }

    /// The value stands there twice.
    pub fn duplicate(&mut self, field: &Path<'_>, message: impl Into<String>) {
        self.add(Reason::Duplicate, field, message);
    }

    /// What the value names does not exist.
    pub fn not_found(&mut self, field: &Path<'_>, message: impl Into<String>) {
        self.add(Reason::NotFound, field, message);
    }

    /// The field may not be set or changed.
    pub fn forbidden(&mut self, field: &Path<'_>, message: impl Into<String>) {
        self.add(Reason::Forbidden, field, message);
    }

    /// Tells the user something without refusing the object.
    pub fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    /// What the user should know, in the order in which it was found.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// An error with the problems, unless there are none.
    pub fn into_result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }

    /// The problems, in the order in which they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.found.iter()
    }

    /// The same without problems of these fields and of what is inside of them.
    pub fn without(mut self, fields: &HashSet<String>) -> Self {
        let outside = |field: &str| {
            let ends = field.char_indices().filter(|(_, sign)| matches!(sign, '.' | '[')).map(|(end, _)| end);
            !fields.contains(field) && ends.filter(|end| *end > 0).all(|end| !fields.contains(&field[..end]))
        };
        self.found.retain(|problem| outside(&problem.field));
        self
    }

    /// Takes over the problems of another check.
    pub fn append(&mut self, mut other: Problems) {
        self.found.append(&mut other.found);
        self.warnings.append(&mut other.warnings);
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.found.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_its_field_once() {
        let cases = [
            ("", "no memory", "no memory"),
            ("spec.a", "is wrong", "spec.a: is wrong"),
            ("spec.a", "a spec. is wrong", "spec.a: a spec. is wrong"),
            ("spec.a.name", "spec.a.Name 'x' not found", "spec.a.Name 'x' not found"),
            ("spec.a[0].b", "spec.a[0] needs b", "spec.a[0] needs b"),
            ("spec.a", "field spec.a conflicts", "field spec.a conflicts"),
            ("specs[0]", "spec.a is wrong", "specs[0]: spec.a is wrong"),
        ];
        for (field, message, expected) in cases {
            let (field, message) = (field.to_owned(), message.to_owned());
            assert_eq!(Problem { reason: Reason::Invalid, field, message }.to_string(), expected);
        }
    }

    #[test]
    fn what_is_inside_of_a_field_goes_with_it() {
        let all = ["", "spec", "spec.a", "spec.a.b", "spec.a[1]", "spec.ab", "spec.b"];
        let cases: [(&[&str], &[&str]); 4] = [
            (&[], &all),
            (&["spec.a"], &["", "spec", "spec.ab", "spec.b"]),
            (&["spec"], &[""]),
            (&[""], &all[1..]),
        ];
        for (fields, left) in cases {
            let mut problems = Problems::default();
            all.iter().for_each(|field| problems.invalid(&Path::new(field), "bad"));
            let fields = fields.iter().map(|field| (*field).to_owned()).collect();
            let found: Vec<String> =
                problems.without(&fields).into_iter().map(|problem| problem.field).collect();
            assert_eq!(found, left, "{fields:?}");
        }
    }
}
