//! What benches print: numbers, and what they may be at most.

use std::fmt;

/// A number, and what it may be at most.
#[derive(Clone, Debug)]
pub struct Row {
    what: String,
    measured: String,
    limit: String,
    over: bool,
}

impl Row {
    /// A row whose numbers are of one unit.
    pub fn new(what: impl Into<String>, unit: &str, measured: f64, limit: f64) -> Self {
        let text = |number: f64| format!("{number:.2} {unit}");
        Self { what: what.into(), measured: text(measured), limit: text(limit), over: measured > limit }
    }

    /// Prints rows as a table.
    pub fn print(rows: &[Self]) {
        println!("| what | measured | limit | |\n|---|---|---|---|");
        for row in rows {
            println!("{row}");
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, measured, limit, over } = self;
        write!(formatter, "| {what} | {measured} | {limit} | {} |", if *over { "over" } else { "ok" })
    }
}
