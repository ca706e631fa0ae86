//! What processes use: CPU time and memory.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::Row;
use crate::bed::Bed;

/// Of virt-api, virt-controller and virt-handler together.
const LIMIT: f64 = 45.0;

/// The components after a while in which nothing happened.
pub async fn idle(bed: &Bed) -> Result<Vec<Row>> {
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mut rows = Vec::new();
    let mut sum = 0.0;
    for component in ["virt-api", "virt-controller", "virt-handler"] {
        let memory = Process::of(bed, component).await?.memory()?;
        sum += memory;
        rows.push(Row::new(format!("memory of {component}, idle"), "MB", memory, LIMIT));
    }
    rows.push(Row::new("memory of the control plane, idle", "MB", sum, LIMIT));
    Ok(rows)
}

/// A process of the cluster, as this machine sees it.
pub struct Process(u32);

impl Process {
    /// The one process of a component.
    pub async fn of(bed: &Bed, component: &str) -> Result<Self> {
        let pod = bed.component(component).await?;
        let status = pod.status.context("a pod without status")?;
        let container = status.container_statuses.unwrap_or_default().into_iter().next();
        let id = container.and_then(|container| container.container_id).context("a pod without container")?;
        let id = id.rsplit('/').next().unwrap_or_default().to_owned();
        let all = fs::read_dir("/proc")?.flatten();
        let mut processes = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let inside = |process: &u32| {
            fs::read_to_string(format!("/proc/{process}/cgroup")).is_ok_and(|groups| groups.contains(&id))
        };
        processes.find(inside).map(Self).with_context(|| format!("no process of {component}"))
    }

    /// CPU time so far, in milliseconds.
    pub fn cpu(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0))?;
        // The name before may hold anything, even a parenthesis.
        let rest = stat.rsplit_once(')').context("a process without name")?.1;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
        let ticks = ticks(11).zip(ticks(12)).context("a process without times")?;
        #[expect(clippy::cast_precision_loss, reason = "a hundred")]
        let tick = 1000.0 / rustix::param::clock_ticks_per_second() as f64;
        Ok((ticks.0 + ticks.1) * tick)
    }

    /// Its share of memory, in megabytes.
    pub fn memory(&self) -> Result<f64> {
        let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.0))?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).context("no share of memory")?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes * 1024.0 / 1e6)
    }
}
