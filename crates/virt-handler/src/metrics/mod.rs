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

pub use collect::{Measured, collect, of_node};
pub use family::{Families, Labels};
pub use gpus::Gpus;
use kubevirt_component::Metrics;
use kubevirt_component::metrics::Page;
pub use list::ALL;
pub use own::Own;
pub use route::{Launchers, route};
pub use scrape::{AskError, Scraper, Turn, stats};

/// Has these counts told with the rest, and says what else the handler tells.
pub fn register(metrics: &Metrics) -> Own {
    metrics.describe(ALL);
    Own::new(metrics)
}

/// Writes metrics as text.
pub fn text(families: impl IntoIterator<Item = Families>) -> String {
    let mut page = Page::default();
    for family in families {
        family.tell(&mut page);
    }
    let mut told = String::new();
    page.write_to(&mut told);
    told
}
