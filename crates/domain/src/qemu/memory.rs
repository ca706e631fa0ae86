//! Guest memory: its objects, NUMA nodes and room to grow.

use serde_json::json;

use super::args::{Args, Object, modern};
use super::names;
use crate::domain::Domain;
use crate::domain::memory::Memory;

/// Slots that must be there for memory to grow at all.
const SLOTS: u32 = 16;

pub(super) fn add(domain: &Domain, args: &mut Args) {
    let memory = &domain.memory;
    let kib = |bytes: u64| format!("{}k", bytes / 1024);
    let mut size = format!("size={}", kib(memory.size));
    if let Some(hotplug) = &memory.hotplug {
        size.push_str(&format!(",slots={SLOTS},maxmem={}", kib(hotplug.max)));
    }
    args.option("-m", size);
    args.option("-overcommit", if memory.locked { "mem-lock=on" } else { "mem-lock=off" });
    for object in memory.objects() {
        let node = object.host_node.map(|node| json!([node]));
        let backend = backend(memory, &object.id, object.size, memory.backing.preallocated);
        let policy = node.as_ref().map(|_| "bind");
        args.object("-object", &backend.maybe("host-nodes", node).maybe("policy", policy));
    }
    for (index, node) in memory.nodes.iter().enumerate() {
        let cpus: String = node.cpus.iter().map(|cpu| format!(",cpus={cpu}")).collect();
        args.option("-numa", format!("node,nodeid={index}{cpus},memdev=ram{index}"));
    }
    distances(memory, args);
    if let Some(hotplug) = &memory.hotplug {
        let backend = backend(memory, "ramgrow", hotplug.size, false).with("reserve", false);
        args.object("-object", &backend);
        let device = modern(domain, "virtio-mem", names::MEMORY)
            .at(hotplug.address)
            .with("memdev", "ramgrow")
            .with("block-size", hotplug.block)
            .with("requested-size", hotplug.requested)
            .on("prealloc", memory.backing.preallocated);
        args.device(&device);
    }
}

fn backend(memory: &Memory, id: &str, size: u64, preallocated: bool) -> Object {
    let backing = &memory.backing;
    let kind = if backing.memfd { "memory-backend-memfd" } else { "memory-backend-ram" };
    let object = Object::qom(kind, id).with("size", size).on("prealloc", preallocated);
    if !backing.memfd {
        return object;
    }
    object
        .on("hugetlb", backing.huge_page.is_some())
        .maybe("hugetlbsize", backing.huge_page)
        .with("share", backing.shared)
}

/// QEMU takes distances only if all are told and make sense.
fn distances(memory: &Memory, args: &mut Args) {
    let (nodes, count) = (&memory.nodes, memory.nodes.len());
    let valid = |(from, distances): (usize, &Vec<u32>)| {
        distances.len() == count
            && distances
                .iter()
                .enumerate()
                .all(|(to, value)| if from == to { *value == 10 } else { (11..=254).contains(value) })
    };
    if count < 2 || !nodes.iter().map(|node| &node.distances).enumerate().all(valid) {
        return;
    }
    for (from, node) in nodes.iter().enumerate() {
        for (to, value) in node.distances.iter().enumerate() {
            args.option("-numa", format!("dist,src={from},dst={to},val={value}"));
        }
    }
}
