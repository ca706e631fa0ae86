//! Metrics as the document that guests read.

use std::fmt::{self, Display, Write};

/// What is said to a guest that asks while nothing is known.
pub const UNKNOWN: &str =
    "<metrics><!-- host metrics not available --><!-- VM metrics not available --></metrics>";

/// A metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    name: &'static str,
    about: About,
    unit: &'static str,
    value: Value,
}

/// What a metric is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Host,
    Machine,
}

/// A value; its type is told with it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number of some size.
    Size(u64),
    /// A whole number that counts.
    Count(i64),
    /// A number.
    Real(f64),
}

impl Metric {
    /// A metric of the host; the unit may be empty.
    pub fn of_host(name: &'static str, unit: &'static str, value: Value) -> Self {
        Self { name, about: About::Host, unit, value }
    }

    /// A metric of the machine; the unit may be empty.
    pub fn of_machine(name: &'static str, unit: &'static str, value: Value) -> Self {
        Self { name, about: About::Machine, unit, value }
    }
}

impl Value {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// How many there are.
    pub fn count(count: usize) -> Self {
        Self::Count(i64::try_from(count).unwrap_or(i64::MAX))
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Size(_) => "uint64",
            Self::Count(_) => "int64",
            Self::Real(_) => "real64",
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => text.chars().try_for_each(|letter| escaped(letter, f)),
            Self::Size(value) => value.fmt(f),
            Self::Count(value) => value.fmt(f),
            Self::Real(value) => write!(f, "{value:.6}"),
        }
    }
}

impl Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, about, unit, value } = self;
        let about = if *about == About::Host { "host" } else { "vm" };
        write!(f, "  <metric type=\"{}\" context=\"{about}\"", value.kind())?;
        if !unit.is_empty() {
            write!(f, " unit=\"{unit}\"")?;
        }
        write!(f, ">\n    <name>{name}</name>\n    <value>{value}</value>\n  </metric>\n")
    }
}

/// The document of these metrics.
pub fn document(metrics: &[Metric]) -> String {
    let mut text = String::from("<metrics>\n");
    for metric in metrics {
        text.push_str(&metric.to_string());
    }
    text.push_str("</metrics>");
    text
}

/// A letter of a text; what cannot be in a document at all is replaced.
fn escaped(letter: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match letter {
        '&' => f.write_str("&amp;"),
        '<' => f.write_str("&lt;"),
        '>' => f.write_str("&gt;"),
        '"' => f.write_str("&#34;"),
        '\'' => f.write_str("&#39;"),
        // Readers take white space for what it is only if it is spelled out.
        '\t' | '\n' | '\r' => write!(f, "&#x{:X};", u32::from(letter)),
        '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => f.write_char(char::REPLACEMENT_CHARACTER),
        letter => f.write_char(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_types() {
        for (value, kind, text) in [
            (Value::Size(0), "uint64", "0"),
            (Value::Size(u64::MAX), "uint64", "18446744073709551615"),
            (Value::count(2), "int64", "2"),
            (Value::Count(-1), "int64", "-1"),
            (Value::Real(0.0), "real64", "0.000000"),
            (Value::Real(1_292_869.19), "real64", "1292869.190000"),
            (Value::text(""), "string", ""),
            (Value::text("kubevirt.io"), "string", "kubevirt.io"),
            (Value::text("größer"), "string", "größer"),
            (Value::text("a<b>&\"c\"'d'"), "string", "a&lt;b&gt;&amp;&#34;c&#34;&#39;d&#39;"),
            (Value::text("a\nb\tc\r"), "string", "a&#xA;b&#x9;c&#xD;"),
            (Value::text("\u{0}\u{1b}\u{ffff}"), "string", "\u{fffd}\u{fffd}\u{fffd}"),
            (Value::text("</value></metric>"), "string", "&lt;/value&gt;&lt;/metric&gt;"),
        ] {
            assert_eq!((value.kind(), value.to_string().as_str()), (kind, text), "{value:?}");
        }
    }

    #[test]
    fn a_document_has_all_metrics_in_order() {
        assert_eq!(document(&[]), "<metrics>\n</metrics>");
        let metrics = [
            Metric::of_host("HostName", "", Value::text("node01")),
            Metric::of_machine("ResourceMemoryLimit", "KiB", Value::Size(196_608)),
        ];
        let expected = r#"<metrics>
  <metric type="string" context="host">
    <name>HostName</name>
    <value>node01</value>
  </metric>
  <metric type="uint64" context="vm" unit="KiB">
    <name>ResourceMemoryLimit</name>
    <value>196608</value>
  </metric>
</metrics>"#;
        assert_eq!(document(&metrics), expected);
    }
}
