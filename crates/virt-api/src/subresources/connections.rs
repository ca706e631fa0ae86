//! How many streams there are, and when an instance was last reached by one.

use std::time::{SystemTime, UNIX_EPOCH};

use kubevirt_component::Metrics;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::routes::{Action, Line};

type Labels = [(&'static str, String); 2];
type Gauges = Family<Labels, Gauge>;

/// How many streams there are of each kind, by instance.
#[derive(Clone)]
pub struct Connections {
    console: Gauges,
    vnc: Gauges,
    usb_redir: Gauges,
    port_forward: Gauges,
    last: Gauges,
}

/// A stream that is counted while it lasts.
pub struct Counted {
    gauge: Option<Gauge>,
    last: Option<Gauge>,
}

impl Connections {
    /// All at zero.
    pub fn new(metrics: &Metrics) -> Self {
        let add = |name: &str, what: &str| {
            let help = format!("How many {what} there are, by namespace and instance");
            metrics.add(name, &help, Gauges::default())
        };
        let last =
            "When an instance was last reached by console, VNC, port-forward or USB redirection, in seconds";
        Self {
            console: add("kubevirt_console_active_connections", "connections to consoles"),
            vnc: add("kubevirt_vnc_active_connections", "connections to screens"),
            usb_redir: add("kubevirt_usbredir_active_connections", "USB redirections"),
            port_forward: add("kubevirt_portforward_active_tunnels", "forwarded ports"),
            last: metrics.add("kubevirt_vmi_last_api_connection_timestamp_seconds", last, Gauges::default()),
        }
    }

    /// Counts a stream to an instance.
    pub fn count(&self, action: Action, namespace: &str, name: &str) -> Counted {
        let family = match action {
            Action::Line(Line::Console) => Some(&self.console),
            Action::Line(Line::Vnc) => Some(&self.vnc),
            Action::Line(Line::UsbRedir) => Some(&self.usb_redir),
            Action::PortForward => Some(&self.port_forward),
            _ => None,
        };
        let labels = [("namespace", namespace.to_owned()), ("vmi", name.to_owned())];
        let gauge = family.map(|family| family.get_or_create_owned(&labels));
        let last = family.map(|_| self.last.get_or_create_owned(&labels));
        if let Some(gauge) = &gauge {
            gauge.inc();
        }
        let counted = Counted { gauge, last };
        counted.note();
        counted
    }
}

impl Counted {
    fn note(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if let Some(last) = &self.last {
            last.set(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(gauge) = &self.gauge {
            gauge.dec();
        }
        self.note();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_counted_while_they_last() {
        let metrics = Metrics::new();
        let connections = Connections::new(&metrics);
        let one = connections.count(Action::Line(Line::Console), "a", "b");
        let two = connections.count(Action::Line(Line::Console), "a", "b");
        let _vsock = connections.count(Action::Line(Line::Vsock), "a", "b");
        let value = |wanted: &str| metrics.text().lines().any(|line| line == wanted);
        let line =
            |count| format!("kubevirt_console_active_connections{{namespace=\"a\",vmi=\"b\"}} {count}");
        assert!(value(&line(2)), "{}", metrics.text());
        drop((one, two));
        assert!(value(&line(0)), "{}", metrics.text());
        assert!(metrics.text().contains("kubevirt_vmi_last_api_connection_timestamp_seconds{"));
    }
}
