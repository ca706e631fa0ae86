//! What benches print: numbers, and what they may be at most.

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
        for Self { what, measured, limit, over } in rows {
            println!("| {what} | {measured} | {limit} | {} |", if *over { "over" } else { "ok" });
        }
    }
}
