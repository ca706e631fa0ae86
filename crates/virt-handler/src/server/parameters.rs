//! What is asked for, as it stands in the address.

use axum::http::Uri;
use kubevirt_component::NamespacedName;
use serde::Deserialize;

use super::answers::Refusal;

/// Whom it is about.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Subject {
    namespace: String,
    name: String,
}

impl Subject {
    pub(super) fn key(&self) -> NamespacedName {
        NamespacedName::new(&self.namespace, &self.name)
    }
}

/// A parameter of the query: the first of its name.
pub(super) fn parameter(uri: &Uri, name: &str) -> Option<String> {
    let mut all = form_urlencoded::parse(uri.query()?.as_bytes());
    all.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// A parameter that is a yes or a no; what is left out or empty is a no.
pub(super) fn flag(uri: &Uri, name: &str) -> Result<bool, Refusal> {
    match parameter(uri, name).as_deref() {
        None | Some("" | "0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(false),
        Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(true),
        Some(other) => Err(Refusal::bad(format!("{name} is {other:?}: say true or false"))),
    }
}

/// The port that is asked for.
pub(super) fn port(uri: &Uri) -> Result<u32, Refusal> {
    let given = parameter(uri, "port").unwrap_or_default();
    given.parse().map_err(|_| Refusal::bad(format!("port is {given:?}: say a number from 0 to {}", u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(query: &str) -> Uri {
        format!("/v1/x{query}").parse().unwrap()
    }

    #[test]
    fn yes_and_no() {
        for (query, expected) in [
            ("", Some(false)),
            ("?", Some(false)),
            ("?preserveSession", Some(false)),
            ("?preserveSession=", Some(false)),
            ("?preserveSession=true", Some(true)),
            ("?a=b&preserveSession=1", Some(true)),
            ("?preserveSession=%74rue", Some(true)),
            ("?preserveSession=false&preserveSession=true", Some(false)),
            ("?preserveSession=yes", None),
            ("?preservesession=true", Some(false)),
        ] {
            assert_eq!(flag(&uri(query), "preserveSession").ok(), expected, "{query}");
        }
    }

    #[test]
    fn ports() {
        assert_eq!(port(&uri("?port=22&tls=true")), Ok(22));
        assert_eq!(port(&uri("?port=4294967295")), Ok(u32::MAX));
        for wrong in ["", "?port=", "?port=-1", "?port=4294967296", "?port=ssh"] {
            assert!(port(&uri(wrong)).is_err(), "{wrong}");
        }
    }
}
