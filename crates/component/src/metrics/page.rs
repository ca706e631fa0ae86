//! Measurements as Prometheus reads them: lines of text, those of a metric together.

use std::fmt::{self, Write};

use super::describe::Metric;

/// Measurements that are written down as they are made, so that nothing else of them is kept.
#[derive(Debug, Default)]
pub struct Page(Vec<Section>);

#[derive(Debug)]
struct Section {
    metric: Metric,
    lines: String,
}

impl Page {
    /// Adds a measurement. The values of labels are in the order of their names; an empty one is left out, which
    /// means the same.
    pub fn add(&mut self, metric: &Metric, values: &[&str], value: f64) {
        self.add_with(metric, values, [], value);
    }

    /// The same with further labels, whose names must be such that Prometheus takes them.
    pub fn add_with<'a>(
        &mut self,
        metric: &Metric,
        values: &[&'a str],
        further: impl IntoIterator<Item = (&'a str, &'a str)>,
        value: f64,
    ) {
        debug_assert!(values.len() <= metric.labels.len(), "{} has no such labels", metric.name);
        let own = metric.labels.iter().copied().zip(values.iter().copied());
        let labels = own.chain(further).filter(|(_, value)| !value.is_empty());
        let lines = self.lines(metric);
        // Writing to a string does not fail.
        let _ = write_sample(lines, metric.name, labels, value);
    }

    fn lines(&mut self, metric: &Metric) -> &mut String {
        let place = self.0.iter().position(|section| section.metric.name == metric.name);
        let place = place.unwrap_or_else(|| {
            self.0.push(Section { metric: *metric, lines: String::new() });
            self.0.len() - 1
        });
        &mut self.0[place].lines
    }

    /// The names of what was measured.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|section| section.metric.name)
    }

    /// Writes all of it to the end of a text.
    pub fn write_to(self, text: &mut String) {
        for Section { metric, lines } in self.0 {
            let _ = write_head(text, metric.name, metric.help, metric.kind.name());
            text.push_str(&lines);
        }
    }
}

pub(super) fn write_head(text: &mut String, name: &str, help: &str, kind: &str) -> fmt::Result {
    write!(text, "# HELP {name} ")?;
    for letter in help.chars() {
        match letter {
            '\\' => text.write_str("\\\\")?,
            '\n' => text.write_str("\\n")?,
            other => text.write_char(other)?,
        }
    }
    writeln!(text, "\n# TYPE {name} {kind}")
}

fn write_sample<'a>(
    text: &mut String,
    name: &str,
    labels: impl Iterator<Item = (&'a str, &'a str)>,
    value: f64,
) -> fmt::Result {
    text.write_str(name)?;
    let mut before = '{';
    for (name, value) in labels {
        write!(text, "{before}{name}=\"")?;
        for letter in value.chars() {
            match letter {
                '\\' => text.write_str("\\\\")?,
                '"' => text.write_str("\\\"")?,
                '\n' => text.write_str("\\n")?,
                other => text.write_char(other)?,
            }
        }
        text.write_char('"')?;
        before = ',';
    }
    if before == ',' {
        text.write_char('}')?;
    }
    match value {
        value if value == f64::INFINITY => writeln!(text, " +Inf"),
        value if value == f64::NEG_INFINITY => writeln!(text, " -Inf"),
        value => writeln!(text, " {value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_metric_stay_together() {
        const BYTES: Metric = Metric::counter("x_bytes_total", "Bytes").by(&["name", "place"]);
        const WHY: Metric = Metric::gauge("y", "Why\\\nnot").by(&["name"]);
        let mut page = Page::default();
        page.add(&BYTES, &["a", ""], 1.0);
        page.add(&WHY, &["a \"b\"\n\\"], 0.5);
        page.add_with(&BYTES, &["b", "c"], [("more", "x")], 1e12);
        page.add(&Metric::gauge("z", "Z"), &[], f64::INFINITY);
        assert_eq!(page.names().collect::<Vec<_>>(), ["x_bytes_total", "y", "z"]);
        let mut text = "before\n".to_owned();
        page.write_to(&mut text);
        assert_eq!(
            text,
            "before\n# HELP x_bytes_total Bytes\n# TYPE x_bytes_total counter\n\
             x_bytes_total{name=\"a\"} 1\nx_bytes_total{name=\"b\",place=\"c\",more=\"x\"} 1000000000000\n\
             # HELP y Why\\\\\\nnot\n# TYPE y gauge\ny{name=\"a \\\"b\\\"\\n\\\\\"} 0.5\n\
             # HELP z Z\n# TYPE z gauge\nz +Inf\n"
        );
    }
}
