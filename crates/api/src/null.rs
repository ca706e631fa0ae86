//! Null where the schema allows it inside of a list.

use serde::{Deserialize, Deserializer};

/// A list whose null items are read as empty ones: validation then says what they lack.
pub(crate) fn empty_items<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    let items = <Option<Vec<Option<T>>>>::deserialize(deserializer)?;
    Ok(items.map(|items| items.into_iter().map(Option::unwrap_or_default).collect()))
}
