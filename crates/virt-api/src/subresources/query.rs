//! What stands after the question mark.

use super::access::percent_decoded;
use super::failure::Failure;

/// The parameters of a request.
#[derive(Debug, Default)]
pub struct Query(pub Vec<(String, String)>);

impl Query {
    /// From the text after the question mark.
    pub fn of(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let plain = |text: &str| percent_decoded(&text.replace('+', " "));
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (plain(name), plain(value))
        };
        Self(pairs.map(pair).collect())
    }

    /// The first parameter of this name, if it has a value.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// A parameter that is true or false, in any of the ways in which Go writes it.
    pub fn flag(&self, name: &str, usual: bool) -> Result<bool, Failure> {
        match self.get(name) {
            None => Ok(usual),
            Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(true),
            Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(false),
            Some(other) => Err(Failure::bad_request(format!("{name}: {other:?} is neither true nor false"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_as_browsers_write_them() {
        let query = Query::of("a=1&b=x%20y+z&c&=d&a=2&e=%zz");
        assert_eq!(query.get("a"), Some("1"));
        assert_eq!(query.get("b"), Some("x y z"));
        assert_eq!(query.get("c"), None);
        assert_eq!(query.get("e"), Some("%zz"));
        assert_eq!(query.flag("a", false), Ok(true));
        assert_eq!(query.flag("missing", true), Ok(true));
        assert!(query.flag("b", false).is_err());
    }
}
