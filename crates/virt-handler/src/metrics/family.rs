//! Measurements with a name each, as prometheus is told them.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What it tells.
    pub help: &'static str,
    /// Whether it only grows.
    pub counts: bool,
}

impl Metric {
    /// Something that only grows; its name ends in `_total`.
    pub const fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, help, counts: true }
    }

    /// Something that goes up and down.
    pub const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, help, counts: false }
    }
}

/// Names and values that tell measurements of one metric apart.
pub type Labels = Vec<(String, String)>;

/// All measurements of some metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Families(Vec<Family>);

#[derive(Clone, Debug, PartialEq)]
struct Family {
    metric: Metric,
    samples: Vec<(Labels, f64)>,
}

impl Families {
    /// Adds a measurement.
    pub fn add(&mut self, metric: Metric, labels: Labels, value: f64) {
        match self.0.iter_mut().find(|family| family.metric.name == metric.name) {
            Some(family) => family.samples.push((labels, value)),
            None => self.0.push(Family { metric, samples: vec![(labels, value)] }),
        }
    }

    /// The measurements of a metric.
    pub fn samples(&self, name: &str) -> &[(Labels, f64)] {
        self.0.iter().find(|family| family.metric.name == name).map_or(&[], |family| &family.samples)
    }

    /// The names of what was measured.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|family| family.metric.name)
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        for Family { metric, samples } in &self.0 {
            let (name, kind) = match metric.counts {
                // The encoder adds the end by itself.
                true => (metric.name.trim_end_matches("_total"), MetricType::Counter),
                false => (metric.name, MetricType::Gauge),
            };
            let mut family = encoder.encode_descriptor(name, metric.help, None, kind)?;
            for (labels, value) in samples {
                let mut sample = family.encode_family(labels)?;
                match metric.counts {
                    true => sample.encode_counter::<NoLabelSet, f64, f64>(value, None)?,
                    false => sample.encode_gauge(value)?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn is_told_as_text() {
        let mut families = Families::default();
        let labels = |value: &str| vec![("name".to_owned(), value.to_owned())];
        let bytes = Metric::counter("kubevirt_vmi_x_bytes_total", "Bytes");
        families.add(bytes, labels("a"), 1.0);
        families.add(Metric::gauge("kubevirt_vmi_y", "Why"), labels("a \"b\"\n"), 0.5);
        families.add(bytes, labels("b"), 2.0);
        let mut registry = Registry::default();
        registry.register_collector(Box::new(families));
        let mut told = String::new();
        text::encode(&mut told, &registry).unwrap();
        assert_eq!(
            told,
            "# HELP kubevirt_vmi_x_bytes Bytes\n# TYPE kubevirt_vmi_x_bytes counter\n\
             kubevirt_vmi_x_bytes_total{name=\"a\"} 1.0\nkubevirt_vmi_x_bytes_total{name=\"b\"} 2.0\n\
             # HELP kubevirt_vmi_y Why\n# TYPE kubevirt_vmi_y gauge\n\
             kubevirt_vmi_y{name=\"a \\\"b\\\"\\n\"} 0.5\n# EOF\n"
        );
    }
}
