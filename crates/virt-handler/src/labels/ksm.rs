//! Merging of same memory pages: the kernel does it, as busily as memory is scarce, where the configuration wants it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use kubevirt_admission::ClusterConfig;
use kubevirt_api::names::{annotations, labels};
use kubevirt_component::Configuration;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// How often memory is looked at.
const PERIOD: Duration = Duration::from_secs(180);

/// What is seen of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Whether pages are merged now.
    pub running: bool,
    /// Pages that are looked at in one go.
    pub pages: u64,
    /// All memory, in KiB.
    pub total: u64,
    /// Memory that is left, in KiB.
    pub available: u64,
}

/// What the kernel is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Whatever it does now: it is not our affair.
    Leave,
    /// Merge nothing.
    Stop,
    /// Merge pages.
    Run {
        /// Pages to look at in one go.
        pages: u64,
        /// Pause between two goes, in milliseconds.
        sleep: u64,
    },
}

/// What to do, and what the node says of it: whether the handler decides here, and whether it has turned it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// For the kernel.
    pub order: Order,
    /// Whether the node is one that the configuration wants this on.
    pub eligible: bool,
}

/// How busy the kernel gets, as far as annotations of the node do not say otherwise.
struct Pace {
    boost: u64,
    decay: u64,
    fewest: u64,
    most: u64,
    first: u64,
    sleep: u64,
    free: f64,
}

impl Pace {
    fn of(node: &Node) -> Self {
        let fewest = setting(node, annotations::KSM_PAGES_MIN, 64, 0, u64::MAX);
        let most = setting(node, annotations::KSM_PAGES_MAX, 1250, fewest, u64::MAX);
        // The pages by which the pace falls are written as a negative number.
        let decay = annotation(node, annotations::KSM_PAGES_DECAY).and_then(|text| text.parse::<i64>().ok());
        let free = annotation(node, annotations::KSM_FREE_PERCENT).and_then(|text| text.parse::<f64>().ok());
        Self {
            boost: setting(node, annotations::KSM_PAGES_BOOST, 300, 0, u64::MAX),
            decay: decay.filter(|pages| *pages <= 0).map_or(50, i64::unsigned_abs),
            fewest,
            most,
            first: setting(node, annotations::KSM_PAGES_INIT, 100.clamp(fewest, most), fewest, most),
            sleep: setting(node, annotations::KSM_SLEEP_BASELINE, 100, 1, u64::MAX),
            free: free.filter(|share| (0.0..=1.0).contains(share)).unwrap_or(0.2),
        }
    }
}

fn annotation<'a>(node: &'a Node, name: &str) -> Option<&'a str> {
    node.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

fn setting(node: &Node, name: &str, otherwise: u64, least: u64, most: u64) -> u64 {
    let own = annotation(node, name).and_then(|text| text.parse().ok());
    own.filter(|value| (least..=most).contains(value)).unwrap_or_else(|| otherwise.clamp(least, most))
}

/// Decides. Without `seen` this kernel cannot merge pages.
pub fn decide(config: &ClusterConfig, node: &Node, seen: Option<Seen>) -> Plan {
    let wanted = config.configuration().ksm_configuration.as_ref();
    let selector = wanted.and_then(|wanted| wanted.node_label_selector.as_ref());
    let empty = BTreeMap::new();
    let matches =
        selector.is_some_and(|selector| matches(selector, node.metadata.labels.as_ref().unwrap_or(&empty)));
    let Some(seen) = seen else { return Plan { order: Order::Leave, eligible: false } };
    if matches {
        return Plan { order: pace(&Pace::of(node), seen), eligible: true };
    }
    let ours = annotation(node, annotations::KSM_HANDLER_MANAGED) == Some("true");
    let order = if ours && seen.running { Order::Stop } else { Order::Leave };
    Plan { order, eligible: false }
}

fn pace(pace: &Pace, seen: Seen) -> Order {
    // A machine of 16 GiB that is full pauses as long as the setting says; a larger one has more to look at.
    let used = seen.total.saturating_sub(seen.available).max(1);
    let sleep = (pace.sleep.saturating_mul(16 << 20) / used).max(pace.sleep / 10);
    #[expect(clippy::cast_precision_loss, reason = "a share of memory need not be exact")]
    let enough = seen.available as f64 > seen.total as f64 * pace.free;
    match (enough, seen.running) {
        (true, false) => Order::Stop,
        (true, true) if seen.pages.saturating_sub(pace.decay) < pace.fewest => Order::Stop,
        (true, true) => Order::Run { pages: seen.pages - pace.decay, sleep },
        (false, true) => Order::Run { pages: seen.pages.saturating_add(pace.boost).min(pace.most), sleep },
        (false, false) => Order::Run { pages: pace.first, sleep },
    }
}

/// Whether labels are what a selector asks for; an empty selector asks for nothing.
fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let same = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    same && selector.match_expressions.iter().flatten().all(|rule| {
        let value = labels.get(&rule.key);
        let listed = value.is_some_and(|value| rule.values.iter().flatten().any(|one| one == value));
        match rule.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    })
}

/// The merge patch that makes the node say so; none if it does already.
pub fn patch(node: &Node, plan: Plan) -> Option<Value> {
    let eligible = plan.eligible.to_string();
    let on = (plan.eligible && matches!(plan.order, Order::Run { .. })).to_string();
    let label = node.metadata.labels.as_ref().and_then(|all| all.get(labels::KSM_ENABLED));
    if label == Some(&eligible) && annotation(node, annotations::KSM_HANDLER_MANAGED) == Some(&on) {
        return None;
    }
    Some(json!({ "metadata": {
        "labels": { labels::KSM_ENABLED: eligible },
        "annotations": { annotations::KSM_HANDLER_MANAGED: on },
    } }))
}

/// Follows memory and the configuration until it is told to stop.
pub async fn run(
    client: Client,
    node: String,
    mut configuration: Configuration,
    sysfs: PathBuf,
    stop: CancellationToken,
) {
    let nodes = Api::<Node>::all(client);
    let folder = sysfs.join("kernel/mm/ksm");
    loop {
        let config = configuration.now();
        if let Err(error) = once(&nodes, &node, &config, &folder).await {
            warn!(node, "cannot look after the merging of memory pages: {error}");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PERIOD) => {}
            () = configuration.changed() => {}
        }
    }
}

async fn once(
    nodes: &Api<Node>,
    name: &str,
    config: &ClusterConfig,
    folder: &Path,
) -> Result<(), kube::Error> {
    let node = nodes.get(name).await?;
    let plan = decide(config, &node, see(folder));
    if let Err(error) = obey(folder, plan.order) {
        warn!("the kernel does not take orders on merging pages: {error}");
    }
    if let Some(patch) = patch(&node, plan) {
        nodes.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    }
    Ok(())
}

fn see(folder: &Path) -> Option<Seen> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let memory = std::fs::read_to_string("/proc/meminfo").ok()?;
    Some(Seen {
        running: read("run")?.trim() == "1",
        pages: read("pages_to_scan")?.trim().parse().ok()?,
        total: kibibytes(&memory, "MemTotal:")?,
        available: kibibytes(&memory, "MemAvailable:")?,
    })
}

fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn obey(folder: &Path, order: Order) -> io::Result<()> {
    let write = |name: &str, value: u64| std::fs::write(folder.join(name), value.to_string());
    match order {
        Order::Leave => Ok(()),
        Order::Stop => write("run", 0),
        Order::Run { pages, sleep } => {
            write("sleep_millisecs", sleep)?;
            write("pages_to_scan", pages)?;
            write("run", 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_api::kubevirt::KubeVirt;

    use super::*;
    use crate::devices::testing::Tree;

    fn config(selector: Option<Value>) -> ClusterConfig {
        let configuration = match selector {
            Some(selector) => json!({ "ksmConfiguration": { "nodeLabelSelector": selector } }),
            None => json!({}),
        };
        let object =
            json!({ "metadata": { "name": "kubevirt" }, "spec": { "configuration": configuration } });
        ClusterConfig::of(&serde_json::from_value::<KubeVirt>(object).unwrap())
    }

    fn node(annotations: Value) -> Node {
        serde_json::from_value(
            json!({ "metadata": { "labels": { "ksm": "yes" }, "annotations": annotations } }),
        )
        .unwrap()
    }

    fn seen(running: bool, pages: u64, available: u64) -> Option<Seen> {
        Some(Seen { running, pages, total: 32 << 20, available })
    }

    #[test]
    fn is_as_busy_as_memory_is_scarce() {
        let (full, empty) = (0, 31 << 20);
        for (running, pages, available, expected) in [
            (false, 100, empty, Order::Stop),
            (false, 100, full, Order::Run { pages: 100, sleep: 50 }),
            (true, 100, full, Order::Run { pages: 400, sleep: 50 }),
            (true, 1200, full, Order::Run { pages: 1250, sleep: 50 }),
            (true, 400, empty, Order::Run { pages: 350, sleep: 1600 }),
            (true, 100, empty, Order::Stop),
        ] {
            let plan = decide(&config(Some(json!({}))), &node(json!({})), seen(running, pages, available));
            assert_eq!(plan, Plan { order: expected, eligible: true }, "{running} {pages} {available}");
        }
        let own = node(json!({
            annotations::KSM_PAGES_BOOST: "1",
            annotations::KSM_SLEEP_BASELINE: "20",
            annotations::KSM_FREE_PERCENT: "0.99",
            annotations::KSM_PAGES_MAX: "nonsense",
        }));
        let plan = decide(&config(Some(json!({}))), &own, seen(true, 100, empty));
        assert_eq!(plan.order, Order::Run { pages: 101, sleep: 320 });
    }

    #[test]
    fn is_only_there_where_it_is_wanted() {
        let yes = json!({ "matchLabels": { "ksm": "yes" } });
        let no = json!({ "matchExpressions": [{ "key": "ksm", "operator": "DoesNotExist" }] });
        let managed = json!({ annotations::KSM_HANDLER_MANAGED: "true" });
        let on = seen(true, 100, 1 << 20);
        for (selector, annotations, seen, eligible, stops) in [
            (None, json!({}), on, false, false),
            (None, managed.clone(), on, false, true),
            (Some(no), managed.clone(), on, false, true),
            (Some(yes.clone()), managed.clone(), None, false, false),
            (Some(yes), json!({}), on, true, false),
        ] {
            let plan = decide(&config(selector), &node(annotations), seen);
            assert_eq!((plan.eligible, plan.order == Order::Stop), (eligible, stops), "{plan:?}");
        }
    }

    #[test]
    fn the_node_says_so_once() {
        let plan = Plan { order: Order::Run { pages: 1, sleep: 1 }, eligible: true };
        let before = node(json!({}));
        assert_eq!(
            patch(&before, plan),
            Some(json!({ "metadata": {
                "labels": { "kubevirt.io/ksm-enabled": "true" },
                "annotations": { "kubevirt.io/ksm-handler-managed": "true" },
            } }))
        );
        let mut after = node(json!({ annotations::KSM_HANDLER_MANAGED: "true" }));
        after.metadata.labels = Some([(labels::KSM_ENABLED.into(), "true".into())].into());
        assert_eq!(patch(&after, plan), None);
    }

    #[test]
    fn the_kernel_is_told() {
        let tree = Tree::new();
        tree.file("run", "0\n");
        tree.file("pages_to_scan", "100\n");
        obey(tree.path(), Order::Run { pages: 7, sleep: 8 }).unwrap();
        let now = see(tree.path()).unwrap();
        assert!(now.running && now.pages == 7 && now.total > 0);
        obey(tree.path(), Order::Stop).unwrap();
        assert!(!see(tree.path()).unwrap().running);
        assert_eq!(see(&tree.path().join("none")), None);
    }
}
