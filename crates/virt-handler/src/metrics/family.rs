//! Measurements with a name each, as prometheus is told them.

use kubevirt_component::metrics::{Metric, Page};

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

    /// Writes all of it down.
    pub fn tell(&self, page: &mut Page) {
        for Family { metric, samples } in &self.0 {
            for (labels, value) in samples {
                let labels = labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
                page.add_with(metric, &[], labels, *value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_told_as_text() {
        let mut families = Families::default();
        let labels = |value: &str| vec![("name".to_owned(), value.to_owned())];
        let bytes = Metric::counter("kubevirt_vmi_x_bytes_total", "Bytes");
        families.add(bytes, labels("a"), 1.0);
        families.add(Metric::gauge("kubevirt_vmi_y", "Why"), labels("b"), 0.5);
        families.add(bytes, labels("b"), 2.0);
        let mut page = Page::default();
        families.tell(&mut page);
        let mut told = String::new();
        page.write_to(&mut told);
        assert_eq!(
            told,
            "# HELP kubevirt_vmi_x_bytes_total Bytes\n# TYPE kubevirt_vmi_x_bytes_total counter\n\
             kubevirt_vmi_x_bytes_total{name=\"a\"} 1\nkubevirt_vmi_x_bytes_total{name=\"b\"} 2\n\
             # HELP kubevirt_vmi_y Why\n# TYPE kubevirt_vmi_y gauge\nkubevirt_vmi_y{name=\"b\"} 0.5\n"
        );
    }
}
