//! Counters of the disks.

use kubevirt_domain::Domain;
use kubevirt_domain::qemu::names;
use kubevirt_launcher_rpc::stats::DiskStats;
use kubevirt_qemu::machine::{BlockNode, BlockStats};

/// The disks of a domain with their counters and sizes.
pub(super) fn all(domain: &Domain, counters: &[BlockStats], nodes: &[BlockNode]) -> Vec<DiskStats> {
    let disks = domain.disks.iter().map(|disk| disk.name.as_str());
    disks.filter_map(|name| one(name, counters, nodes)).collect()
}

fn one(name: &str, counters: &[BlockStats], nodes: &[BlockNode]) -> Option<DiskStats> {
    let device = names::disk(name);
    let counted = counters.iter().find(|one| one.qdev.as_deref().and_then(device_of) == Some(&device))?;
    let node = nodes.iter().find(|one| one.name == names::node(name));
    Some(DiskStats {
        name: name.to_owned(),
        read_requests: counted.reads,
        read_bytes: counted.read_bytes,
        read_time: counted.read_nanoseconds,
        write_requests: counted.writes,
        write_bytes: counted.write_bytes,
        write_time: counted.write_nanoseconds,
        flush_requests: counted.flushes,
        flush_time: counted.flush_nanoseconds,
        capacity: node.map(BlockNode::size),
        allocation: node.and_then(BlockNode::used),
    })
}

/// Id of a device by its path; a virtio disk is inside of its device.
fn device_of(path: &str) -> Option<&str> {
    path.trim_end_matches("/virtio-backend").rsplit('/').next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counters_belong_to_the_disk_of_their_device() {
        let stats = |bytes: u64| {
            json!({
                "rd_bytes": bytes, "wr_bytes": 2, "rd_operations": 3, "wr_operations": 4, "flush_operations": 5,
                "rd_total_time_ns": 6, "wr_total_time_ns": 7, "flush_total_time_ns": 8, "wr_highest_offset": 9,
            })
        };
        let counters: Vec<BlockStats> = serde_json::from_value(json!([
            { "qdev": "/machine/peripheral/disk-root/virtio-backend", "node-name": "v-root", "stats": stats(1) },
            { "qdev": "/machine/peripheral/disk-data", "stats": stats(10) },
            { "stats": stats(100) },
        ]))
        .unwrap();
        let nodes: Vec<BlockNode> = serde_json::from_value(json!([{
            "node-name": "v-root", "drv": "qcow2", "file": "/x", "ro": false,
            "image": { "virtual-size": 1000, "actual-size": 300 },
        }]))
        .unwrap();
        let root = one("root", &counters, &nodes).unwrap();
        assert_eq!(
            (root.read_bytes, root.flush_time, root.capacity, root.allocation),
            (1, 8, Some(1000), Some(300))
        );
        let data = one("data", &counters, &nodes).unwrap();
        assert_eq!((data.read_bytes, data.capacity), (10, None));
        assert_eq!(one("none", &counters, &nodes), None);
    }
}
