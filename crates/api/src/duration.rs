//! Durations as Go writes them (`1h30m`), kept as text until someone asks for their length.

use std::borrow::Cow;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A length of time such as `1h30m` or `250ms`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(pub String);

/// What Go reads as a duration.
const PATTERN: &str = r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-strict": { "pattern": PATTERN } })
    }
}

/// The text is not a duration.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a duration such as 1h30m")]
pub struct NotADuration(String);

impl Duration {
    /// The length, which may be negative.
    pub fn parse(&self) -> Result<kube::core::Duration, NotADuration> {
        kube::core::Duration::from_str(&self.0).map_err(|_| NotADuration(self.0.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::Duration;

    #[test]
    fn text_is_read_when_asked_for() {
        let length = |text: &str| Duration(text.into()).parse().map(std::time::Duration::from).ok();
        assert_eq!(length("1h30m").map(|d| d.as_secs()), Some(5400));
        assert_eq!(length("250ms").map(|d| d.as_millis()), Some(250));
        assert_eq!(length("soon"), None);
    }
}
