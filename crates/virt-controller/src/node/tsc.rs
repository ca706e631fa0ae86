//! Labels nodes with the frequencies of the time stamp counter that guests on them can have.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use kubevirt_api::names::labels;
use kubevirt_component::patch;
use serde_json::json;

use crate::context::Context;
use crate::vmi::topology;

/// Keeps the labels of nodes up to date, for good. Frequencies change when a machine is added or an old guest ends.
pub async fn keep_labels(context: &Context) {
    // Guests that are not known yet need their frequencies, too.
    context.stores.ready().await;
    loop {
        tokio::time::sleep(context.settings.node_topology_update_period).await;
        let needed = needed(context);
        for node in context.stores.nodes.all() {
            let changes = changes(&node, &needed);
            if let Err(error) = write(context, &node, &changes).await {
                tracing::info!(node = node.name_any(), %error, "frequencies could not be written");
            }
        }
    }
}

async fn write(
    context: &Context,
    node: &Node,
    changes: &BTreeMap<String, Option<String>>,
) -> kube::Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let nodes: Api<Node> = context.cluster_api();
    let change = Patch::Merge(json!({"metadata": {"labels": changes}}));
    match nodes.patch(&node.name_any(), &PatchParams::default(), &change).await {
        Err(error) if !patch::is_gone(&error) => Err(error),
        _ => Ok(()),
    }
}

/// The frequencies that guests have, and the one that new guests get.
fn needed(context: &Context) -> BTreeSet<i64> {
    let vmis = context.stores.vmis.all();
    let hints = vmis.iter().filter_map(|vmi| vmi.status.as_ref()?.topology_hints.as_ref()?.tsc_frequency);
    let lowest = topology::lowest_in_cluster(&context.stores, &context.config());
    hints.chain([lowest]).filter(|frequency| *frequency > 0).collect()
}

/// What has to change on a node: it is labelled with what it can run of what is needed, and with its own frequency.
fn changes(node: &Node, needed: &BTreeSet<i64>) -> BTreeMap<String, Option<String>> {
    let Some(own) = topology::frequency(node) else { return BTreeMap::new() };
    let is_scalable = node.labels().get(labels::TSC_SCALABLE).is_some_and(|value| value == "true");
    // QEMU tolerates 250 parts in a million.
    let tolerance = own / 4000;
    let can = |frequency: i64| (is_scalable && frequency <= own) || (frequency - own).abs() <= tolerance;
    let wanted: BTreeSet<i64> = needed.iter().copied().filter(|it| can(*it)).chain([own]).collect();
    let label = |frequency: &i64| format!("{}{frequency}", labels::TSC_FREQUENCY_SCHEDULING_PREFIX);
    let wanted: BTreeSet<String> = wanted.iter().map(label).collect();
    let known = node.labels().keys().filter(|name| name.starts_with(labels::TSC_FREQUENCY_SCHEDULING_PREFIX));
    let gone = known.filter(|name| !wanted.contains(*name)).map(|name| (name.clone(), None));
    let new = wanted.iter().filter(|name| !node.labels().contains_key(*name));
    gone.chain(new.map(|name| (name.clone(), Some("true".to_owned())))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(marks: &[(&str, &str)]) -> Node {
        let mut node = Node::default();
        node.metadata.labels =
            Some(marks.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect());
        node
    }

    fn told(node: &Node, needed: &[i64]) -> Vec<(String, bool)> {
        let changes = changes(node, &needed.iter().copied().collect());
        let short =
            |name: String| name.trim_start_matches(labels::TSC_FREQUENCY_SCHEDULING_PREFIX).to_owned();
        changes.into_iter().map(|(name, value)| (short(name), value.is_some())).collect()
    }

    #[test]
    fn a_node_offers_its_own_frequency_and_those_that_it_can_imitate() {
        let own = (labels::TSC_FREQUENCY, "2000000000");
        let fixed = node(&[own]);
        assert_eq!(told(&fixed, &[1_000_000_000]), [("2000000000".into(), true)]);
        // Close enough to be the same.
        assert_eq!(
            told(&fixed, &[2_000_400_000]),
            [("2000000000".into(), true), ("2000400000".into(), true)]
        );
        let scalable = node(&[own, (labels::TSC_SCALABLE, "true")]);
        let expected = [("1000000000".to_owned(), true), ("2000000000".to_owned(), true)];
        assert_eq!(told(&scalable, &[1_000_000_000, 3_000_000_000]), expected);
        assert_eq!(told(&node(&[]), &[1_000_000_000]), []);
    }

    #[test]
    fn what_nobody_needs_any_more_is_removed() {
        let old = format!("{}1500000000", labels::TSC_FREQUENCY_SCHEDULING_PREFIX);
        let own = format!("{}2000000000", labels::TSC_FREQUENCY_SCHEDULING_PREFIX);
        let node = node(&[(labels::TSC_FREQUENCY, "2000000000"), (&old, "true"), (&own, "true")]);
        assert_eq!(told(&node, &[]), [("1500000000".into(), false)]);
    }
}
