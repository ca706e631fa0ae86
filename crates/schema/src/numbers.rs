//! Numbers: what counts as an integer, and comparing them without losing digits.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use crate::node::{Node, Schema, Type};

/// The largest integer up to which every integer has a float of its own.
const MAX_EXACT: f64 = 9_007_199_254_740_991.0;

/// Turns integral floats into integers where the schema asks for integers.
///
/// The API server takes `1.0` for an integer; typed decoders do not.
pub fn normalize_numbers(schema: &Schema, document: &mut Value) {
    normalize(&schema.root, document);
}

fn normalize(node: &Node, value: &mut Value) {
    match value {
        Value::Number(number) => {
            if number.is_f64()
                && matches!(node.kind, Some(Type::Integer | Type::IntOrString))
                && let Some(integer) = as_integer(number)
            {
                *number = integer.into();
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if let Some(node) = node.field_or_meta(name) {
                    normalize(node, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for item in items {
                    normalize(node, item);
                }
            }
        }
        _ => {}
    }
}

/// The number as an integer, if it is one: without a fraction, and a float only as long as floats
/// are exact.
pub(crate) fn as_integer(number: &Number) -> Option<i64> {
    if let Some(integer) = number.as_i64() {
        return Some(integer);
    }
    let float = number.as_f64().filter(|_| number.is_f64())?;
    (float.fract() == 0.0 && float.abs() <= MAX_EXACT).then_some(float as i64)
}

/// Whether a number has no fraction, however large it is.
pub(crate) fn is_whole(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

pub(crate) fn compare(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_i128(), b.as_i128()) {
        return a.cmp(&b);
    }
    let (a, b) = (as_float(a), as_float(b));
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

pub(crate) fn is_multiple(number: &Number, factor: &Number) -> bool {
    if let (Some(number), Some(factor)) = (number.as_i128(), factor.as_i128()) {
        return factor != 0 && number % factor == 0;
    }
    let quotient = as_float(number) / as_float(factor);
    // 0.3 is a multiple of 0.1, although their floats say otherwise.
    let off = (quotient - quotient.round()).abs();
    quotient.abs() <= MAX_EXACT && off <= 1e-9 * quotient.abs().max(1.0)
}

pub(crate) fn as_float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn number(value: Value) -> Number {
        match value {
            Value::Number(number) => number,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn integers() {
        for (value, expected) in [
            (json!(1), Some(1)),
            (json!(1.0), Some(1)),
            (json!(-0.0), Some(0)),
            (json!(1e3), Some(1000)),
            (json!(1.5), None),
            (json!(9007199254740991.0), Some(9_007_199_254_740_991)),
            (json!(1e16), None),
            (json!(i64::MAX), Some(i64::MAX)),
            (json!(u64::MAX), None),
        ] {
            assert_eq!(as_integer(&number(value.clone())), expected, "{value}");
        }
    }

    #[test]
    fn comparisons_keep_large_integers_apart() {
        let cmp = |a, b| compare(&number(a), &number(b));
        assert_eq!(cmp(json!(u64::MAX), json!(u64::MAX - 1)), Ordering::Greater);
        assert_eq!(cmp(json!(i64::MIN), json!(u64::MAX)), Ordering::Less);
        assert_eq!(cmp(json!(1), json!(1.5)), Ordering::Less);
        assert_eq!(cmp(json!(2), json!(2.0)), Ordering::Equal);
    }

    #[test]
    fn multiples() {
        for (value, factor, expected) in [
            (json!(10), json!(5), true),
            (json!(10), json!(3), false),
            (json!(0), json!(3), true),
            (json!(-6), json!(3), true),
            (json!(0.3), json!(0.1), true),
            (json!(0.35), json!(0.1), false),
            (json!(7.5), json!(2.5), true),
            (json!(1e39), json!(2), false),
            (json!(1e300), json!(1e-300), false),
        ] {
            assert_eq!(is_multiple(&number(value.clone()), &number(factor)), expected, "{value}");
        }
    }

    #[test]
    fn floats_become_integers_where_integers_belong() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "int": {"type": "integer"},
            "either": {"x-kubernetes-int-or-string": true},
            "number": {"type": "number"},
            "list": {"type": "array", "items": {"type": "integer"}},
        }}))
        .unwrap();
        let mut document = json!({"int": 2.0, "either": 3.0, "number": 4.0, "list": [5.0, 5.5],
            "metadata": {"generation": 1.0}, "unknown": 6.0});
        normalize_numbers(&schema, &mut document);
        assert_eq!(
            document.to_string(),
            json!({"int": 2, "either": 3, "number": 4.0, "list": [5, 5.5],
                "metadata": {"generation": 1}, "unknown": 6.0})
            .to_string()
        );
    }
}
