//! Reading JSON text without letting duplicate keys slip through.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::depth::MAX_DEPTH;
use crate::path::{Path, Trail};

/// Why some text is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct ParseError {
    /// The line, counted from one.
    pub line: usize,
    /// The column, counted from one; zero when the text ends there.
    pub column: usize,
    /// What is wrong there.
    pub reason: String,
}

/// Reads one JSON document, and reports the keys that an object has more than once.
///
/// As in the API server the last of several values wins. More than [`MAX_DEPTH`] levels are an
/// error.
pub fn parse_strict(text: &[u8]) -> Result<(Value, Vec<Path>), ParseError> {
    parse_strict_without(text, &[])
}

/// The same without the values at the given paths, which are skipped as if they were not there.
pub fn parse_strict_without(text: &[u8], unread: &[&str]) -> Result<(Value, Vec<Path>), ParseError> {
    let is_unread = |name: &str, at: &Trail<'_>| {
        // To write the path down is dear, and the last name of it nearly always differs.
        unread.iter().any(|path| path.ends_with(name) && at.path().to_string() == *path)
    };
    let mut duplicates = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(text);
    let document =
        Reader { at: &Trail::ROOT, left: MAX_DEPTH, duplicates: &mut duplicates, is_unread: &is_unread };
    let value = document.deserialize(&mut reader)?;
    reader.end()?;
    Ok((value, duplicates))
}

impl From<serde_json::Error> for ParseError {
    fn from(error: serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let place = format!(" at line {line} column {column}");
        let reason = text.strip_suffix(&place).unwrap_or(&text).to_owned();
        Self { line, column, reason }
    }
}

struct Reader<'a> {
    at: &'a Trail<'a>,
    left: usize,
    duplicates: &'a mut Vec<Path>,
    is_unread: &'a dyn Fn(&str, &Trail<'_>) -> bool,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.left == 0 {
            return Err(D::Error::custom(format_args!("nested more than {MAX_DEPTH} levels deep")));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(Reader {
            at: &self.at.index(items.len()),
            left: self.left - 1,
            duplicates: self.duplicates,
            is_unread: self.is_unread,
        })? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            let at = self.at.missing(&name);
            if (self.is_unread)(&name, &at) {
                object.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = object.next_value_seed(Reader {
                at: &at,
                left: self.left - 1,
                duplicates: self.duplicates,
                is_unread: self.is_unread,
            })?;
            if fields.contains_key(&name) {
                self.duplicates.push(at.path());
            }
            fields.insert(name, value);
        }
        Ok(fields.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reports_duplicates_and_keeps_the_last() {
        let text = br#"{"a": 1, "b": [{"c": 1, "c": 2}, {"x.y": {}, "x.y": null}], "a": "z"}"#;
        let (value, duplicates) = parse_strict(text).unwrap();
        assert_eq!(value, json!({"a": "z", "b": [{"c": 2}, {"x.y": null}]}));
        let shown: Vec<_> = duplicates.iter().map(Path::to_string).collect();
        assert_eq!(shown, ["b[0].c", "b[1][x.y]", "a"]);
    }

    #[test]
    fn leaves_out_what_shall_not_be_read() {
        let text = br#"{"a": {"b": [{"c": 1, "c": 2}], "d": {"b": 1}}, "b": 1, "a.b": 2}"#;
        let (value, duplicates) = parse_strict_without(text, &["a.b", "d"]).unwrap();
        assert_eq!(value, json!({"a": {"d": {"b": 1}}, "b": 1, "a.b": 2}));
        assert!(duplicates.is_empty());
    }

    #[test]
    fn reads_every_sort_of_value() {
        let text = br#" [null, true, -1, 18446744073709551615, 1.5, "\u00e9", "e", {}, []] "#;
        let (value, duplicates) = parse_strict(text).unwrap();
        let expected = json!([null, true, -1, u64::MAX, 1.5, "é", "e", {}, []]);
        assert_eq!(value, expected);
        assert!(duplicates.is_empty());
    }

    #[test]
    fn says_where_the_text_goes_wrong() {
        for (text, message) in [
            (&b"{\n  \"a\": x\n}"[..], "line 2, column 8: expected value"),
            (b"", "line 1, column 0: EOF while parsing a value"),
            (b"{} x", "line 1, column 4: trailing characters"),
            (b"\"\xff\"", "line 1, column 2: invalid unicode code point"),
            (b"1e999", "line 1, column 5: number out of range"),
        ] {
            assert_eq!(parse_strict(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let nest = |levels| [vec![b'['; levels], vec![b']'; levels]].concat();
        assert!(parse_strict(&nest(MAX_DEPTH)).is_ok());
        for levels in [MAX_DEPTH + 1, 1_000_000] {
            let error = parse_strict(&nest(levels)).unwrap_err();
            assert_eq!(error.reason, "nested more than 100 levels deep");
        }
        let objects = "{\"a\":".repeat(1_000_000);
        assert!(parse_strict(objects.as_bytes()).is_err());
    }
}
