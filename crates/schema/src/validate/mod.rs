//! Validation of a document against a schema, all problems at once.

mod alternatives;
mod list;
mod object;
mod scalar;

use serde_json::Value;

use crate::checks::Checks;
use crate::depth::{self, MAX_DEPTH};
use crate::node::{Node, Schema, Type};
use crate::numbers;
use crate::path::Trail;
use crate::problem::{Found, Problem, ProblemKind, in_words};

/// Everything that is wrong with a document, in document order.
///
/// A `null` where the schema has no `nullable` means that the field is absent, and a missing field
/// with a default counts as there: the answer is the same before and after
/// [`drop_nulls`](crate::drop_nulls) and [`apply_defaults`](crate::apply_defaults). Unknown
/// fields are no problem here, see [`unknown_fields`](crate::unknown_fields).
pub fn validate(schema: &Schema, document: &Value) -> Vec<Problem> {
    if let Some(path) = depth::too_deep(document) {
        return vec![Problem {
            path,
            kind: ProblemKind::TooDeep,
            detail: format!("is nested more than {MAX_DEPTH} levels deep"),
        }];
    }
    let mut validation = Validation::default();
    validation.root(&schema.root, document);
    validation.into_problems()
}

/// The first problem of a value that is not a whole document.
pub(crate) fn first_problem(node: &Node, value: &Value) -> Option<Problem> {
    let mut validation = Validation::default();
    validation.node(node, value, &Trail::ROOT);
    validation.into_problems().into_iter().next()
}

/// A walk through a document that collects problems, or only learns whether there are any.
#[derive(Default)]
struct Validation {
    /// Problems, with what to sort them by.
    found: Vec<(Vec<usize>, Problem)>,
    probing: bool,
    failed: bool,
}

impl Validation {
    fn report(&mut self, at: &Trail, problem: impl FnOnce() -> (ProblemKind, String)) {
        self.failed = true;
        if self.probing {
            return;
        }
        let (kind, detail) = problem();
        let path = at.path();
        let problem = Problem { path, kind, detail };
        self.found.push((at.order(), problem));
    }

    fn invalid(&mut self, at: &Trail, detail: impl FnOnce() -> String) {
        self.report(at, || (ProblemKind::Invalid, detail()));
    }

    fn into_problems(mut self) -> Vec<Problem> {
        self.found.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.found.into_iter().map(|(_, problem)| problem).collect()
    }

    fn root(&mut self, node: &Node, document: &Value) {
        let at = &Trail::ROOT;
        if self.has_type(node, document, at) {
            self.inside(node, document, at);
        }
    }

    fn node(&mut self, node: &Node, value: &Value, at: &Trail) {
        if !self.has_type(node, value, at) {
            return;
        }
        if let Value::Object(fields) = value
            && node.embedded
        {
            self.resource_names(fields, at);
        }
        self.inside(node, value, at);
    }

    /// What there is to say about a value of the right type and about everything in it.
    fn inside(&mut self, node: &Node, value: &Value, at: &Trail) {
        if let Some(checks) = &node.checks {
            self.checks(checks, node.kind, node, value, at);
        }
        match value {
            Value::Object(fields) => self.fields(node, fields, at),
            Value::Array(items) => self.items(node, items, at),
            _ => {}
        }
    }

    fn has_type(&mut self, node: &Node, value: &Value, at: &Trail) -> bool {
        let Some(expected) = node.kind else {
            return true;
        };
        let fits = match (expected, value) {
            (_, Value::Null) => node.nullable,
            (Type::Object, Value::Object(_))
            | (Type::Array, Value::Array(_))
            | (Type::String | Type::IntOrString, Value::String(_))
            | (Type::Boolean, Value::Bool(_))
            | (Type::Number, Value::Number(_)) => true,
            (Type::Integer | Type::IntOrString, Value::Number(number)) => {
                if numbers::as_integer(number).is_none() && numbers::is_whole(number) {
                    self.invalid(at, || format!("{number} is out of range for an integer"));
                    return false;
                }
                numbers::is_whole(number)
            }
            _ => false,
        };
        if !fits {
            self.report(at, || {
                let found = Found::of(value);
                let detail = format!("must be {}, not {}", expected.in_words(), in_words(value));
                (ProblemKind::WrongType { expected, found }, detail)
            });
        }
        fits
    }

    /// Value validation. `kind` is the type that the schema of the checks itself names, `node`
    /// the structural schema of the value.
    fn checks(&mut self, checks: &Checks, kind: Option<Type>, node: &Node, value: &Value, at: &Trail) {
        self.allowed(checks, value, at);
        match value {
            Value::Null => return,
            Value::String(text) => self.text(checks, text, at),
            Value::Number(number) => self.number(checks, number, at),
            Value::Array(items) => self.list(checks, items, at),
            Value::Object(fields) => self.object(checks, node, fields, at),
            Value::Bool(_) => {}
        }
        if kind.is_none() {
            self.text_only(checks, value, at);
        }
        self.alternatives(checks, node, value, at);
    }
}

#[cfg(test)]
mod tests;
