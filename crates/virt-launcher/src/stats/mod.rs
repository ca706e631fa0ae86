//! Measurements, taken when somebody asks for them.

mod agent;
mod dirty_rate;
mod disks;
mod interfaces;
mod process;

use std::time::Duration;

use kubevirt_domain::Domain;
use kubevirt_host::threads;
use kubevirt_launcher_rpc::stats::{CpuStats, DomainStats, MemoryStats, MigrationStats, VcpuStats};
use kubevirt_qemu::machine::GuestMemoryStats;
use kubevirt_qemu::migration::Progress;
use serde::Deserialize;
use serde_json::json;

use crate::error::CommandError;
use crate::guest::within;
use crate::launcher::Launcher;
use crate::running::Running;

/// Id of the memory balloon.
const BALLOON: &str = "balloon0";

/// How long the agent may take to tell the guest's load; measurements are not to wait for a guest that hangs.
const LOAD: Duration = Duration::from_secs(1);

/// The agent's command for the guest's load, which old agents do not have.
const GET_LOAD: &str = "guest-get-load";

impl Launcher {
    /// What the machine uses and does.
    pub async fn stats(&self) -> Result<DomainStats, CommandError> {
        let running = self.running()?;
        let (domain, machine) = (running.domain(), &running.machine);
        let pid = running.process.pid();
        let usage = process::usage(pid).unwrap_or_default();
        let threads = machine.cpus().await?;
        let counters = machine.block_stats().await?;
        let nodes = machine.blocks().await?;
        Ok(DomainStats {
            name: domain.name(),
            uuid: domain.identity.uuid.clone().unwrap_or_default(),
            cpu: CpuStats { user: usage.user, system: usage.system },
            memory: memory(&running, &domain, usage.resident).await,
            vcpus: threads.iter().map(|cpu| vcpu(pid, cpu.index, cpu.thread_id)).collect(),
            interfaces: interfaces::all(&domain),
            disks: disks::all(&domain, &counters, &nodes),
            migration: self.migration_stats(&running).await,
            load: self.load(&running).await,
        })
    }

    async fn migration_stats(&self, running: &Running) -> Option<MigrationStats> {
        if !self.intent().migrating {
            return None;
        }
        migration(&running.machine.migration_progress().await.ok()?)
    }

    /// The guest's load, if its agent tells.
    async fn load(&self, running: &Running) -> Option<[f64; 3]> {
        #[derive(Deserialize)]
        struct Load {
            load1m: f64,
            load5m: f64,
            load15m: f64,
        }
        let agent = self.agent(running)?;
        if !self.board.report().status.agent_commands.iter().any(|command| command == GET_LOAD) {
            return None;
        }
        let load: Load = within(LOAD, GET_LOAD, agent.call(GET_LOAD, json!(null))).await.ok()?;
        Some([load.load1m, load.load5m, load.load15m])
    }
}

async fn memory(running: &Running, domain: &Domain, resident: u64) -> MemoryStats {
    let machine = &running.machine;
    let size = machine.memory_size().await.ok();
    let (balloon, told) = match domain.devices.balloon {
        Some(_) => (machine.balloon().await.ok(), machine.guest_memory_stats(BALLOON).await.ok()),
        None => (None, None),
    };
    MemoryStats {
        resident: Some(resident).filter(|bytes| *bytes > 0),
        actual_balloon: balloon,
        domain: size.map(|size| size.base + size.plugged),
        ..told.map(as_told).unwrap_or_default()
    }
}

/// What the balloon calls available is what the guest could use; all it has is what it calls total.
fn as_told(told: GuestMemoryStats) -> MemoryStats {
    MemoryStats {
        available: told.total,
        unused: told.free,
        usable: told.available,
        cached: told.disk_caches,
        swap_in: told.swap_in,
        swap_out: told.swap_out,
        major_faults: told.major_faults,
        minor_faults: told.minor_faults,
        last_update: i64::try_from(told.last_update).ok().filter(|time| *time > 0),
        ..MemoryStats::default()
    }
}

fn vcpu(pid: u32, id: u32, thread: i32) -> VcpuStats {
    let times = process::thread_times(pid, thread);
    VcpuStats {
        id,
        time: times.map_or(0, |times| times.ran),
        delay: times.map(|times| times.waited),
        wait: process::thread_wait(pid, thread),
        host_cpus: host_cpus(thread),
    }
}

/// On how many CPUs a thread may run.
fn host_cpus(thread: i32) -> Option<u32> {
    let cpus = threads::affinity(u32::try_from(thread).ok()?).ok()?;
    u32::try_from(cpus.len()).ok()
}

fn migration(progress: &Progress) -> Option<MigrationStats> {
    let ram = progress.ram.as_ref()?;
    Some(MigrationStats {
        total: ram.total,
        transferred: ram.transferred,
        remaining: ram.remaining,
        dirty_rate: ram.dirty_rate.saturating_mul(ram.page_size),
        speed: (ram.mbps * 1e6 / 8.0) as u64,
        elapsed_ms: progress.elapsed.unwrap_or(0),
        downtime_ms: progress.downtime.or(progress.expected_downtime),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_migration_is_told_in_bytes() {
        let progress = json!({
            "status": "active", "total-time": 1500, "expected-downtime": 300,
            "ram": { "total": 1000, "remaining": 400, "transferred": 700, "dirty-pages-rate": 3,
                     "page-size": 4096, "mbps": 8.0 },
        });
        let expected = MigrationStats {
            total: 1000,
            transferred: 700,
            remaining: 400,
            dirty_rate: 12_288,
            speed: 1_000_000,
            elapsed_ms: 1500,
            downtime_ms: Some(300),
        };
        assert_eq!(migration(&serde_json::from_value(progress).unwrap()), Some(expected));
        assert_eq!(migration(&serde_json::from_value(json!({ "status": "setup" })).unwrap()), None);
    }

    #[test]
    fn memory_is_told_in_our_words() {
        let told =
            GuestMemoryStats { total: Some(9), free: Some(3), available: Some(5), ..Default::default() };
        let expected = MemoryStats {
            available: Some(9),
            unused: Some(3),
            usable: Some(5),
            last_update: None,
            ..MemoryStats::default()
        };
        assert_eq!(as_told(told), expected);
    }
}
