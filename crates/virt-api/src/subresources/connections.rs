//! How many streams there are, and when an instance was last reached by one.

use std::time::{SystemTime, UNIX_EPOCH};

use kubevirt_component::Metrics;
use kubevirt_component::metrics::Metric;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::routes::{Action, Line};

type Labels = [(&'static str, String); 2];
type Gauges = Family<Labels, Gauge>;

const OF_INSTANCE: &[&str] = &["namespace", "vmi"];
const CONSOLE: Metric =
    Metric::gauge("kubevirt_console_active_connections", "Open serial consoles").by(OF_INSTANCE);
const VNC: Metric = Metric::gauge("kubevirt_vnc_active_connections", "Open displays").by(OF_INSTANCE);
const PORT_FORWARD: Metric =
    Metric::gauge("kubevirt_portforward_active_tunnels", "Open tunnels to ports").by(OF_INSTANCE);
const USB_REDIR: Metric =
    Metric::gauge("kubevirt_usbredir_active_connections", "Open connections of USB devices").by(OF_INSTANCE);
const LAST: Metric = Metric::gauge(
    "kubevirt_vmi_last_api_connection_timestamp_seconds",
    "When somebody last opened a stream to an instance",
)
.by(OF_INSTANCE);

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
        let add = |what: &Metric| metrics.register(what, Gauges::default());
        Self {
            console: add(&CONSOLE),
            vnc: add(&VNC),
            usb_redir: add(&USB_REDIR),
            port_forward: add(&PORT_FORWARD),
            last: add(&LAST),
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
        for (action, metric) in [
            (Action::Line(Line::Console), Some(CONSOLE)),
            (Action::Line(Line::Vnc), Some(VNC)),
            (Action::Line(Line::UsbRedir), Some(USB_REDIR)),
            (Action::PortForward, Some(PORT_FORWARD)),
            // KubeVirt does not count these.
            (Action::Line(Line::Vsock), None),
        ] {
            let metrics = Metrics::new();
            let connections = Connections::new(&metrics);
            let streams = [(); 2].map(|()| connections.count(action, "a", "b"));
            let lines = || -> Vec<String> {
                let text = metrics.text();
                let last = |line: &&str| !line.starts_with(LAST.name);
                let of_streams = text.lines().filter(|line| line.contains("vmi=\"b\"")).filter(last);
                of_streams.map(str::to_owned).collect()
            };
            let line = |count| metric.map(|it| format!("{}{{namespace=\"a\",vmi=\"b\"}} {count}", it.name));
            assert_eq!(lines(), Vec::from_iter(line(2)), "{action:?}");
            drop(streams);
            assert_eq!(lines(), Vec::from_iter(line(0)), "{action:?}");
            assert_eq!(metrics.text().contains(&format!("{}{{", LAST.name)), metric.is_some());
        }
    }
}
