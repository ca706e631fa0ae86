//! A machine that has a QEMU.

use std::sync::Mutex;

use kubevirt_domain::Domain;
use kubevirt_domain::qemu::names;
use kubevirt_host::cgroup::Cgroups;
use kubevirt_host::orphans::Owned;
use kubevirt_qemu::{Agent, Machine, Process};

use crate::follow::Following;
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
    /// The guest's console on its way into our log.
    pub(crate) console: Mutex<Option<Following>>,
    /// Its end is ours to see.
    _owned: Owned,
}

impl Running {
    pub(crate) fn new(process: Process, machine: Machine, domain: Domain, owned: Owned) -> Self {
        let index = domain.devices.channels.iter().position(|channel| channel.name == AGENT_CHANNEL);
        let agent =
            index.map(|index| (format!("channel{index}"), Agent::at(&domain.devices.channels[index].socket)));
        let oom_kills = oom_kills();
        Self {
            process,
            machine,
            domain: Mutex::new(domain),
            agent,
            oom_kills,
            console: Mutex::default(),
            _owned: owned,
        }
    }

    /// What the machine is now.
    pub(crate) fn domain(&self) -> Domain {
        lock(&self.domain).clone()
    }

    /// The volume behind a block node.
    pub(crate) fn disk_of_node(&self, node: &str) -> Option<String> {
        let domain = lock(&self.domain);
        let belongs = |name: &str| {
            [names::node, names::storage_node, names::data_node, names::data_storage_node]
                .iter()
                .any(|of| of(name) == node)
        };
        domain.disks.iter().map(|disk| &disk.name).find(|name| belongs(name)).cloned()
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
