//! Placeholders in texts and objects: `${NAME}` within a text, and `${{NAME}}` for a whole value of any type.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Why a placeholder cannot be replaced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing is known by that name.
    #[error("found parameter '{0}' but it was not defined")]
    Undefined(String),
    /// A key must be text.
    #[error("substituted value {0} cannot be the name of a field")]
    Key(String),
    /// Nothing cannot stand where something is expected.
    #[error("the value of parameter '{0}' is null")]
    Null(String),
}

/// The name of a placeholder that a text starts with, and what follows it.
fn placeholder<'a>(text: &'a str, open: &str, close: &str) -> Option<(&'a str, &'a str)> {
    let (name, rest) = text.strip_prefix(open)?.split_once(close)?;
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!name.is_empty() && name.bytes().all(word)).then_some((name, rest))
}

/// The name in a text that is `${{NAME}}` as a whole.
fn whole(text: &str) -> Option<&str> {
    placeholder(text, "${{", "}}").filter(|(_, rest)| rest.is_empty()).map(|(name, _)| name)
}

/// The names of all placeholders in a text.
pub fn names(text: &str) -> BTreeSet<String> {
    let within = text.match_indices("${").filter_map(|(at, _)| placeholder(&text[at..], "${", "}"));
    within.map(|(name, _)| name).chain(whole(text)).map(str::to_owned).collect()
}

/// The names of all placeholders in an object.
pub fn all_names(value: &Value) -> BTreeSet<String> {
    match value {
        Value::String(text) => names(text),
        Value::Array(values) => values.iter().flat_map(all_names).collect(),
        Value::Object(fields) => {
            fields.iter().flat_map(|(key, value)| names(key).into_iter().chain(all_names(value))).collect()
        }
        _ => BTreeSet::new(),
    }
}

/// The text with values for placeholders.
pub fn text(text: &str, values: &BTreeMap<String, String>) -> Result<String, Error> {
    let mut made = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        made.push_str(before);
        rest = match placeholder(from, "${", "}") {
            Some((name, after)) => {
                made.push_str(known(name, values)?);
                after
            }
            None => {
                made.push_str("${");
                &from[2..]
            }
        };
    }
    made.push_str(rest);
    Ok(made)
}

fn known<'a>(name: &str, values: &'a BTreeMap<String, String>) -> Result<&'a str, Error> {
    values.get(name).map(String::as_str).ok_or_else(|| Error::Undefined(name.to_owned()))
}

/// The object with values for placeholders, in keys too.
pub fn object(value: Value, values: &BTreeMap<String, String>) -> Result<Value, Error> {
    Ok(match value {
        Value::String(text) => scalar(&text, values)?,
        Value::Array(all) => all.into_iter().map(|one| object(one, values)).collect::<Result<_, _>>()?,
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| Ok((key(&name, values)?, object(value, values)?)))
            .collect::<Result<_, _>>()?,
        other => other,
    })
}

/// A value that replaces a whole text is what it reads as in JSON, and text if it is not JSON.
fn scalar(written: &str, values: &BTreeMap<String, String>) -> Result<Value, Error> {
    let Some(name) = whole(written) else { return text(written, values).map(Value::String) };
    let value = known(name, values)?;
    match serde_json::from_str(value) {
        Ok(Value::Null) => Err(Error::Null(name.to_owned())),
        Ok(other) => Ok(other),
        Err(_) => Ok(Value::String(value.to_owned())),
    }
}

fn key(written: &str, values: &BTreeMap<String, String>) -> Result<String, Error> {
    match scalar(written, values)? {
        Value::String(key) => Ok(key),
        other => Err(Error::Key(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn values() -> BTreeMap<String, String> {
        [("NAME", "web"), ("CPUS", "4"), ("LIST", "[1,2]"), ("NULL", "null"), ("DEEP", "${NAME}")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    #[test]
    fn texts_are_filled_in() {
        for (written, expected) in [
            ("plain", "plain"),
            ("${NAME}", "web"),
            ("a-${NAME}-${CPUS}${NAME}", "a-web-4web"),
            ("a-${{NAME}}", "a-${{NAME}}"),
            ("$NAME ${} ${a b} ${", "$NAME ${} ${a b} ${"),
            // A value is not looked at again.
            ("${DEEP}", "${NAME}"),
            ("ä${NAME}ö", "äwebö"),
        ] {
            assert_eq!(text(written, &values()).unwrap(), expected, "{written}");
        }
        assert_eq!(text("${OTHER}", &values()), Err(Error::Undefined("OTHER".into())));
    }

    #[test]
    fn objects_are_filled_in() {
        let written = json!({
            "${NAME}": ["${CPUS}", "${{CPUS}}", 7, null, true],
            "${{NAME}}-x": { "list": "${{LIST}}", "text": "${{NAME}}" },
        });
        let expected = json!({
            "web": ["4", 4, 7, null, true],
            "${{NAME}}-x": { "list": [1, 2], "text": "web" },
        });
        assert_eq!(object(written, &values()).unwrap(), expected);
        assert_eq!(object(json!({ "${{CPUS}}": 1 }), &values()), Err(Error::Key("4".into())));
        assert_eq!(object(json!("${{NULL}}"), &values()), Err(Error::Null("NULL".into())));
        assert_eq!(object(json!(["${X}"]), &values()), Err(Error::Undefined("X".into())));
    }

    #[test]
    fn names_are_found() {
        let found =
            all_names(&json!({ "${A}": ["x${B}${C}", "${{D}}", "x${{E}}", 1], "f": { "g": "${A}" } }));
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["A", "B", "C", "D"]);
    }

    proptest! {
        #[test]
        fn what_is_filled_in_was_named(written in "[${}a-c]{0,20}") {
            let values = names(&written).into_iter().map(|name| (name, "x".to_owned())).collect();
            prop_assert!(object(json!(written), &values).is_ok());
        }
    }
}
