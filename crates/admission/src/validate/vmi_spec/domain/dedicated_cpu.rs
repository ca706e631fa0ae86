//! Dedicated CPUs: what must be whole, equal and given so that each virtual CPU gets a host CPU of its own.

use kubevirt_api::quantity::{Amount, QuantityExt};
use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::cpu::Cpu;
use kubevirt_api::vmi::domain::DomainSpec;

use super::architecture_of;
use super::resources::{Asked, memory_is_limited, memory_is_requested};
use crate::{Context, Path, Problems};

/// Everything that is wrong.
pub(super) fn check(
    cx: &Context<'_>,
    path: &Path<'_>,
    spec: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    let Some(cpu) = spec.domain.cpu.as_ref().filter(|cpu| cpu.dedicated_cpu_placement == Some(true)) else {
        return;
    };
    let asked = Asked::of(&spec.domain);
    if !is_memory_given(&spec.domain) {
        let message = "dedicated CPUs need memory that is known; set memory.guest, hugepages, or a memory request or limit";
        problems.invalid(&path.at("domain.resources.limits.memory"), message);
    }
    for (field, amount) in [
        ("domain.resources.requests.cpu", asked.cpu_request),
        ("domain.resources.limits.cpu", asked.cpu_limit),
    ] {
        if amount > Amount::zero() && amount.value().saturating_mul(1000) != amount.milli_value() {
            problems.invalid(&path.at(field), "dedicated CPUs are whole; ask for a whole number");
        }
    }
    let (request, limit) = (asked.memory_request.value(), asked.memory_limit.value());
    if request > 0 && limit > 0 && request != limit {
        let message = "with dedicated CPUs the memory request and limit must be equal";
        problems.invalid(&path.at("domain.resources.requests.memory"), message);
    }
    check_count(path, &asked, cpu, problems);

    let threads = cpu.threads.unwrap_or_default();
    if threads > 1 && architecture_of(cx, spec) == "arm64" {
        let message = format!("arm64 has one thread per core, but domain.cpu.threads is {threads}");
        problems.invalid(&path.at("architecture"), message);
    }
    if threads > 2 {
        let message = format!("dedicated CPUs have at most 2 threads, but domain.cpu.threads is {threads}");
        problems.invalid(&path.at("domain.cpu.dedicatedCpuPlacement"), message);
    }
}

/// How many CPUs: given somewhere, and the same wherever it is given.
fn check_count(path: &Path<'_>, asked: &Asked, cpu: &Cpu, problems: &mut Problems) {
    let field = path.at("domain.cpu.dedicatedCpuPlacement");
    let (request, limit) = (asked.cpu_request.value(), asked.cpu_limit.value());
    let guest = virtual_cpus(cpu);
    if request == 0 && limit == 0 && guest == 0 {
        problems.invalid(
            &field,
            "dedicated CPUs must be counted; set domain.cpu.cores or a CPU request or limit",
        );
    }
    if request > 0 && limit > 0 && request != limit {
        problems.invalid(
            &field,
            format!("{request} CPUs are requested but the limit is {limit}; make them equal"),
        );
    }
    if (request > 0 || limit > 0) && guest > 0 && request != guest && limit != guest {
        let message = format!("the guest has {guest} CPUs, which neither the CPU request nor the limit says");
        problems.invalid(&field, message);
    }
}

/// Sockets times cores times threads of those that are given; 0 where none is.
fn virtual_cpus(cpu: &Cpu) -> i64 {
    let given = [cpu.cores, cpu.sockets, cpu.threads].into_iter().flatten().filter(|count| *count != 0);
    given.map(i64::from).reduce(i64::saturating_mul).unwrap_or_default()
}

fn is_memory_given(domain: &DomainSpec) -> bool {
    let guest = || {
        domain.memory.as_ref().is_some_and(|memory| {
            let guest = memory.guest.as_ref().map(QuantityExt::amount);
            memory.hugepages.is_some() || guest.is_some_and(|guest| guest != Ok(Amount::zero()))
        })
    };
    memory_is_limited(domain) || memory_is_requested(domain) || guest()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{run, run_domain};
    use crate::testing::{World, patched};

    fn pinned(cpu: Value, requests: Value, limits: Value) -> Value {
        let cpu = patched(&json!({ "dedicatedCpuPlacement": true }), &cpu);
        json!({ "cpu": cpu, "resources": { "requests": requests, "limits": limits } })
    }

    #[test]
    fn dedicated_cpus_are_whole_equal_and_counted() {
        let at = "spec.domain.cpu.dedicatedCpuPlacement";
        let request = "spec.domain.resources.requests.cpu";
        let limit = "spec.domain.resources.limits.cpu";
        let memory = "spec.domain.resources.requests.memory";
        run_domain(
            &World::default(),
            &[
                ("cores", pinned(json!({ "cores": 2 }), json!({}), json!({})), &[]),
                ("request", pinned(json!({}), json!({ "cpu": "2" }), json!({})), &[]),
                ("limit", pinned(json!({}), json!({}), json!({ "cpu": "2" })), &[]),
                ("whole in thousandths", pinned(json!({}), json!({ "cpu": "2000m" }), json!({})), &[]),
                ("uncounted", pinned(json!({}), json!({}), json!({})), &[at]),
                (
                    "part of a CPU requested",
                    pinned(json!({}), json!({ "cpu": "1500m" }), json!({})),
                    &[request],
                ),
                ("part of a CPU limited", pinned(json!({}), json!({}), json!({ "cpu": "1500m" })), &[limit]),
                ("equal", pinned(json!({}), json!({ "cpu": "2" }), json!({ "cpu": "2" })), &[]),
                ("unequal", pinned(json!({}), json!({ "cpu": "2" }), json!({ "cpu": "3" })), &[at]),
                (
                    "as many cores as requested",
                    pinned(json!({ "cores": 2 }), json!({ "cpu": "2" }), json!({})),
                    &[],
                ),
                (
                    "all of the topology counts",
                    pinned(
                        json!({ "cores": 2, "sockets": 2, "threads": 2 }),
                        json!({ "cpu": "8" }),
                        json!({}),
                    ),
                    &[],
                ),
                (
                    "other number of cores",
                    pinned(json!({ "cores": 3 }), json!({ "cpu": "2" }), json!({})),
                    &[at],
                ),
                ("two threads", pinned(json!({ "threads": 2 }), json!({}), json!({})), &[]),
                ("three threads", pinned(json!({ "threads": 3 }), json!({}), json!({})), &[at]),
                (
                    "equal memory",
                    pinned(json!({ "cores": 1 }), json!({ "memory": "1Gi" }), json!({ "memory": "1Gi" })),
                    &[],
                ),
                (
                    "unequal memory",
                    pinned(json!({ "cores": 1 }), json!({ "memory": "1Gi" }), json!({ "memory": "2Gi" })),
                    &[memory],
                ),
                (
                    "shared CPUs",
                    json!({ "cpu": { "threads": 3 }, "resources": { "requests": { "cpu": "1500m" } } }),
                    &[],
                ),
            ],
        );
    }

    #[test]
    fn dedicated_cpus_need_memory_that_is_known() {
        let limit = "spec.domain.resources.limits.memory";
        let with = |memory: Value| json!({ "cpu": { "cores": 1, "dedicatedCpuPlacement": true }, "resources": null, "memory": memory });
        run_domain(
            &World::default(),
            &[
                ("nothing", with(Value::Null), &[limit]),
                ("zero guest", with(json!({ "guest": "0" })), &[limit]),
                ("no guest", with(json!({ "guest": null })), &[limit]),
                ("guest", with(json!({ "guest": "1Gi" })), &[]),
                ("pages", with(json!({ "guest": null, "hugepages": { "pageSize": "2Mi" } })), &[]),
            ],
        );
    }

    #[test]
    fn numbers_beyond_reason_are_answered() {
        let most = json!({ "cores": i32::MAX, "sockets": i32::MAX, "threads": i32::MAX });
        let at = "spec.domain.cpu.dedicatedCpuPlacement";
        let request = "spec.domain.resources.requests.cpu";
        run_domain(
            &World::default(),
            &[
                ("most", pinned(most.clone(), json!({ "cpu": "9E" }), json!({})), &[at, at]),
                ("more", pinned(most, json!({ "cpu": "1e30" }), json!({})), &[at, request]),
                (
                    "least",
                    pinned(json!({ "cores": i32::MIN, "sockets": i32::MIN }), json!({}), json!({})),
                    &["spec.domain.cpu.cores", "spec.domain.cpu.sockets"],
                ),
            ],
        );
    }

    #[test]
    fn arm64_has_one_thread_per_core() {
        let cpu = json!({ "cpu": { "threads": 2, "dedicatedCpuPlacement": true } });
        run(
            &World::default(),
            &[
                ("arm64", json!({ "architecture": "arm64", "domain": cpu }), &["spec.architecture"]),
                ("s390x", json!({ "architecture": "s390x", "domain": cpu }), &[]),
            ],
        );
        let arm = World::default()
            .with_configuration(json!({ "architectureConfiguration": { "defaultArchitecture": "arm64" } }));
        run(&arm, &[("default", json!({ "architecture": null, "domain": cpu }), &["spec.architecture"])]);
    }
}
