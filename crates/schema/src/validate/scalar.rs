//! Checks on strings and numbers, and on being one of a few values.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::Validation;
use crate::checks::Checks;
use crate::format::Format;
use crate::numbers;
use crate::path::Trail;
use crate::problem::{ProblemKind, counted, in_words, quoted};

impl Validation {
    pub(super) fn allowed(&mut self, checks: &Checks, value: &Value, at: &Trail) {
        let allowed = &checks.allowed;
        // Null is never one of them, not even when it is in the list.
        if allowed.is_empty() || (!value.is_null() && allowed.iter().any(|a| same(a, value))) {
            return;
        }
        self.report(at, || {
            let allowed: Vec<_> = allowed.iter().map(plain).collect();
            let detail = format!("must be {}, not {}", one_of(&allowed), in_words(value));
            (ProblemKind::NotSupported { allowed }, detail)
        });
    }

    pub(super) fn text(&mut self, checks: &Checks, text: &str, at: &Trail) {
        let (min, max) = (checks.min_length, checks.max_length);
        let length = match (min, max) {
            (None, None) => 0,
            _ => text.chars().count() as u64,
        };
        if let Some(max) = max.filter(|max| length > *max) {
            self.report(at, || {
                let characters = counted(max, "character");
                let detail = format!("must be at most {characters} long, not {length}");
                (ProblemKind::TooLong { max }, detail)
            });
            return;
        }
        if let Some(min) = min.filter(|min| length < *min) {
            self.invalid(at, || format!("must be at least {} long, not {length}", counted(min, "character")));
            return;
        }
        if let Some(pattern) = &checks.pattern
            && !pattern.is_match(text)
        {
            self.invalid(at, || {
                let text = quoted(text);
                format!("{text} does not match the pattern {}", pattern.as_str())
            });
        }
        if let Some(Format::Text(format)) = checks.format
            && !(format.accepts)(text)
        {
            self.invalid(at, || format!("{} is not {}", quoted(text), format.what));
        }
    }

    /// Where no type is named, a format of strings asks for one; lists get away with it.
    pub(super) fn text_only(&mut self, checks: &Checks, value: &Value, at: &Trail) {
        if let Some(Format::Text(format)) = checks.format
            && !matches!(value, Value::String(_) | Value::Array(_))
        {
            self.invalid(at, || format!("must be {}, not {}", format.what, in_words(value)));
        }
    }

    pub(super) fn number(&mut self, checks: &Checks, number: &Number, at: &Trail) {
        match checks.format {
            Some(Format::Int32) => {
                let fits = numbers::as_integer(number).is_some_and(|n| i32::try_from(n).is_ok());
                if !fits {
                    self.invalid(at, || {
                        format!("must be between {} and {}, not {number}", i32::MIN, i32::MAX)
                    });
                }
            }
            Some(Format::Float) if numbers::as_float(number).abs() > f64::from(f32::MAX) => {
                self.invalid(at, || format!("{number} is out of range for a number of 32 bits"));
            }
            _ => {}
        }
        self.bounds(checks, number, at);
        if let Some(factor) = &checks.multiple_of
            && !numbers::is_multiple(number, factor)
        {
            self.invalid(at, || format!("must be a multiple of {factor}, not {number}"));
        }
    }

    fn bounds(&mut self, checks: &Checks, number: &Number, at: &Trail) {
        if let Some(minimum) = &checks.minimum {
            let (ok, words) = match (numbers::compare(number, minimum), checks.exclusive_minimum) {
                (ordering, true) => (ordering == Ordering::Greater, "greater than"),
                (ordering, false) => (ordering != Ordering::Less, "at least"),
            };
            if !ok {
                self.invalid(at, || format!("must be {words} {minimum}, not {number}"));
            }
        }
        if let Some(maximum) = &checks.maximum {
            let (ok, words) = match (numbers::compare(number, maximum), checks.exclusive_maximum) {
                (ordering, true) => (ordering == Ordering::Less, "less than"),
                (ordering, false) => (ordering != Ordering::Greater, "at most"),
            };
            if !ok {
                self.invalid(at, || format!("must be {words} {maximum}, not {number}"));
            }
        }
    }
}

/// Equal, where 1 and 1.0 are.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => numbers::compare(a, b) == Ordering::Equal,
        _ => a == b,
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn one_of(allowed: &[String]) -> String {
    let quoted: Vec<_> = allowed.iter().map(|a| quoted(a)).collect();
    match quoted.as_slice() {
        [only] => only.clone(),
        several => format!("one of {}", several.join(", ")),
    }
}
