//! Puts what an instance type says into the specification of an instance.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::instancetype::{MemoryInstancetype, VirtualMachineInstancetypeSpec};
use kubevirt_api::quantity::{Amount, QuantityExt, format_of};
use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::domain::DomainSpec;

use super::super::topology::{Layout, Topology};
use super::{Annotations, overlay as put};
use crate::{Path, Problems};

/// How the CPUs of an instance type are laid out.
pub(super) fn layout(
    instancetype: &VirtualMachineInstancetypeSpec,
    topology: &Topology,
    problems: &mut Problems,
) -> Option<Layout> {
    let cpus = instancetype.cpu.guest;
    let layout = topology.layout(cpus);
    if let (None, Topology::Spread(spread)) = (layout, topology) {
        let message = format!(
            "the preference spreads CPUs as {} with a ratio of {}, which the {cpus} of the instance type cannot be: \
             choose an instance type of another size or another preference",
            spread.across, spread.ratio,
        );
        problems.invalid(&Path::new("instancetype.spec.cpu.guest"), message);
    }
    layout
}

/// What is requested of the node where that is less than the guest's memory.
pub(super) fn memory_request(
    instancetype: &VirtualMachineInstancetypeSpec,
    problems: &mut Problems,
) -> Option<Quantity> {
    let MemoryInstancetype { guest, overcommit_percent, .. } = &instancetype.memory;
    let percent = overcommit_percent.filter(|percent| *percent > 0)?;
    match guest.amount() {
        Ok(amount) => Some(reduced(amount, percent).to_quantity(format_of(guest.0.trim()))),
        Err(error) => {
            let message = format!("{error}, so it cannot be overcommitted");
            problems.invalid(&Path::new("instancetype.spec.memory.guest"), message);
            None
        }
    }
}

/// An amount less this many percent, to the byte as single precision gives it: instances that run since before a
/// change of version have requested just that.
fn reduced(amount: Amount, percent: i64) -> Amount {
    let share = 1.0 - percent as f32 / 100.0;
    Amount::from_int((amount.value() as f32 * share) as i64)
}

/// Puts everything in place.
pub(super) fn overlay(
    instancetype: &VirtualMachineInstancetypeSpec,
    layout: Layout,
    memory_request: Option<Quantity>,
    spec: &mut VirtualMachineInstanceSpec,
    annotations: &mut Annotations,
) {
    if instancetype.node_selector.as_ref().is_some_and(|selector| !selector.is_empty()) {
        spec.node_selector.clone_from(&instancetype.node_selector);
    }
    if instancetype.scheduler_name.as_ref().is_some_and(|name| !name.is_empty()) {
        spec.scheduler_name.clone_from(&instancetype.scheduler_name);
    }
    cpu(instancetype, layout, &mut spec.domain);
    memory(&instancetype.memory, memory_request, &mut spec.domain);
    devices(instancetype, &mut spec.domain);
    for (key, value) in instancetype.annotations.iter().flatten() {
        annotations.get_or_insert_default().insert(key.clone(), value.clone());
    }
}

fn cpu(instancetype: &VirtualMachineInstancetypeSpec, layout: Layout, domain: &mut DomainSpec) {
    let given = &instancetype.cpu;
    let cpu = domain.cpu.get_or_insert_default();
    put(&mut cpu.model, &given.model);
    put(&mut cpu.dedicated_cpu_placement, &given.dedicated_cpu_placement);
    put(&mut cpu.isolate_emulator_thread, &given.isolate_emulator_thread);
    put(&mut cpu.numa, &given.numa);
    put(&mut cpu.realtime, &given.realtime);
    put(&mut cpu.max_sockets, &given.max_sockets);
    let Layout { sockets, cores, threads } = layout;
    (cpu.sockets, cpu.cores, cpu.threads) = (Some(sockets), Some(cores), Some(threads));
}

fn memory(given: &MemoryInstancetype, request: Option<Quantity>, domain: &mut DomainSpec) {
    let memory = domain.memory.get_or_insert_default();
    memory.guest = Some(given.guest.clone());
    put(&mut memory.hugepages, &given.hugepages);
    put(&mut memory.max_guest, &given.max_guest);
    if let Some(request) = request {
        let resources = domain.resources.get_or_insert_default();
        resources.requests.get_or_insert_default().insert("memory".to_owned(), request);
    }
}

fn devices(given: &VirtualMachineInstancetypeSpec, domain: &mut DomainSpec) {
    let pool = given.io_threads.as_ref().and_then(|threads| threads.supplemental_pool_thread_count);
    if pool.is_some() {
        domain.io_threads.get_or_insert_default().supplemental_pool_thread_count = pool;
    }
    put(&mut domain.io_threads_policy, &given.io_threads_policy);
    put(&mut domain.launch_security, &given.launch_security);
    if given.gpus.as_ref().is_some_and(|gpus| !gpus.is_empty()) {
        domain.devices.gpus.clone_from(&given.gpus);
    }
    if given.host_devices.as_ref().is_some_and(|devices| !devices.is_empty()) {
        domain.devices.host_devices.clone_from(&given.host_devices);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use crate::instancetype::apply::apply_instancetype;
    use crate::testing::{assert_fields, patched, read};
    use crate::{Path, Problems};

    /// What becomes of an instance, and of its annotations.
    pub fn applied(instancetype: &Value, spec: &Value, annotations: &Value) -> (Problems, Value, Value) {
        let base = json!({ "cpu": { "guest": 4 }, "memory": { "guest": "2Gi" } });
        let instancetype = read(patched(&base, instancetype));
        let mut spec = read(patched(&json!({ "domain": { "devices": {} } }), spec));
        let mut annotations = read(annotations.clone());
        let path = Path::new("spec.template.spec");
        let problems = apply_instancetype(&path, &instancetype, None, &mut spec, &mut annotations);
        (problems, json!(spec), json!(annotations))
    }

    #[test]
    fn an_instance_takes_what_the_instance_type_gives() {
        let plain = json!({
            "domain": {
                "devices": {},
                "cpu": { "sockets": 4, "cores": 1, "threads": 1 },
                "memory": { "guest": "2Gi" },
            },
        });
        let numa = json!({ "guestMappingPassthrough": {} });
        let gpu = json!([{ "name": "g", "deviceName": "example.com/gpu" }]);
        let cases = [
            ("plain", json!({}), json!({})),
            (
                "node selector",
                json!({ "nodeSelector": { "a": "b" } }),
                json!({ "nodeSelector": { "a": "b" } }),
            ),
            ("no node selector", json!({ "nodeSelector": {} }), json!({})),
            ("scheduler", json!({ "schedulerName": "own" }), json!({ "schedulerName": "own" })),
            (
                "model",
                json!({ "cpu": { "model": "Nehalem" } }),
                json!({ "domain": { "cpu": { "model": "Nehalem" } } }),
            ),
            (
                "dedicated",
                json!({ "cpu": { "dedicatedCPUPlacement": true, "isolateEmulatorThread": true } }),
                json!({ "domain": { "cpu": { "dedicatedCpuPlacement": true, "isolateEmulatorThread": true } } }),
            ),
            ("numa", json!({ "cpu": { "numa": numa } }), json!({ "domain": { "cpu": { "numa": numa } } })),
            (
                "realtime",
                json!({ "cpu": { "realtime": { "mask": "0-1" } } }),
                json!({ "domain": { "cpu": { "realtime": { "mask": "0-1" } } } }),
            ),
            (
                "max sockets",
                json!({ "cpu": { "maxSockets": 8 } }),
                json!({ "domain": { "cpu": { "maxSockets": 8 } } }),
            ),
            (
                "memory",
                json!({ "memory": { "hugepages": { "pageSize": "2Mi" }, "maxGuest": "4Gi" } }),
                json!({ "domain": { "memory": { "hugepages": { "pageSize": "2Mi" }, "maxGuest": "4Gi" } } }),
            ),
            (
                "half the memory",
                json!({ "memory": { "overcommitPercent": 50 } }),
                json!({ "domain": { "resources": { "requests": { "memory": "1Gi" } } } }),
            ),
            (
                "a little less memory",
                json!({ "memory": { "overcommitPercent": 15 } }),
                json!({ "domain": { "resources": { "requests": { "memory": "1825361152" } } } }),
            ),
            (
                "less decimal memory",
                json!({ "memory": { "guest": "4G", "overcommitPercent": 50 } }),
                json!({ "domain": { "memory": { "guest": "4G" }, "resources": { "requests": { "memory": "2G" } } } }),
            ),
            ("nothing overcommitted", json!({ "memory": { "overcommitPercent": 0 } }), json!({})),
            (
                "IO threads",
                json!({ "ioThreadsPolicy": "supplementalPool", "ioThreads": { "supplementalPoolThreadCount": 3 } }),
                json!({ "domain": {
                    "ioThreadsPolicy": "supplementalPool", "ioThreads": { "supplementalPoolThreadCount": 3 },
                } }),
            ),
            ("no IO threads", json!({ "ioThreads": {} }), json!({})),
            (
                "security",
                json!({ "launchSecurity": { "sev": {} } }),
                json!({ "domain": { "launchSecurity": { "sev": {} } } }),
            ),
            ("GPU", json!({ "gpus": gpu }), json!({ "domain": { "devices": { "gpus": gpu } } })),
            (
                "host device",
                json!({ "hostDevices": gpu }),
                json!({ "domain": { "devices": { "hostDevices": gpu } } }),
            ),
            ("no devices", json!({ "gpus": [], "hostDevices": [] }), json!({})),
        ];
        for (name, instancetype, expected) in cases {
            let (problems, spec, _) = applied(&instancetype, &json!({}), &Value::Null);
            assert_fields(name, &problems, &[]);
            assert_eq!(spec, patched(&plain, &expected), "{name}");
        }
    }

    #[test]
    fn annotations_may_repeat_but_not_contradict_those_of_the_instance_type() {
        let given = json!({ "annotations": { "a": "1", "example.com/b": "2" } });
        let (problems, _, annotations) = applied(&given, &json!({}), &Value::Null);
        assert_fields("none", &problems, &[]);
        assert_eq!(annotations, given["annotations"]);
        let (problems, _, annotations) = applied(&given, &json!({}), &json!({ "a": "1", "c": "3" }));
        assert_fields("same", &problems, &[]);
        assert_eq!(annotations, json!({ "a": "1", "example.com/b": "2", "c": "3" }));
        let (problems, _, annotations) =
            applied(&given, &json!({}), &json!({ "a": "2", "example.com/b": "3" }));
        assert_fields("other", &problems, &["annotations.a", "annotations.example.com/b"]);
        assert_eq!(annotations, json!({ "a": "2", "example.com/b": "3" }));
    }

    #[test]
    fn memory_that_is_no_quantity_is_only_a_problem_where_it_is_counted() {
        let broken = |percent: u32| json!({ "memory": { "guest": "much", "overcommitPercent": percent } });
        assert_fields("stored", &applied(&broken(0), &json!({}), &Value::Null).0, &[]);
        let problems = applied(&broken(10), &json!({}), &Value::Null).0;
        assert_fields("overcommitted", &problems, &["instancetype.spec.memory.guest"]);
    }
}
