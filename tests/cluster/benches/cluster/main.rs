//! How fast and how small the system is on a real Kubernetes, next to bare pods in the same run.
//!
//! Run by `make bench`, in the programs as they are shipped. Parts can be named:
//! `cargo bench --profile dev -p cluster-tests --bench cluster -- idle start`. A part that needs others to be quiet says so
//! by its numbers: on a busy machine, compare what stands next to each other.

#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

mod bed;
mod many;
mod starts;
mod usage;
mod watching;

use anyhow::{Result, ensure};
use bed::Bed;
use test_kit::Row;

/// The parts, in the order in which they are run: what needs rest comes first, and what leaves most behind last.
const PARTS: [&str; 6] = ["idle", "start", "writes", "burst", "cpu", "scale"];

#[tokio::main]
async fn main() -> Result<()> {
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if std::env::args().any(|word| word == "--test") {
        return Ok(());
    }
    let known = named.iter().all(|name| PARTS.contains(&name.as_str()));
    ensure!(known, "no such part; there are {}", PARTS.join(", "));
    let bed = Bed::up().await?;
    let mut all = Vec::new();
    for part in PARTS.iter().filter(|part| named.is_empty() || named.iter().any(|name| name == *part)) {
        eprintln!("measuring {part}");
        let rows = match *part {
            "idle" => usage::idle(&bed).await?,
            "start" => starts::one(&bed).await?,
            "writes" => starts::writes(&bed).await?,
            "burst" => starts::burst(&bed).await?,
            "cpu" => many::cpu(&bed).await?,
            _ => many::scale(&bed).await?,
        };
        // At once as well: a later part may fail.
        rows.iter().for_each(|row| eprintln!("  {row}"));
        all.extend(rows);
    }
    Row::print(&all);
    Ok(())
}
