//! What instances use, as prometheus asks for it.
//!
//! [`route`] answers, [`Scraper`] asks the launchers, and [`collect`] makes metrics of what they say (pure).

mod collect;
mod family;
mod gpus;
mod list;
mod own;
mod route;
mod scrape;
#[cfg(test)]
mod tests;

use std::fmt;

pub use collect::{Measured, collect, of_node};
pub use family::{Families, Labels, Metric};
pub use gpus::Gpus;
pub use list::ALL;
pub use own::Own;
use prometheus_client::registry::Registry;
pub use route::{Launchers, route};
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
