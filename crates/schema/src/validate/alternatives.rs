//! `allOf`, `anyOf`, `oneOf` and `not`.

use serde_json::Value;

use super::Validation;
use crate::checks::{Checks, Nested};
use crate::node::Node;
use crate::path::Trail;
use crate::problem::Problem;

impl Validation {
    pub(super) fn alternatives(&mut self, checks: &Checks, node: &Node, value: &Value, at: &Trail) {
        for nested in &checks.all_of {
            self.nested(nested, node, value, at);
        }
        let accepts = |nested: &&Nested| accepts(nested, node, value);
        let (any, one) = (&checks.any_of, &checks.one_of);
        if !any.is_empty() && !any.iter().any(|nested| accepts(&nested)) {
            self.invalid(at, || {
                let why = reasons(any, node, value);
                format!("fits none of the {} alternatives: {why}", any.len())
            });
        }
        if !one.is_empty() {
            match one.iter().filter(accepts).count() {
                1 => {}
                0 => self.invalid(at, || {
                    let why = reasons(one, node, value);
                    format!("fits none of the {} alternatives: {why}", one.len())
                }),
                several => self
                    .invalid(at, || format!("must fit exactly one of the alternatives, but fits {several}")),
            }
        }
        if checks.not.as_deref().is_some_and(|not| accepts(&not)) {
            self.invalid(at, || "has a form that is ruled out".to_owned());
        }
    }

    fn nested(&mut self, nested: &Nested, node: &Node, value: &Value, at: &Trail) {
        if self.probing && self.failed {
            return;
        }
        self.checks(&nested.checks, None, node, value, at);
        match (value, &nested.items, &node.items) {
            (Value::Array(items), Some(nested), Some(node)) => {
                for (i, item) in items.iter().enumerate() {
                    self.nested(nested, node, item, &at.index(i));
                }
            }
            (Value::Object(fields), ..) if !nested.properties.is_empty() => {
                for (i, (name, field)) in fields.iter().enumerate() {
                    let (nested, node) = (nested.properties.get(&**name), node.field(name));
                    if let (Some(nested), Some(node)) = (nested, node)
                        && !node.is_absent(field)
                    {
                        self.nested(nested, node, field, &at.field(name, i));
                    }
                }
            }
            _ => {}
        }
    }
}

fn accepts(nested: &Nested, node: &Node, value: &Value) -> bool {
    let mut probe = Validation { probing: true, ..Validation::default() };
    probe.nested(nested, node, value, &Trail::ROOT);
    !probe.failed
}

/// The first problem of each alternative, told relative to the value they are about.
fn reasons(alternatives: &[Nested], node: &Node, value: &Value) -> String {
    const SHOWN: usize = 4;
    let mut reasons: Vec<_> = alternatives
        .iter()
        .take(SHOWN)
        .filter_map(|nested| {
            let mut validation = Validation::default();
            validation.nested(nested, node, value, &Trail::ROOT);
            let first: Option<Problem> = validation.into_problems().into_iter().next();
            first.map(|problem| problem.to_string())
        })
        .collect();
    if alternatives.len() > SHOWN {
        reasons.push("and so on".to_owned());
    }
    reasons.join("; ")
}
