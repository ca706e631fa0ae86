//! Checks on lists: their size, repeated items, and the items themselves.

use std::collections::HashSet;
use std::hash::Hash;

use serde_json::Value;

use super::Validation;
use crate::checks::Checks;
use crate::node::{ListType, Node};
use crate::path::Trail;
use crate::problem::{ProblemKind, counted, in_words};

impl Validation {
    pub(super) fn list(&mut self, checks: &Checks, items: &[Value], at: &Trail) {
        let actual = items.len();
        if let Some(min) = checks.min_items.filter(|min| (actual as u64) < *min) {
            self.invalid(at, || format!("must have at least {}, not {actual}", counted(min, "item")));
        }
        if let Some(max) = checks.max_items.filter(|max| actual as u64 > *max) {
            self.report(at, || {
                let max_items = counted(max, "item");
                let detail = format!("must have at most {max_items}, not {actual}");
                (ProblemKind::TooMany { actual, max }, detail)
            });
        }
        if checks.unique_items {
            self.no_repeats(items.iter(), at, |item| format!("repeats an earlier item, {}", in_words(item)));
        }
    }

    pub(super) fn items(&mut self, node: &Node, items: &[Value], at: &Trail) {
        match &node.list_type {
            ListType::Atomic => {}
            ListType::Set => self.no_repeats(items.iter(), at, |item| {
                format!("repeats an earlier item of a set, {}", in_words(item))
            }),
            ListType::Map(keys) => self.no_repeated_keys(keys, node, items, at),
        }
        let Some(node) = &node.items else { return };
        for (i, item) in items.iter().enumerate() {
            if !(node.is_absent(item) && node.default.is_some()) {
                self.node(node, item, &at.index(i));
            }
        }
    }

    fn no_repeated_keys(&mut self, keys: &[Box<str>], node: &Node, items: &[Value], at: &Trail) {
        let key_of = |item, key| key_value(node.items.as_deref(), item, key);
        let in_words = |values: &[Option<&Value>]| {
            let named = keys.iter().zip(values);
            let pairs: Vec<_> = named
                .map(|(key, value)| match value {
                    Some(value) => format!("{key}={value}"),
                    None => format!("no {key}"),
                })
                .collect();
            format!("repeats an earlier item with {}", pairs.join(", "))
        };
        match keys {
            [key] => {
                self.no_repeats(items.iter().map(|item| key_of(item, key)), at, |value| in_words(&[*value]));
            }
            keys => {
                let combined =
                    items.iter().map(|item| keys.iter().map(|key| key_of(item, key)).collect::<Vec<_>>());
                self.no_repeats(combined, at, |values| in_words(values));
            }
        }
    }

    /// Reports each item that equals an earlier one.
    fn no_repeats<T: Hash + Eq>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        at: &Trail,
        detail: impl Fn(&T) -> String,
    ) {
        if items.len() < 2 {
            return;
        }
        let mut seen = HashSet::with_capacity(items.len());
        for (i, item) in items.enumerate() {
            if let Some(item) = seen.replace(item) {
                self.report(&at.index(i), || (ProblemKind::Duplicate, detail(&item)));
            }
        }
    }
}

/// The value of a key of a keyed list, which may come from its default.
fn key_value<'v>(items: Option<&'v Node>, item: &'v Value, key: &str) -> Option<&'v Value> {
    let property = items.and_then(|items| items.properties.get(key));
    let given = item.get(key).filter(|value| !property.is_some_and(|property| property.is_absent(value)));
    given.or_else(|| property?.default.as_ref())
}
