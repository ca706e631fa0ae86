//! Fields of objects that nobody reads, taken out of their text before it is read.
//!
//! To read a text is most of what an event costs, and much of a text is of no use to us. To skip a value costs a tenth of
//! building it.

/// Which fields of objects are not read.
pub trait Unread: Send + Sync + 'static {
    /// Names of fields of this text that are objects or lists, wherever they are.
    fn fields(text: &str) -> &'static [&'static str];
}

/// Who wrote which field: a third of the text, and the greater part of the work.
#[derive(Clone, Copy, Debug)]
pub struct Managers;

impl Unread for Managers {
    fn fields(_: &str) -> &'static [&'static str] {
        &["managedFields"]
    }
}

/// Nothing is left out: somebody has done that already.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Unread for Nothing {
    fn fields(_: &str) -> &'static [&'static str] {
        &[]
    }
}

/// Adds a JSON text to what is kept, with null for every object and list that is the value of a field of one of these
/// names.
pub fn cut(text: &str, names: &[&str], kept: &mut String) {
    let (mut from, mut at) = (0, 0);
    while let Some(key) = next_string(text, at) {
        at = key.end;
        let Some(value) = value_after(text, key.end) else { continue };
        let is_nested = matches!(text.as_bytes().get(value), Some(b'{' | b'['));
        if is_nested && names.contains(&&text[key.start + 1..key.end - 1]) {
            kept.push_str(&text[from..value]);
            kept.push_str("null");
            at = end_of_nested(text, value);
            from = at;
        }
    }
    kept.push_str(&text[from..]);
}

/// The next string from here on, with its quotes.
fn next_string(text: &str, from: usize) -> Option<std::ops::Range<usize>> {
    let start = from + text.get(from..)?.find('"')?;
    Some(start..end_of_string(text, start))
}

/// Behind the string that begins here.
fn end_of_string(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Where the value of a field begins, if the string that ends here is the name of one.
fn value_after(text: &str, end: usize) -> Option<usize> {
    let skip_space = |from: usize| {
        let rest = text.as_bytes().get(from..)?;
        rest.iter().position(|byte| !byte.is_ascii_whitespace()).map(|space| from + space)
    };
    let colon = skip_space(end).filter(|at| text.as_bytes()[*at] == b':')?;
    skip_space(colon + 1)
}

/// Behind the object or list that begins here.
fn end_of_nested(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (start, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = end_of_string(text, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const NAMES: [&str; 2] = ["a", "b c"];

    fn rest(text: &str) -> String {
        let mut kept = String::new();
        cut(text, &NAMES, &mut kept);
        kept
    }

    #[test]
    fn only_nested_values_of_these_names_are_cut() {
        for (text, expected) in [
            (r#"{"a":{"x":[1]},"d":1}"#, r#"{"a":null,"d":1}"#),
            (r#"{ "a" : [ "]", "\"]" ] , "d" : {"b c": []} }"#, r#"{ "a" : null , "d" : {"b c": null} }"#),
            (r#"{"a":1,"d":"a","e":["a",{"a":"{"}]}"#, r#"{"a":1,"d":"a","e":["a",{"a":"{"}]}"#),
            (r#"{"d":"\"a\":[1]","e":"\\","a":{}}"#, r#"{"d":"\"a\":[1]","e":"\\","a":null}"#),
            ("[]", "[]"),
            ("", ""),
        ] {
            assert_eq!(rest(text), expected, "{text}");
        }
    }

    fn cut_value(value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(cut_value),
            Value::Object(fields) => {
                for (name, value) in fields {
                    let is_nested = value.is_object() || value.is_array();
                    if is_nested && NAMES.contains(&name.as_str()) {
                        *value = Value::Null;
                    }
                    cut_value(value);
                }
            }
            _ => {}
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<i32>().prop_map(Value::from),
            r#"["\\a{\[:é]{0,4}"#.prop_map(Value::from)
        ];
        leaf.prop_recursive(5, 60, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(r#"a|b c|["\\é:{]{0,3}"#, inner, 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_does_what_cutting_the_tree_does(value in any_value(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let mut expected = value;
            cut_value(&mut expected);
            let cut: Value = serde_json::from_str(&rest(&text.unwrap())).unwrap();
            prop_assert_eq!(cut, expected);
        }

        #[test]
        fn no_text_makes_it_fall_over(text in r#"["\\a{}\[\]:, é]{0,40}"#) {
            rest(&text);
        }
    }
}
