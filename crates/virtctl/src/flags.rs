//! Values of flags that more than one command takes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};

/// A path, which may also be empty.
pub fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// Pairs as in `key=value,other=value`.
pub fn pairs(text: &str) -> Result<BTreeMap<String, String>, String> {
    let text = text.trim().trim_start_matches('[').trim_end_matches(']');
    if text.is_empty() {
        return Ok(BTreeMap::new());
    }
    text.split(',')
        .map(|pair| match pair.split_once('=') {
            Some((key, value)) => Ok((key.trim().to_owned(), value.to_owned())),
            None => Err(format!("{pair} must be formatted as key=value")),
        })
        .collect()
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
        let of = |text: &str| pairs(text).map(|pairs| pairs.into_iter().collect::<Vec<_>>());
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(of("a=b,c=d=e"), Ok(vec![pair("a", "b"), pair("c", "d=e")]));
        assert_eq!(of("a="), Ok(vec![pair("a", "")]));
        assert_eq!(of(""), Ok(vec![]));
        assert_eq!(of("a=b,c"), Err("c must be formatted as key=value".to_owned()));
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
