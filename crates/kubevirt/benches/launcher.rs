//! What a launcher costs beside its QEMU: memory, time to start, and CPU while nothing happens.
//!
//! Run by `make bench`, which builds the program as it is shipped and names it in `KUBEVIRT_BINARY`.

#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]
#![allow(dead_code, reason = "the pods of the tests can do more")]

#[path = "../tests/binary/launcher/handler.rs"]
mod handler;
#[path = "../tests/binary/launcher/pod.rs"]
mod pod;
#[path = "../tests/binary/launcher/proxy.rs"]
mod proxy;

use std::time::{Duration, Instant};

use kubevirt_domain::{Domain, qemu};
use kubevirt_launcher_rpc::report::State;
use kubevirt_qemu::process::Launch;
use pod::{Pod, vmi};
use serde_json::{Value, json};

/// Machines beside each other, for the memory of each.
const MANY: usize = 20;
/// Starts that the median is taken of.
const STARTS: usize = 7;
/// How long an idle machine is watched.
const IDLE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    pod::GUESTS.add_permits(MANY);
    start().await;
    memory(1).await;
    memory(MANY).await;
    idle().await;
}

/// A machine with nothing to boot, whose firmware soon has nothing to do.
fn machine() -> Value {
    vmi(json!({"spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {"disks": []}}, "volumes": []}}))
}

async fn running() -> Pod {
    let pod = Pod::start().await;
    pod.sync(&machine()).await.unwrap();
    pod.wait_for(State::Running).await;
    pod
}

/// From the wish for a machine to its running, next to the start of the same QEMU alone.
async fn start() {
    let (mut whole, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let pod = Pod::start().await;
        // The first wish does not come before the launcher knows its host.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let began = Instant::now();
        pod.sync(&machine()).await.unwrap();
        whole.push(began.elapsed());
        let domain = pod.domain().await.unwrap().spec.unwrap();
        drop(pod);
        alone.push(bare(&domain).await);
    }
    let (whole, alone) = (median(whole), median(alone));
    println!(
        "start: sync to running {whole:?}, QEMU alone {alone:?}, beyond it {:?} (limit 150ms)",
        whole.saturating_sub(alone)
    );
}

async fn bare(domain: &Domain) -> Duration {
    let console = domain.devices.console.as_ref().unwrap();
    std::fs::create_dir_all(std::path::Path::new(&console.socket).parent().unwrap()).unwrap();
    let launch = Launch {
        program: domain.machine.architecture.qemu_program().into(),
        arguments: qemu::arguments(domain).into_iter().map(Into::into).collect(),
        ..Launch::default()
    };
    let began = Instant::now();
    let (process, machine) = launch.start().await.unwrap();
    machine.resume().await.unwrap();
    let took = began.elapsed();
    process.end().await;
    took
}

async fn memory(count: usize) {
    let mut pods = Vec::new();
    for _ in 0..count {
        pods.push(running().await);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let used: Vec<u64> =
        pods.iter().map(|pod| kubevirt_host::memory::of(pod.launcher()).unwrap().proportional).collect();
    let (sum, most) = (used.iter().sum::<u64>(), used.iter().max().copied().unwrap_or(0));
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let limit = if count == 1 { 8 } else { 3 };
    println!(
        "memory: {count} launchers, {:.1} MB each, at most {:.1} MB (limit {limit} MB)",
        megabytes(sum / count as u64),
        megabytes(most)
    );
}

async fn idle() {
    let pod = running().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let before = cpu_time(pod.launcher());
    tokio::time::sleep(IDLE).await;
    let used = cpu_time(pod.launcher()) - before;
    let share = used as f64 / 100.0 / IDLE.as_secs_f64() * 100.0;
    println!("idle: {share:.3} % of a core (limit 0.1 %)");
}

/// CPU time of a process in hundredths of a second.
fn cpu_time(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
