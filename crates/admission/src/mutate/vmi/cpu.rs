//! The CPUs of the guest: how many, of which model, and how many more can be plugged in.

use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::cpu::Cpu;

use super::architecture;
use super::resources::{limit, request};
use crate::ClusterConfig;

/// The most virtual CPUs that room is left for by itself.
const MOST_VCPUS: i64 = 512;
/// The model of guests that name none.
const USUAL_MODEL: &str = "host-model";
/// The same where the host cannot be described by a model.
const ARM64_MODEL: &str = "host-passthrough";

/// Makes sockets of the CPU limit or request where the topology is left open, as sockets cost the guest least.
pub fn set_topology(spec: &mut VirtualMachineInstanceSpec) {
    let cpu = spec.domain.cpu.get_or_insert_default();
    if [cpu.sockets, cpu.cores, cpu.threads].into_iter().any(|count| count.unwrap_or(0) != 0) {
        return;
    }
    let resources = spec.domain.resources.as_ref();
    let sockets = match limit(resources, "cpu").or_else(|| request(resources, "cpu")).map(QuantityExt::amount)
    {
        Some(Ok(amount)) => i32::try_from(amount.value().max(0)).unwrap_or(i32::MAX),
        _ => 1,
    };
    cpu.sockets = nonzero(sockets);
    cpu.cores = Some(1);
    cpu.threads = Some(1);
}

/// Names the model of the cluster, or the usual one, where none is named.
pub fn set_model(config: &ClusterConfig, spec: &mut VirtualMachineInstanceSpec) {
    let usual =
        if architecture::is_arm64(spec) { ARM64_MODEL } else { config.cpu_model().unwrap_or(USUAL_MODEL) };
    let cpu = spec.domain.cpu.get_or_insert_default();
    if cpu.model.as_deref().unwrap_or_default().is_empty() {
        cpu.model = Some(usual.to_owned());
    }
}

/// Leaves room for more sockets: what the cluster allows, or a multiple of those that the guest has.
pub fn set_hotplug_room(config: &ClusterConfig, spec: &mut VirtualMachineInstanceSpec) {
    let cpu = spec.domain.cpu.get_or_insert_default();
    if cpu.max_sockets.unwrap_or(0) != 0 {
        return;
    }
    let sockets = cpu.sockets.unwrap_or(0);
    cpu.max_sockets = match config.max_cpu_sockets().filter(|most| *most > 0) {
        Some(most) => Some(most.max(sockets)),
        None => nonzero(sockets_to_grow_to(cpu, sockets, config.max_hotplug_ratio().max(0))),
    };
}

fn sockets_to_grow_to(cpu: &Cpu, sockets: i32, ratio: i32) -> i32 {
    let per_socket = i64::from(cpu.cores.unwrap_or(0)) * i64::from(cpu.threads.unwrap_or(0));
    if sockets < 0 || per_socket < 0 {
        return 0;
    }
    let most = i64::from(sockets) * i64::from(ratio);
    let fitting = if most.saturating_mul(per_socket) > MOST_VCPUS {
        (MOST_VCPUS / per_socket.max(1)).max(i64::from(sockets))
    } else {
        most
    };
    i32::try_from(fitting).unwrap_or(i32::MAX)
}

/// A count, which is left out where it is zero.
pub fn nonzero(count: i32) -> Option<i32> {
    Some(count).filter(|count| *count != 0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, patched, read};

    fn spec(domain: &Value) -> VirtualMachineInstanceSpec {
        read(json!({ "domain": patched(&json!({ "devices": {} }), domain) }))
    }

    #[test]
    fn the_topology_comes_from_what_is_asked_of_the_node() {
        let resources =
            |limit: Value, request: Value| json!({ "resources": { "limits": limit, "requests": request } });
        let cases = [
            (json!({}), [Some(1), Some(1), Some(1)]),
            (json!({ "cpu": { "model": "Skylake" } }), [Some(1), Some(1), Some(1)]),
            (json!({ "cpu": { "cores": 2 } }), [None, Some(2), None]),
            (json!({ "cpu": { "threads": 2 } }), [None, None, Some(2)]),
            (json!({ "cpu": { "sockets": 3 } }), [Some(3), None, None]),
            (json!({ "cpu": { "sockets": 0, "cores": 0, "threads": 0 } }), [Some(1), Some(1), Some(1)]),
            (resources(json!({ "cpu": "4" }), json!({ "cpu": "2" })), [Some(4), Some(1), Some(1)]),
            (resources(json!({}), json!({ "cpu": "2" })), [Some(2), Some(1), Some(1)]),
            (resources(json!({}), json!({ "cpu": "2200m" })), [Some(3), Some(1), Some(1)]),
            (resources(json!({}), json!({ "cpu": "100m" })), [Some(1), Some(1), Some(1)]),
            (resources(json!({ "cpu": "0" }), json!({})), [None, Some(1), Some(1)]),
            (resources(json!({ "cpu": "-3" }), json!({})), [None, Some(1), Some(1)]),
            (resources(json!({ "cpu": "many" }), json!({})), [Some(1), Some(1), Some(1)]),
            (resources(json!({ "cpu": "8Ei" }), json!({})), [Some(i32::MAX), Some(1), Some(1)]),
        ];
        for (domain, expected) in cases {
            let mut spec = spec(&domain);
            set_topology(&mut spec);
            let cpu = spec.domain.cpu.unwrap();
            assert_eq!([cpu.sockets, cpu.cores, cpu.threads], expected, "{domain}");
        }
    }

    #[test]
    fn the_model_is_the_users_the_clusters_or_the_usual_one() {
        let cases = [
            ("amd64", json!({}), json!({}), "host-model"),
            ("s390x", json!({}), json!({}), "host-model"),
            ("arm64", json!({}), json!({}), "host-passthrough"),
            ("amd64", json!({ "cpuModel": "Skylake" }), json!({}), "Skylake"),
            ("arm64", json!({ "cpuModel": "Skylake" }), json!({}), "host-passthrough"),
            ("amd64", json!({ "cpuModel": "Skylake" }), json!({ "model": "Haswell" }), "Haswell"),
            ("amd64", json!({}), json!({ "model": "" }), "host-model"),
        ];
        for (architecture, configuration, cpu, expected) in cases {
            let world = World::default().with_configuration(configuration);
            let mut spec = spec(&json!({ "cpu": cpu }));
            spec.architecture = Some(architecture.into());
            set_model(&world.config, &mut spec);
            assert_eq!(spec.domain.cpu.unwrap().model.as_deref(), Some(expected), "{architecture} {cpu}");
        }
    }

    #[test]
    fn there_is_room_for_more_sockets_within_limits() {
        let cpu = |sockets: i32, cores: i32, threads: i32| json!({ "sockets": sockets, "cores": cores, "threads": threads });
        let cases = [
            (json!({}), cpu(1, 1, 1), Some(4)),
            (json!({}), cpu(2, 2, 1), Some(8)),
            (json!({}), json!({ "cores": 2 }), None),
            (json!({}), json!({ "sockets": 2 }), Some(8)),
            (json!({}), json!({ "sockets": 2, "maxSockets": 3 }), Some(3)),
            (json!({}), cpu(200, 1, 1), Some(512)),
            (json!({}), cpu(600, 1, 1), Some(600)),
            (json!({}), cpu(10, 20, 2), Some(12)),
            (json!({}), cpu(1, 1000, 1), Some(1)),
            (json!({}), cpu(i32::MAX, i32::MAX, i32::MAX), Some(i32::MAX)),
            (json!({}), cpu(-1, 1, 1), None),
            (json!({}), cpu(1, -1, 1), None),
            (json!({ "maxHotplugRatio": 2 }), cpu(3, 1, 1), Some(6)),
            (json!({ "maxCpuSockets": 10 }), cpu(3, 1, 1), Some(10)),
            (json!({ "maxCpuSockets": 10 }), cpu(30, 1, 1), Some(30)),
            (json!({ "maxCpuSockets": 0 }), cpu(3, 1, 1), Some(12)),
        ];
        for (live, cpu, expected) in cases {
            let world = World::default().with_configuration(json!({ "liveUpdateConfiguration": live }));
            let mut spec = spec(&json!({ "cpu": cpu }));
            set_hotplug_room(&world.config, &mut spec);
            assert_eq!(spec.domain.cpu.unwrap().max_sockets, expected, "{live} {cpu}");
        }
    }
}
