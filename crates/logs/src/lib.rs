//! How every component logs: a line of JSON each in a pod, plain words in a terminal.
//!
//! The keys of a line are those of KubeVirt (`component`, `level`, `msg`, `timestamp`), so that what reads its logs
//! reads ours.

use std::fmt;
use std::io::IsTerminal;
use std::sync::OnceLock;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Registry, reload};

/// The verbosity that is used when none is given: what somebody who runs a cluster wants to read.
pub const DEFAULT_VERBOSITY: u32 = 2;

/// What is let through by the subscriber that [`init`] made.
static FILTER: OnceLock<reload::Handle<LevelFilter, Registry>> = OnceLock::new();

/// Begins to log to standard error. A second call changes nothing.
pub fn init(component: &'static str, verbosity: u32) {
    let json = !std::io::stderr().is_terminal();
    let (filter, handle) = reload::Layer::new(LevelFilter::from_level(level(verbosity)));
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).event_format(Line { component, json });
    let subscriber = tracing_subscriber::registry().with(filter).with(lines);
    // A test or an embedding program may log already, which is just as well.
    if tracing::subscriber::set_global_default(subscriber).is_ok() {
        let _ = FILTER.set(handle);
    }
}

/// Logs more or less from now on.
pub fn set_verbosity(verbosity: u32) {
    if let Some(filter) = FILTER.get() {
        // It fails only when the subscriber is gone, which a global one never is.
        let _ = filter.reload(LevelFilter::from_level(level(verbosity)));
    }
}

/// The level that a verbosity, as in `-v 4`, stands for.
pub fn level(verbosity: u32) -> Level {
    match verbosity {
        0..=3 => Level::INFO,
        4..=6 => Level::DEBUG,
        _ => Level::TRACE,
    }
}

struct Line {
    component: &'static str,
    json: bool,
}

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = event.metadata().level().as_str().to_lowercase();
        if self.json {
            let mut line = Map::new();
            line.insert("component".into(), self.component.into());
            line.insert("level".into(), level.into());
            line.insert("msg".into(), fields.message.into());
            line.extend(fields.others);
            line.insert("timestamp".into(), now().into());
            return writeln!(writer, "{}", Value::Object(line));
        }
        write!(writer, "{level:5} {}", fields.message)?;
        for (name, value) in fields.others {
            write!(writer, " {name}={value}")?;
        }
        writeln!(writer)
    }
}

fn now() -> String {
    format!("{:.6}", jiff::Timestamp::now())
}

#[derive(Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        if field.name() == "message" {
            self.message = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        } else {
            self.others.insert(field.name().to_owned(), value);
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(json: bool) -> String {
        let page = Page::default();
        let writer = page.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .event_format(Line { component: "virt-test", json })
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(vmi = "default/web", cpus = 2, "the guest {}", "sleeps");
        });
        String::from_utf8(page.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_pod_logs_json_with_kubevirts_keys() {
        let mut line: Map<String, Value> = serde_json::from_str(&logged(true)).unwrap();
        assert!(line.remove("timestamp").unwrap().as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
        let expected = serde_json::json!({
            "component": "virt-test", "level": "warn", "msg": "the guest sleeps", "vmi": "default/web", "cpus": 2,
        });
        assert_eq!(Value::Object(line), expected);
    }

    #[test]
    fn a_terminal_shows_words() {
        assert_eq!(logged(false), "warn  the guest sleeps cpus=2 vmi=\"default/web\"\n");
    }

    #[test]
    fn the_verbosity_changes_while_it_runs() {
        init("virt-test", 2);
        assert!(!tracing::enabled!(Level::DEBUG));
        set_verbosity(5);
        assert!(tracing::enabled!(Level::DEBUG));
        set_verbosity(2);
        assert!(!tracing::enabled!(Level::DEBUG));
    }
}
