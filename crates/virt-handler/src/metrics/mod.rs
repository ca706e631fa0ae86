//! What instances use, as prometheus asks for it.
//!
//! [`Scraper`] asks the launchers, [`collect`] makes metrics of their answers (pure), and [`text`] writes them.

mod collect;
mod family;
mod list;
mod own;
mod scrape;
#[cfg(test)]
mod tests;

use std::fmt;

pub use collect::{Measured, collect, of_node};
pub use family::{Families, Labels, Metric};
pub use list::ALL;
pub use own::Own;
use prometheus_client::registry::Registry;
pub use scrape::{Scraper, Turn};

/// Writes metrics as text, without the mark at the end: more may follow.
pub fn text(families: impl IntoIterator<Item = Families>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    for family in families {
        registry.register_collector(Box::new(family));
    }
    let mut told = String::new();
    prometheus_client::encoding::text::encode_registry(&mut told, &registry)?;
    Ok(told)
}
