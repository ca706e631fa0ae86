//! What many instances cost the components, on nodes that only pretend to run pods.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kubevirt_api::names::{annotations, labels};
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};
use xtask::cluster::simulated::{FAKE, MARK};

use crate::Row;
use crate::bed::{Bed, instance};
use crate::usage::Process;
use crate::watching::PATIENCE;

/// Requests at a time.
const SIDE_BY_SIDE: usize = 8;
/// Instances that CPU time is measured by.
const SOME: usize = 300;
/// How many there are at most, and how many are made between two looks at what it costs.
const ALL: usize = 5000;
const STEP: usize = 250;

/// Nodes that instances can be put on, though no handler is there: they say of themselves what a real node says.
async fn nodes(bed: &Bed, count: u32) -> Result<()> {
    bed.cluster.simulate_nodes(count)?;
    let nodes: Api<Node> = Api::all(bed.client.clone());
    let real = nodes.get("node01").await?;
    let all = real.metadata.labels.unwrap_or_default();
    let about_guests: BTreeMap<_, _> =
        all.into_iter().filter(|(key, _)| key.contains("kubevirt.io/")).collect();
    let has = real.status.and_then(|status| status.allocatable).unwrap_or_default();
    let devices: BTreeMap<_, _> =
        has.keys().filter(|key| key.contains("kubevirt.io/")).map(|key| (key, "1000")).collect();
    // No handler renews it, and a time in the future counts as now.
    let heartbeat = "2099-01-01T00:00:00Z";
    for number in 1..=count {
        let name = format!("simulated-{number}");
        let metadata =
            json!({"labels": &about_guests, "annotations": {(annotations::NODE_HEARTBEAT): heartbeat}});
        let patch = |patch: Value| Patch::Merge(patch);
        nodes.patch(&name, &PatchParams::default(), &patch(json!({"metadata": metadata}))).await?;
        let status = json!({"status": {"capacity": &devices, "allocatable": &devices}});
        nodes.patch_status(&name, &PatchParams::default(), &patch(status)).await?;
    }
    ensure!(about_guests.contains_key(labels::NODE_SCHEDULABLE), "node01 takes no instances");
    Ok(())
}

/// Makes instances of these numbers.
async fn make(bed: &Bed, namespace: &str, numbers: std::ops::Range<usize>) -> Result<()> {
    let api = bed.api::<VirtualMachineInstance>(namespace);
    let made = stream::iter(numbers).map(|number| {
        let api = api.clone();
        async move {
            let mut object = instance(&format!("vmi-{number}"));
            object["spec"]["nodeSelector"] = json!({MARK: FAKE});
            object["spec"]["tolerations"] = json!([{"key": MARK, "operator": "Exists"}]);
            let object: VirtualMachineInstance = serde_json::from_value(object)?;
            api.create(&PostParams::default(), &object).await?;
            anyhow::Ok(())
        }
    });
    made.buffer_unordered(SIDE_BY_SIDE).try_collect::<Vec<()>>().await.map(drop)
}

/// Waits until so many instances were handed over to their nodes.
async fn handed_over(bed: &Bed, namespace: &str, count: usize) -> Result<()> {
    let api = bed.api::<VirtualMachineInstance>(namespace);
    let begin = Instant::now();
    loop {
        // Only who is handed over has the label.
        let chosen = ListParams::default().labels(labels::NODE_NAME);
        let there = api.list_metadata(&chosen).await?.items.len();
        if there >= count {
            // What follows a write is part of its cost.
            tokio::time::sleep(Duration::from_secs(2)).await;
            return Ok(());
        }
        ensure!(begin.elapsed() < PATIENCE, "{there} of {count} instances have a node");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// CPU time of virt-controller and virt-api for each instance.
pub async fn cpu(bed: &Bed) -> Result<Vec<Row>> {
    nodes(bed, 10).await?;
    let namespace = bed.namespace("cpu").await?;
    let (controller, api) = (Process::of(bed, "virt-controller").await?, Process::of(bed, "virt-api").await?);
    let before = (controller.cpu()?, api.cpu()?);
    make(bed, &namespace, 0..SOME).await?;
    handed_over(bed, &namespace, SOME).await?;
    let each = |now: f64, before: f64| (now - before) / f64::from(u32::try_from(SOME).unwrap());
    let controller = each(controller.cpu()?, before.0);
    let api = each(api.cpu()?, before.1);
    Ok(vec![
        Row::new(format!("CPU of virt-controller for each of {SOME}"), "ms", controller, 1.5),
        Row::new(format!("CPU of virt-api for each of {SOME}"), "ms", api, 0.8),
    ])
}

/// Memory of virt-controller for each of very many, and whether the last cost more than the first.
pub async fn scale(bed: &Bed) -> Result<Vec<Row>> {
    nodes(bed, 100).await?;
    let namespace = bed.namespace("scale").await?;
    let controller = Process::of(bed, "virt-controller").await?;
    let before = controller.memory()?;
    let mut costs = Vec::new();
    for made in (0..ALL).step_by(STEP) {
        let cpu = controller.cpu()?;
        make(bed, &namespace, made..made + STEP).await?;
        handed_over(bed, &namespace, made + STEP).await?;
        let cost = (controller.cpu()? - cpu) / f64::from(u32::try_from(STEP).unwrap());
        let memory = controller.memory()?;
        eprintln!("  {} instances: {cost:.2} ms for each of the last, {memory:.1} MB", made + STEP);
        costs.push(cost);
    }
    let grown = (controller.memory()? - before) * 1000.0 / f64::from(u32::try_from(ALL).unwrap());
    let some = |costs: &[f64]| costs.iter().sum::<f64>() / f64::from(u32::try_from(costs.len()).unwrap());
    let (first, last) = (some(&costs[..2]), some(costs.last_chunk::<2>().context("too few steps")?));
    let what = format!("CPU for the last of {ALL} (for the first: {first:.2} ms)");
    bed.cluster.simulate_nodes(0)?;
    Ok(vec![
        Row::new(format!("memory of virt-controller for each of {ALL}"), "kB", grown, 40.0),
        Row::new(what, "ms", last, 1.25 * first),
    ])
}
