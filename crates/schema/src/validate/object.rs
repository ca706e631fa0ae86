//! Checks on objects: their size, missing fields, the fields themselves, and being a resource.

use serde_json::{Map, Value};

use super::Validation;
use crate::checks::Checks;
use crate::node::{Additional, Node, Type};
use crate::object_meta::object_meta;
use crate::path::Trail;
use crate::problem::{Found, ProblemKind, counted, in_words, quoted};

impl Validation {
    pub(super) fn object(&mut self, checks: &Checks, node: &Node, fields: &Map<String, Value>, at: &Trail) {
        if checks.min_properties.is_some() || checks.max_properties.is_some() {
            self.size(checks, node, fields, at);
        }
        for name in &checks.required {
            let property = node.field(name);
            let there = fields
                .get(&**name)
                .is_some_and(|value| !property.is_some_and(|property| property.is_absent(value)));
            let defaulted = || node.properties.get(name).is_some_and(|p| p.default.is_some());
            if !there && !defaulted() {
                self.required(&at.missing(name));
            }
        }
    }

    fn required(&mut self, at: &Trail) {
        self.report(at, || (ProblemKind::Required, "is required".to_owned()));
    }

    fn size(&mut self, checks: &Checks, node: &Node, fields: &Map<String, Value>, at: &Trail) {
        let present = |(name, value): &(&String, &Value)| {
            let field = node.field(name);
            !field.is_some_and(|field| field.is_absent(value) && field.default.is_none())
        };
        let properties = node.properties.iter();
        let defaulted = properties
            .filter(|(name, property)| property.default.is_some() && !fields.contains_key(&***name))
            .count();
        let actual = fields.iter().filter(present).count() + defaulted;
        if let Some(min) = checks.min_properties.filter(|min| (actual as u64) < *min) {
            self.invalid(at, || format!("must have at least {}, not {actual}", counted(min, "field")));
        }
        if let Some(max) = checks.max_properties.filter(|max| actual as u64 > *max) {
            self.report(at, || {
                let max_fields = counted(max, "field");
                let detail = format!("must have at most {max_fields}, not {actual}");
                (ProblemKind::TooMany { actual, max }, detail)
            });
        }
    }

    pub(super) fn fields(&mut self, node: &Node, fields: &Map<String, Value>, at: &Trail) {
        for (i, (name, value)) in fields.iter().enumerate() {
            let at = at.field(name, i);
            if node.embedded && !self.resource_field(node, name, value, &at) {
                continue;
            }
            match node.field(name) {
                Some(field) if field.is_absent(value) => {}
                Some(field) => self.node(field, value, &at),
                None if matches!(node.additional, Additional::Nothing) => {
                    self.report(&at, || (ProblemKind::Forbidden, "is not allowed".to_owned()));
                }
                None => {}
            }
        }
    }

    /// Whether a field that every resource has is as it must be; the schema may restrict it
    /// further.
    fn resource_field(&mut self, node: &Node, name: &str, value: &Value, at: &Trail) -> bool {
        let before = self.found.len();
        match name {
            "metadata" if !value.is_null() => self.node(object_meta(), value, at),
            "apiVersion" | "kind" if !value.is_string() && !node.properties.contains_key(name) => {
                let (expected, found) = (Type::String, Found::of(value));
                self.report(at, || {
                    let detail = format!("must be a string, not {}", in_words(value));
                    (ProblemKind::WrongType { expected, found }, detail)
                });
            }
            _ => {}
        }
        self.found.len() == before
    }

    /// An embedded resource must say what it is; for the root others make sure of that.
    pub(super) fn resource_names(&mut self, fields: &Map<String, Value>, at: &Trail) {
        for name in ["apiVersion", "kind"] {
            let is_valid = if name == "kind" { is_kind } else { is_version };
            let position = fields.keys().position(|key| key == name);
            match (fields.get(name), position) {
                (Some(Value::String(text)), Some(i)) if !is_valid(text) => {
                    self.invalid(&at.field(name, i), || format!("{} is not a valid {name}", quoted(text)));
                }
                (None | Some(Value::Null), _) => self.required(&at.missing(name)),
                _ => {}
            }
        }
    }
}

/// `version` or `group/version`.
fn is_version(text: &str) -> bool {
    !text.is_empty() && text.matches('/').count() <= 1
}

/// A DNS label, but in any case.
fn is_kind(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.len() <= 63
        && bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|b| *b == b'-' || b.is_ascii_alphanumeric())
}
