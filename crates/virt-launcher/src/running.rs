//! A machine that has a QEMU.

use std::sync::Mutex;

use kubevirt_domain::{Domain, qemu};
use kubevirt_host::cgroup::Cgroups;
use kubevirt_qemu::{Agent, Machine, Process};
use tokio::process::Child;

use crate::launcher::lock;

/// Name of the channel of the guest agent.
const AGENT_CHANNEL: &str = "org.qemu.guest_agent.0";

/// A QEMU and what belongs to it.
pub struct Running {
    /// The process.
    pub(crate) process: Process,
    /// Its monitor.
    pub(crate) machine: Machine,
    /// What it is now, with all that was added or removed since it started.
    domain: Mutex<Domain>,
    /// The guest agent's channel, if the machine has one: its id in QEMU, and the agent.
    pub(crate) agent: Option<(String, Agent)>,
    /// Processes of this pod that were killed for lack of memory before.
    oom_kills: u64,
    /// Programs that run beside it, and end with it.
    _companions: Vec<Child>,
}

impl Running {
    pub(crate) fn new(process: Process, machine: Machine, domain: Domain, companions: Vec<Child>) -> Self {
        let index = domain.devices.channels.iter().position(|channel| channel.name == AGENT_CHANNEL);
        let agent =
            index.map(|index| (format!("channel{index}"), Agent::at(&domain.devices.channels[index].socket)));
        let oom_kills = oom_kills();
        Self { process, machine, domain: Mutex::new(domain), agent, oom_kills, _companions: companions }
    }

    /// What the machine is now.
    pub(crate) fn domain(&self) -> Domain {
        lock(&self.domain).clone()
    }

    /// The volume behind a block node.
    pub(crate) fn disk_of_node(&self, node: &str) -> Option<String> {
        qemu::disk_of_node(&lock(&self.domain), node).map(|disk| disk.name.clone())
    }

    /// Whether the system killed a process of this pod for lack of memory since the machine started.
    pub(crate) fn lacked_memory(&self) -> bool {
        oom_kills() > self.oom_kills
    }

    /// Notes what the machine is from now on.
    pub(crate) fn set_domain(&self, domain: Domain) {
        *lock(&self.domain) = domain;
    }
}

fn oom_kills() -> u64 {
    let events = Cgroups::of_self().and_then(|groups| groups.memory_events());
    events.ok().flatten().map_or(0, |events| events.oom_kills)
}
