//! The `key:value,key:value` syntax of flags that describe a whole thing.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::quantity::Amount;

/// A flag whose value cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to parse \"--{flag}\" flag: {problem}")]
pub struct FlagError {
    flag: &'static str,
    problem: String,
}

impl FlagError {
    /// What is wrong with the value of this flag.
    pub fn new(flag: &'static str, problem: impl Into<String>) -> Self {
        Self { flag, problem: problem.into() }
    }
}

/// The parameters of one flag; each is taken out once, and what is left over was not known.
pub struct Params<'a> {
    flag: &'static str,
    values: BTreeMap<&'a str, &'a str>,
}

impl<'a> Params<'a> {
    /// Splits the value of a flag; of a key that is there twice the last counts.
    pub fn parse(flag: &'static str, text: &'a str) -> Result<Self, FlagError> {
        if text.is_empty() {
            return Err(FlagError::new(flag, "params may not be empty"));
        }
        let mut values = BTreeMap::new();
        for param in text.split(',') {
            let Some((key, value)) = param.split_once(':') else {
                let problem = format!("params need to have at least one colon: {param}");
                return Err(FlagError::new(flag, problem));
            };
            values.insert(key, value);
        }
        Ok(Self { flag, values })
    }

    /// The text of a parameter; an empty one counts as left out.
    pub fn text(&mut self, key: &str) -> Option<String> {
        self.values.remove(key).filter(|value| !value.is_empty()).map(str::to_owned)
    }

    /// A parameter that must be there.
    pub fn required(&mut self, key: &str) -> Result<String, FlagError> {
        self.text(key).ok_or_else(|| self.problem(format!("{key} must be specified")))
    }

    /// Several texts in one parameter, with semicolons between them.
    pub fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        Some(self.text(key)?.split(';').map(str::to_owned).collect())
    }

    /// A whole number, as boot orders are.
    pub fn number(&mut self, key: &str) -> Result<Option<u32>, FlagError> {
        let Some(value) = self.values.remove(key) else { return Ok(None) };
        let number = value.parse().map_err(|_| {
            self.problem(format!("failed to parse param \"{key}\": {value:?} is not a whole number"))
        })?;
        Ok(Some(number))
    }

    /// A quantity, such as a size, as it was written.
    pub fn quantity(&mut self, key: &str) -> Result<Option<Quantity>, FlagError> {
        let Some(value) = self.values.remove(key) else { return Ok(None) };
        Amount::parse(value)
            .map_err(|error| self.problem(format!("failed to parse param \"{key}\": {error}")))?;
        Ok(Some(Quantity(value.to_owned())))
    }

    /// Refuses what nobody has taken.
    pub fn finish(&self) -> Result<(), FlagError> {
        if self.values.is_empty() {
            return Ok(());
        }
        let unknown: Vec<_> = self.values.iter().map(|(key, value)| format!("{key}:{value}")).collect();
        Err(self.problem(format!("unknown param(s): {}", unknown.join(","))))
    }

    /// The error for a problem with this flag.
    pub fn problem(&self, problem: impl Into<String>) -> FlagError {
        FlagError::new(self.flag, problem)
    }
}

/// A name that may have a prefix and a slash before it: a namespace or a kind.
pub fn prefixed(text: &str) -> Result<(Option<&str>, &str), String> {
    let parts: Vec<_> = text.split('/').collect();
    let (prefix, name) = match parts.as_slice() {
        [name] => (None, *name),
        [prefix, name] => (Some(*prefix).filter(|prefix| !prefix.is_empty()), *name),
        more => return Err(format!("invalid count {} of slashes in prefix/name", more.len() - 1)),
    };
    if name.is_empty() { Err("name cannot be empty".into()) } else { Ok((prefix, name)) }
}

/// Whether Kubernetes takes the text as the name of a volume.
pub fn is_label(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    matches!(bytes, [first, .., last] | [first @ last] if word(*first) && word(*last))
        && bytes.len() <= 63
        && bytes.iter().all(|byte| word(*byte) || *byte == b'-')
}

/// A quantity that stands as a flag of its own.
pub fn quantity(flag: &'static str, text: &str) -> Result<Quantity, FlagError> {
    Amount::parse(text).map_err(|error| FlagError::new(flag, error.to_string()))?;
    Ok(Quantity(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error<T>(result: Result<T, FlagError>) -> String {
        result.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn parameters_are_taken_by_name_and_type() {
        let mut params =
            Params::parse("flag", "src:reg:5000/a:b,bootorder:7,size:10Gi,list:a;b,none:").unwrap();
        assert_eq!(params.text("src").as_deref(), Some("reg:5000/a:b"));
        assert_eq!(params.number("bootorder").unwrap(), Some(7));
        assert_eq!(params.quantity("size").unwrap(), Some(Quantity("10Gi".into())));
        assert_eq!(params.texts("list").unwrap(), ["a", "b"]);
        assert_eq!((params.text("none"), params.text("src")), (None, None));
        params.finish().unwrap();
    }

    #[test]
    fn what_is_wrong_is_said_with_the_flag() {
        let cases = [
            ("", "params may not be empty"),
            ("src", "params need to have at least one colon: src"),
            ("number:x", "failed to parse param \"number\": \"x\" is not a whole number"),
            ("number:-1", "failed to parse param \"number\": \"-1\" is not a whole number"),
            ("quantity:10Zi", "failed to parse param \"quantity\": \"10Zi\" is not a quantity"),
            ("number:1,b:2,a:1", "unknown param(s): a:1,b:2"),
        ];
        for (text, problem) in cases {
            let take = || {
                let mut params = Params::parse("flag", text)?;
                params.number("number")?;
                params.quantity("quantity")?;
                params.finish()
            };
            assert_eq!(error(take()), format!("failed to parse \"--flag\" flag: {problem}"), "{text}");
        }
        let required = Params::parse("flag", "a:b").and_then(|mut params| params.required("src"));
        assert_eq!(error(required), "failed to parse \"--flag\" flag: src must be specified");
    }

    #[test]
    fn a_prefix_is_split_off() {
        assert_eq!(prefixed("name"), Ok((None, "name")));
        assert_eq!(prefixed("/name"), Ok((None, "name")));
        assert_eq!(prefixed("ns/name"), Ok((Some("ns"), "name")));
        assert_eq!(prefixed("a/b/c").unwrap_err(), "invalid count 2 of slashes in prefix/name");
        assert_eq!(prefixed("ns/").unwrap_err(), "name cannot be empty");
        assert_eq!(prefixed("").unwrap_err(), "name cannot be empty");
    }

    #[test]
    fn labels_are_what_kubernetes_takes() {
        for good in ["a", "0", "a-b", "x1", &"a".repeat(63)] {
            assert!(is_label(good), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", "ä", &"a".repeat(64)] {
            assert!(!is_label(bad), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_split_or_refused(text in ".*") {
            if let Ok(mut params) = Params::parse("flag", &text) {
                let _ = (params.number("a"), params.quantity("b"), params.text("c"), params.finish());
            }
        }
    }
}
