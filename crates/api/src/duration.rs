//! Durations as Go writes them (`1h30m`), kept as text until someone asks for their length.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A length of time such as `1h30m` or `250ms`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Duration(pub String);

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
