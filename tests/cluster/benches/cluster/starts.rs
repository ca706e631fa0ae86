//! From the wish to a running machine, next to bare pods.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use kubevirt_api::vmi::VirtualMachineInstance;

use crate::Row;
use crate::bed::{Bed, bare_pod, instance};
use crate::watching::{PATIENCE, until_running};

/// Starts that the median is taken of.
const STARTS: usize = 7;
/// Times that many are started, of which the median is taken.
const BURSTS: usize = 3;
/// Machines that are started side by side.
const MANY: usize = 40;
/// The time between them.
const SPACING: Duration = Duration::from_millis(100);

/// A machine by itself, and a pod by itself.
pub async fn one(bed: &Bed) -> Result<Vec<Row>> {
    let namespace = bed.namespace("start").await?;
    let (mut machines, mut pods) = (Vec::new(), Vec::new());
    // The first of each is to warm up.
    for round in 0..=STARTS {
        let name = format!("one-{round}");
        pods.push(time_of_pod(bed, &namespace, &name).await?);
        machines.push(time_of_machine(bed, &namespace, &name).await?);
    }
    let (machine, pod) = (median(&machines[1..]), median(&pods[1..]));
    Ok(vec![Row::new(format!("a machine runs (a pod: {pod:.2} s)"), "s", machine, 1.5 * pod + 0.5)])
}

async fn time_of_pod(bed: &Bed, namespace: &str, name: &str) -> Result<f64> {
    let api = bed.api::<Pod>(namespace);
    let watched = until_running(api.clone(), 1).await?;
    let begin = Instant::now();
    api.create(&PostParams::default(), &bare_pod(name)?).await?;
    let ran = watched.await??.get(name).and_then(|seen| seen.ran).context("it never ran")?;
    remove(&api, name).await?;
    Ok((ran - begin).as_secs_f64())
}

async fn time_of_machine(bed: &Bed, namespace: &str, name: &str) -> Result<f64> {
    let api = bed.api::<VirtualMachineInstance>(namespace);
    let watched = until_running(api.clone(), 1).await?;
    let begin = Instant::now();
    api.create(&PostParams::default(), &serde_json::from_value(instance(name))?).await?;
    let ran = watched.await??.get(name).and_then(|seen| seen.ran).context("it never ran")?;
    remove(&api, name).await?;
    Ok((ran - begin).as_secs_f64())
}

async fn remove<K>(api: &Api<K>, name: &str) -> Result<()>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    api.delete(name, &DeleteParams::default()).await?;
    let begin = Instant::now();
    while api.get_opt(name).await?.is_some() {
        ensure!(begin.elapsed() < PATIENCE, "{name} does not go");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// How often an instance is written, and how many events there are, until it runs.
pub async fn writes(bed: &Bed) -> Result<Vec<Row>> {
    let namespace = bed.namespace("writes").await?;
    let api = bed.api::<VirtualMachineInstance>(&namespace);
    let (mut writes, mut events) = (0_u32, 0_i32);
    for name in ["first", "second", "third"] {
        let watched = until_running(api.clone(), 1).await?;
        api.create(&PostParams::default(), &serde_json::from_value(instance(name))?).await?;
        writes = writes.max(watched.await??.get(name).context("it never ran")?.writes);
        // Events may come a little later than what they are about.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let about = format!("involvedObject.name={name},involvedObject.kind=VirtualMachineInstance");
        let all = bed.api::<Event>(&namespace).list(&ListParams::default().fields(&about)).await?;
        for event in &all.items {
            let reason = event.reason.as_deref().unwrap_or_default();
            eprintln!("  {name}: {reason} {}", event.message.as_deref().unwrap_or_default());
        }
        events = events.max(all.items.iter().map(|event| event.count.unwrap_or(1)).sum());
        remove(&api, name).await?;
    }
    let writes = Row::new("writes of an instance until it runs", "", writes.into(), 3.0);
    Ok(vec![writes, Row::new("events of an instance until it runs", "", events.into(), 4.0)])
}

/// Many machines at once, next to as many pods and as many QEMUs: in turn, so that a machine that is slow for a while is
/// slow for all of them.
pub async fn burst(bed: &Bed) -> Result<Vec<Row>> {
    let namespace = bed.namespace("burst").await?;
    let (mut pods, mut qemus, mut machines) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..BURSTS {
        pods.push(time_of_many(&bed.api::<Pod>(&namespace), bare_pod).await?);
        qemus.push(time_of_qemus()?);
        let machine = |name: &str| Ok(serde_json::from_value(instance(name))?);
        machines.push(time_of_many(&bed.api::<VirtualMachineInstance>(&namespace), machine).await?);
        eprintln!("  pods {pods:.1?} s, QEMUs {qemus:.1?} s, machines {machines:.1?} s");
    }
    let (pods, qemus) = (median(&pods), median(&qemus));
    let what = format!("{MANY} machines run (pods: {pods:.1} s, QEMUs alone: {qemus:.1} s)");
    Ok(vec![Row::new(what, "s", median(&machines), 2.0 * pods + qemus)])
}

/// From the first wish until all run.
async fn time_of_many<K>(api: &Api<K>, new: impl Fn(&str) -> Result<K>) -> Result<f64>
where
    K: kube::Resource
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + serde::de::DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    let watched = until_running(api.clone(), MANY).await?;
    let begin = Instant::now();
    for index in 0..MANY {
        api.create(&PostParams::default(), &new(&format!("one-{index}"))?).await?;
        tokio::time::sleep(SPACING).await;
    }
    watched.await??;
    let time = begin.elapsed().as_secs_f64();
    api.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    let begin = Instant::now();
    while !api.list_metadata(&ListParams::default()).await?.items.is_empty() {
        ensure!(begin.elapsed() < PATIENCE, "what was made does not go");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(time)
}

fn time_of_qemus() -> Result<f64> {
    let begin = Instant::now();
    for _ in 0..MANY {
        bare_qemu()?;
    }
    Ok(begin.elapsed().as_secs_f64())
}

/// Starts a QEMU and waits until its machine runs. It greets before it has one.
fn bare_qemu() -> Result<()> {
    let mut qemu = Command::new("qemu-system-x86_64")
        .args(["-machine", "q35,accel=tcg", "-m", "64", "-nodefaults", "-display", "none", "-qmp", "stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("run qemu-system-x86_64")?;
    let mut monitor = qemu.stdin.take().context("no input")?;
    monitor.write_all(b"{\"execute\":\"qmp_capabilities\"}{\"execute\":\"query-status\"}")?;
    let lines = BufReader::new(qemu.stdout.take().context("no output")?).lines();
    let runs = lines.map_while(io::Result::ok).any(|line| line.contains(r#""running": true"#));
    qemu.kill()?;
    qemu.wait()?;
    ensure!(runs, "QEMU ends before its machine runs");
    Ok(())
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
