//! Values of flags that more than one command takes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, StringValueParser, TypedValueParser};

/// A path, which may also be empty.
pub fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// A namespace, which may be named as `kubectl get namespaces -o name` prints it.
pub fn namespace() -> impl TypedValueParser<Value = String> {
    StringValueParser::new().map(|text| match text.split_once('/') {
        Some((kind, name)) if is_namespaces(kind) && !name.is_empty() => name.to_owned(),
        _ => text,
    })
}

fn is_namespaces(kind: &str) -> bool {
    ["namespace", "namespaces", "ns"].iter().any(|word| word.eq_ignore_ascii_case(kind))
}

/// Pairs as in `key=value,other=value`. The value of a pair that is alone may have commas; one of several may, if the
/// pair is in double quotes.
pub fn pairs(text: &str) -> Result<BTreeMap<String, String>, String> {
    let pairs = match text.matches('=').count() {
        0 if text.trim().is_empty() => Vec::new(),
        1 => vec![text.trim_matches('"').to_owned()],
        _ => fields(text),
    };
    let split = |pair: String| match pair.split_once('=') {
        Some((key, value)) => Ok((key.trim().to_owned(), value.to_owned())),
        None => Err(format!("{pair} must be formatted as key=value")),
    };
    pairs.into_iter().map(split).collect()
}

/// What commas separate. In a field that begins with a double quote they do not, and two quotes stand for one.
fn fields(text: &str) -> Vec<String> {
    let (mut fields, mut field) = (Vec::new(), String::new());
    let (mut quoted, mut at_start) = (false, true);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            '"' if at_start => quoted = true,
            '"' if quoted && letters.next_if_eq(&'"').is_none() => quoted = false,
            letter => field.push(letter),
        }
        at_start = letter == ',' && !quoted;
    }
    fields.push(field);
    fields
}

/// A time as in `1h2m3s`, or a number of seconds. Zero means that there is no limit.
pub fn timeout(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let wrong = || format!("{text} is not a time: write for example 30s, 1m30s or 2h");
    if text.is_empty() {
        return Err(wrong());
    }
    let duration: kube::core::Duration = text.parse().map_err(|_| wrong())?;
    if duration.is_negative() {
        return Err(wrong());
    }
    Ok(duration.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_or_named() {
        for (text, expected) in [
            ("a=b,c=d=e", Ok(vec![("a", "b"), ("c", "d=e")])),
            ("a=", Ok(vec![("a", "")])),
            ("", Ok(vec![])),
            ("a=b,c", Ok(vec![("a", "b,c")])),
            ("a=[1,2]", Ok(vec![("a", "[1,2]")])),
            (r#""a=b""#, Ok(vec![("a", "b")])),
            (r#""a=b,c",d=e"#, Ok(vec![("a", "b,c"), ("d", "e")])),
            (r#""a=say ""hi""",d=e"#, Ok(vec![("a", r#"say "hi""#), ("d", "e")])),
            (r#"a="b",c=d"#, Ok(vec![("a", r#""b""#), ("c", "d")])),
            ("a=b,c=d,e", Err("e must be formatted as key=value")),
            ("a", Err("a must be formatted as key=value")),
        ] {
            let found = pairs(text);
            let found = found.as_ref().map(|pairs| {
                pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect::<Vec<_>>()
            });
            assert_eq!(found.map_err(String::as_str), expected, "{text}");
        }
    }

    #[test]
    fn times_are_read_or_refused() {
        for (text, expected) in [
            ("0", Some(0)),
            ("30", Some(30)),
            ("30s", Some(30)),
            ("1m30s", Some(90)),
            ("2h", Some(7200)),
            ("-1s", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(timeout(text).ok(), expected.map(Duration::from_secs), "{text}");
        }
    }
}
