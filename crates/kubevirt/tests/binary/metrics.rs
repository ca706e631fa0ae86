//! Metrics: all that KubeVirt has, and what the documentation and the dashboard say of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use kubevirt_component::metrics::{Description, Kind};
use kubevirt_component::{Health, Metrics, Role};
use serde_json::Value;

/// The names and kinds of KubeVirt's metrics.
const REFERENCE: &str = include_str!("metrics/reference.txt");

/// What nobody tells yet, and why.
const NOT_YET: [(&str, &str); 2] = [
    ("kubevirt_virt_operator_leading_status", "there is no operator yet"),
    ("kubevirt_virt_operator_ready_status", "there is no operator yet"),
];

fn of_api() -> Vec<Description> {
    let metrics = Metrics::new();
    Health::new(Role::Api, &metrics);
    kubevirt_virt_api::Told::new(&metrics);
    metrics.descriptions()
}

fn of_controller() -> Vec<Description> {
    let metrics = Metrics::new();
    Health::new(Role::Controller, &metrics);
    kubevirt_virt_controller::metrics::Told::new(&metrics);
    metrics.descriptions()
}

fn of_handler() -> Vec<Description> {
    let metrics = Metrics::new();
    Health::new(Role::Handler, &metrics);
    kubevirt_virt_handler::metrics::register(&metrics);
    metrics.descriptions()
}

struct Told {
    kind: Kind,
    labels: Vec<&'static str>,
    by: Vec<&'static str>,
    help: String,
}

/// All metrics of all components, by name.
fn told() -> BTreeMap<String, Told> {
    let mut all: BTreeMap<String, Told> = BTreeMap::new();
    for (component, metrics) in
        [("virt-api", of_api()), ("virt-controller", of_controller()), ("virt-handler", of_handler())]
    {
        let count = metrics.len();
        let names: BTreeSet<_> = metrics.iter().map(|metric| metric.name.clone()).collect();
        assert_eq!(names.len(), count, "{component} describes each once");
        for Description { name, help, kind, labels } in metrics {
            let labels = labels.unwrap_or_else(|| panic!("{name} does not say its labels")).to_vec();
            let known =
                all.entry(name.clone()).or_insert(Told { kind, labels: labels.clone(), by: vec![], help });
            assert_eq!((known.kind, &known.labels), (kind, &labels), "{name} is the same everywhere");
            known.by.push(component);
        }
    }
    all
}

#[test]
fn every_metric_of_kubevirt_is_told() {
    let told = told();
    let kinds: BTreeMap<&str, &str> = REFERENCE.lines().map(|line| line.split_once(' ').unwrap()).collect();
    for (name, kind) in &kinds {
        let Some(metric) = told.get(*name) else {
            assert!(NOT_YET.iter().any(|(known, _)| known == name), "nobody tells {name}");
            continue;
        };
        assert_eq!(metric.kind.name(), kind.to_lowercase(), "{name}");
    }
    let made_up: Vec<_> = told.keys().filter(|name| !kinds.contains_key(name.as_str())).collect();
    assert!(made_up.is_empty(), "KubeVirt has no {made_up:?}");
    for (name, why) in NOT_YET {
        assert!(!told.contains_key(name), "{name} is told, although {why}");
    }
}

const DOCUMENTATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");

#[test]
fn the_documentation_has_each_as_it_is() {
    let mut table = "| name | type | labels | told by | meaning |\n|---|---|---|---|---|\n".to_owned();
    for (name, Told { kind, labels, by, help }) in told() {
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        let by = if by.len() == 3 { "all".to_owned() } else { by.join(", ") };
        writeln!(table, "| `{name}` | {} | {} | {by} | {help} |", kind.name(), labels.join(" ")).unwrap();
    }
    let text = std::fs::read_to_string(DOCUMENTATION).unwrap();
    let begin = text.find("| name |").unwrap();
    let end = begin + text[begin..].find("\n\n").map_or(text.len() - begin, |end| end + 1);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(DOCUMENTATION, format!("{}{table}{}", &text[..begin], &text[end..])).unwrap();
        return;
    }
    let (old, new): (BTreeSet<_>, BTreeSet<_>) =
        (text[begin..end].lines().collect(), table.lines().collect());
    let (missing, wrong): (Vec<_>, Vec<_>) = (new.difference(&old).collect(), old.difference(&new).collect());
    assert!(
        missing.is_empty() && wrong.is_empty(),
        "docs/metrics.md lacks {missing:#?} and has {wrong:#?}; UPDATE_GOLDEN=1 writes it anew"
    );
}

const DASHBOARD: &str = include_str!("../../../../docs/grafana-dashboard.json");

/// What begins as our metrics do, and the rest of the word.
fn names(query: &str) -> impl Iterator<Item = &str> {
    let words = query.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("kubevirt_"))
}

#[test]
fn the_dashboard_asks_only_for_what_there_is() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let told = told();
    let exists = |name: &str| {
        let part = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let of_histogram = part.and_then(|name| told.get(name)).is_some_and(|it| it.kind == Kind::Histogram);
        of_histogram || told.get(name).is_some_and(|it| it.kind != Kind::Histogram)
    };
    let mut asked = BTreeSet::new();
    let panels = dashboard["panels"].as_array().unwrap();
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let title = panel["title"].as_str().unwrap();
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{title} asks for nothing");
        for target in targets {
            let query = target["expr"].as_str().unwrap();
            assert!(names(query).next().is_some(), "{title}: {query}");
            for name in names(query) {
                assert!(exists(name), "{title} asks for {name}, which nobody tells");
                asked.insert(name);
            }
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let query = variable["definition"].as_str().unwrap_or_default();
        assert!(names(query).all(exists), "{query}");
    }
    for topic in [
        "kubevirt_vm_info",
        "kubevirt_vmi_cpu_usage_seconds_total",
        "kubevirt_vmi_memory_resident_bytes",
        "kubevirt_vmi_network_receive_bytes_total",
        "kubevirt_vmi_storage_read_traffic_bytes_total",
        "kubevirt_workqueue_depth",
        "kubevirt_rest_client_request_latency_seconds_bucket",
        "kubevirt_vmi_launcher_memory_overhead_bytes",
    ] {
        assert!(asked.contains(topic), "the dashboard shows no {topic}");
    }
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has a number of its own");
}
