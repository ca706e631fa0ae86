//! CPU topology, features, NUMA and realtime, apart from pinning.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::cpu::Cpu;

use crate::{Path, Problems};

/// How a CPU feature can be asked for; no word means the default.
const POLICIES: [&str; 6] = ["", "force", "require", "optional", "disable", "forbid"];

/// Everything that is wrong.
pub(super) fn check(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let Some(cpu) = &spec.domain.cpu else { return };
    let field = path.at("domain.cpu");
    let dedicated = cpu.dedicated_cpu_placement.unwrap_or_default();
    let mirrors_numa = cpu.numa.as_ref().is_some_and(|numa| numa.guest_mapping_passthrough.is_some());

    check_topology(&field, cpu, problems);
    for (index, feature) in cpu.features.iter().flatten().enumerate() {
        let policy = feature.policy.as_deref().unwrap_or_default();
        if !POLICIES.contains(&policy) {
            let message = format!(
                "CPU feature {} cannot have the policy {policy:?}; use force, require, optional, disable or forbid",
                feature.name
            );
            problems.not_supported(&field.at("features").index(index).at("policy"), message);
        }
    }
    if cpu.isolate_emulator_thread.unwrap_or_default() && !dedicated {
        let message =
            "an emulator thread is isolated only with dedicated CPUs; set dedicatedCpuPlacement too";
        problems.invalid(&field.at("isolateEmulatorThread"), message);
    }
    if mirrors_numa {
        let hugepages = spec.domain.memory.as_ref().is_some_and(|memory| memory.hugepages.is_some());
        let numa = field.at("numa.guestMappingPassthrough");
        if !dedicated {
            problems.invalid(&numa, "mirroring NUMA nodes needs dedicatedCpuPlacement");
        }
        if !hugepages {
            problems.invalid(&numa, "mirroring NUMA nodes needs hugepages; set domain.memory.hugepages");
        }
    }
    if cpu.realtime.is_some() {
        if !dedicated {
            problems.required(&field.at("dedicatedCpuPlacement"), "realtime needs dedicated CPUs");
        }
        if !mirrors_numa {
            let message = "realtime needs the host's NUMA nodes mirrored in the guest";
            problems.required(&field.at("numa.guestMappingPassthrough"), message);
        }
    }
}

fn check_topology(field: &Path<'_>, cpu: &Cpu, problems: &mut Problems) {
    for (name, count) in [
        ("cores", cpu.cores),
        ("sockets", cpu.sockets),
        ("threads", cpu.threads),
        ("maxSockets", cpu.max_sockets),
    ] {
        if let Some(count) = count.filter(|count| *count < 0) {
            problems.invalid(&field.at(name), format!("there cannot be {count} of them"));
        }
    }
    let sockets = cpu.sockets.unwrap_or_default();
    if let Some(most) = cpu.max_sockets.filter(|most| *most > 0 && sockets > *most) {
        let message = format!("{sockets} sockets are more than maxSockets, {most}");
        problems.invalid(&field.at("sockets"), message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{reasons, run_domain};
    use crate::Reason;
    use crate::testing::World;

    #[test]
    fn topology_and_features() {
        let policy = |policy: &str| json!({ "cpu": { "features": [{ "name": "vmx", "policy": policy }] } });
        run_domain(
            &World::default(),
            &[
                (
                    "topology",
                    json!({ "cpu": { "cores": 2, "sockets": 2, "threads": 2, "maxSockets": 8 } }),
                    &[],
                ),
                ("negative cores", json!({ "cpu": { "cores": -1 } }), &["spec.domain.cpu.cores"]),
                ("negative sockets", json!({ "cpu": { "sockets": -1 } }), &["spec.domain.cpu.sockets"]),
                ("negative threads", json!({ "cpu": { "threads": -1 } }), &["spec.domain.cpu.threads"]),
                (
                    "negative maxSockets",
                    json!({ "cpu": { "maxSockets": -1 } }),
                    &["spec.domain.cpu.maxSockets"],
                ),
                (
                    "too many sockets",
                    json!({ "cpu": { "sockets": 3, "maxSockets": 2 } }),
                    &["spec.domain.cpu.sockets"],
                ),
                ("as many sockets", json!({ "cpu": { "sockets": 2, "maxSockets": 2 } }), &[]),
                ("no most sockets", json!({ "cpu": { "sockets": 2, "maxSockets": 0 } }), &[]),
                ("no policy", json!({ "cpu": { "features": [{ "name": "vmx" }] } }), &[]),
                ("empty policy", policy(""), &[]),
                ("force", policy("force"), &[]),
                ("require", policy("require"), &[]),
                ("optional", policy("optional"), &[]),
                ("disable", policy("disable"), &[]),
                ("forbid", policy("forbid"), &[]),
                ("unknown policy", policy("maybe"), &["spec.domain.cpu.features[0].policy"]),
                (
                    "second feature",
                    json!({ "cpu": { "features": [{ "name": "a" }, { "name": "b", "policy": "x" }] } }),
                    &["spec.domain.cpu.features[1].policy"],
                ),
                (
                    "isolated thread alone",
                    json!({ "cpu": { "isolateEmulatorThread": true } }),
                    &["spec.domain.cpu.isolateEmulatorThread"],
                ),
                ("isolated thread off", json!({ "cpu": { "isolateEmulatorThread": false } }), &[]),
                (
                    "isolated thread",
                    json!({ "cpu": { "cores": 1, "isolateEmulatorThread": true, "dedicatedCpuPlacement": true } }),
                    &[],
                ),
            ],
        );
        let policy = json!({ "domain": policy("maybe") });
        assert_eq!(reasons(&World::default(), &policy), [Reason::NotSupported]);
    }

    #[test]
    fn numa_and_realtime_need_pinned_cpus() {
        let numa = json!({ "guestMappingPassthrough": {} });
        let at = "spec.domain.cpu.numa.guestMappingPassthrough";
        let pages = json!({ "hugepages": { "pageSize": "2Mi" } });
        run_domain(
            &World::default(),
            &[
                (
                    "numa",
                    json!({ "cpu": { "cores": 1, "dedicatedCpuPlacement": true, "numa": numa }, "memory": pages }),
                    &[],
                ),
                (
                    "numa without pages",
                    json!({ "cpu": { "cores": 1, "dedicatedCpuPlacement": true, "numa": numa } }),
                    &[at],
                ),
                ("numa without pinning", json!({ "cpu": { "numa": numa }, "memory": pages }), &[at]),
                ("numa alone", json!({ "cpu": { "numa": numa } }), &[at, at]),
                ("no numa", json!({ "cpu": { "numa": {} } }), &[]),
                (
                    "realtime",
                    json!({ "cpu": { "cores": 1, "dedicatedCpuPlacement": true, "numa": numa, "realtime": {} }, "memory": pages }),
                    &[],
                ),
                (
                    "realtime alone",
                    json!({ "cpu": { "realtime": {} } }),
                    &["spec.domain.cpu.dedicatedCpuPlacement", at],
                ),
                (
                    "realtime without numa",
                    json!({ "cpu": { "cores": 1, "dedicatedCpuPlacement": true, "realtime": {} } }),
                    &[at],
                ),
            ],
        );
        let realtime = json!({ "domain": { "cpu": { "realtime": {} } } });
        assert_eq!(reasons(&World::default(), &realtime), [Reason::Required, Reason::Required]);
    }
}
