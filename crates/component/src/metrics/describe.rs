//! What a metric is, before anything was measured.

use prometheus_client::metrics::MetricType;

/// How the values of a metric are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, as long as the component runs.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How many values were below each of some bounds.
    Histogram,
}

impl Kind {
    /// As Prometheus calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }

    pub(super) fn of(kind: MetricType) -> Self {
        match kind {
            MetricType::Counter => Self::Counter,
            MetricType::Histogram => Self::Histogram,
            _ => Self::Gauge,
        }
    }
}

/// A metric: its name, what it tells and what tells its values apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The whole name.
    pub name: &'static str,
    /// What it tells.
    pub help: &'static str,
    /// How it is to be read.
    pub kind: Kind,
    /// The names of its labels; `prefix*` stands for any number of further ones.
    pub labels: &'static [&'static str],
}

impl Metric {
    /// Something that only grows.
    pub const fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: Kind::Counter, labels: &[] }
    }

    /// Something that goes up and down.
    pub const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: Kind::Gauge, labels: &[] }
    }

    /// Values in classes.
    pub const fn histogram(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: Kind::Histogram, labels: &[] }
    }

    /// The same with these labels.
    #[must_use]
    pub const fn by(self, labels: &'static [&'static str]) -> Self {
        Self { labels, ..self }
    }
}

/// A metric that a component tells, as far as the component knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The whole name.
    pub name: String,
    /// What it tells.
    pub help: String,
    /// How it is to be read.
    pub kind: Kind,
    /// The names of its labels, where they were said.
    pub labels: Option<&'static [&'static str]>,
}

impl From<&Metric> for Description {
    fn from(metric: &Metric) -> Self {
        Self {
            name: metric.name.to_owned(),
            help: metric.help.to_owned(),
            kind: metric.kind,
            labels: Some(metric.labels),
        }
    }
}
