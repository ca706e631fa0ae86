//! The fields that both the instance type and the VM set.

use std::collections::BTreeMap;

use kubevirt_api::instancetype::VirtualMachineInstancetypeSpec;
use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::cpu::Cpu;
use kubevirt_api::vmi::disks::DiskIoThreads;
use kubevirt_api::vmi::domain::DomainSpec;
use kubevirt_api::vmi::memory::Memory;

use crate::mutate::vmi::resources::{limit, request};
use crate::{Path, Problems};

/// Every conflict, at the VM's field.
pub(super) fn find(
    path: &Path<'_>,
    instancetype: &VirtualMachineInstancetypeSpec,
    spec: &VirtualMachineInstanceSpec,
    annotations: Option<&BTreeMap<String, String>>,
) -> Problems {
    let mut problems = Problems::default();
    let mut report = |conflicts: &[(&str, bool)]| {
        for (field, _) in conflicts.iter().filter(|(_, conflicts)| *conflicts) {
            let field = path.at(field);
            problems.invalid(&field, format!("VM field(s) {field} conflicts with selected instance type"));
        }
    };
    report(&placement(instancetype, spec));
    report(&cpu(instancetype, &spec.domain));
    report(&memory(instancetype, &spec.domain));
    report(&devices(instancetype, &spec.domain));

    let own = |key: &String| annotations.and_then(|annotations| annotations.get(key));
    for (key, value) in instancetype.annotations.iter().flatten() {
        if let Some(own) = own(key).filter(|own| *own != value) {
            let message = format!("the instance type sets this annotation to {value:?}, not to {own:?}");
            problems.invalid(&Path::new("annotations").at(key), message);
        }
    }
    problems
}

fn placement(
    instancetype: &VirtualMachineInstancetypeSpec,
    spec: &VirtualMachineInstanceSpec,
) -> [(&'static str, bool); 2] {
    let selects =
        |selector: &Option<BTreeMap<String, String>>| selector.as_ref().is_some_and(|s| !s.is_empty());
    [
        ("nodeSelector", selects(&instancetype.node_selector) && selects(&spec.node_selector)),
        ("schedulerName", says(&instancetype.scheduler_name) && says(&spec.scheduler_name)),
    ]
}

fn cpu(instancetype: &VirtualMachineInstancetypeSpec, domain: &DomainSpec) -> [(&'static str, bool); 10] {
    let given = &instancetype.cpu;
    let none = Cpu::default();
    let own = domain.cpu.as_ref().unwrap_or(&none);
    let counts = |number: Option<i32>| number.is_some_and(|number| number != 0);
    let both = |own: Option<bool>, given: Option<bool>| own == Some(true) && given.is_some();
    [
        ("domain.resources.requests.cpu", requests(domain, "cpu")),
        ("domain.resources.limits.cpu", limits(domain, "cpu")),
        ("domain.cpu.sockets", counts(own.sockets)),
        ("domain.cpu.cores", counts(own.cores)),
        ("domain.cpu.threads", counts(own.threads)),
        ("domain.cpu.model", says(&own.model) && given.model.is_some()),
        (
            "domain.cpu.dedicatedCPUPlacement",
            both(own.dedicated_cpu_placement, given.dedicated_cpu_placement),
        ),
        (
            "domain.cpu.isolateEmulatorThread",
            both(own.isolate_emulator_thread, given.isolate_emulator_thread),
        ),
        ("domain.cpu.numa", own.numa.is_some() && given.numa.is_some()),
        ("domain.cpu.realtime", own.realtime.is_some() && given.realtime.is_some()),
    ]
}

fn memory(instancetype: &VirtualMachineInstancetypeSpec, domain: &DomainSpec) -> [(&'static str, bool); 5] {
    let given = &instancetype.memory;
    let none = Memory::default();
    let own = domain.memory.as_ref().unwrap_or(&none);
    [
        ("domain.memory.guest", own.guest.is_some()),
        ("domain.memory.hugepages", own.hugepages.is_some() && given.hugepages.is_some()),
        ("domain.memory.maxGuest", own.max_guest.is_some() && given.max_guest.is_some()),
        ("domain.resources.requests.memory", requests(domain, "memory")),
        ("domain.resources.limits.memory", limits(domain, "memory")),
    ]
}

fn devices(instancetype: &VirtualMachineInstancetypeSpec, domain: &DomainSpec) -> [(&'static str, bool); 5] {
    let given = instancetype;
    let pool = |threads: &Option<DiskIoThreads>| {
        threads.as_ref().is_some_and(|threads| threads.supplemental_pool_thread_count.is_some())
    };
    [
        ("domain.ioThreads.supplementalPoolThreadCount", pool(&domain.io_threads) && pool(&given.io_threads)),
        ("domain.ioThreadsPolicy", domain.io_threads_policy.is_some() && given.io_threads_policy.is_some()),
        ("domain.launchSecurity", domain.launch_security.is_some() && given.launch_security.is_some()),
        ("domain.devices.gpus", lists(&domain.devices.gpus) && lists(&given.gpus)),
        ("domain.devices.hostDevices", lists(&domain.devices.host_devices) && lists(&given.host_devices)),
    ]
}

fn says(text: &Option<String>) -> bool {
    text.as_ref().is_some_and(|text| !text.is_empty())
}

fn lists<T>(list: &Option<Vec<T>>) -> bool {
    list.as_ref().is_some_and(|list| !list.is_empty())
}

fn requests(domain: &DomainSpec, resource: &str) -> bool {
    request(domain.resources.as_ref(), resource).is_some()
}

fn limits(domain: &DomainSpec, resource: &str) -> bool {
    limit(domain.resources.as_ref(), resource).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::instancetype::tests::applied;
    use crate::testing::{assert_fields, patched};

    #[test]
    fn a_vm_must_leave_open_what_the_instance_type_decides() {
        let domain = |domain: Value| json!({ "domain": domain });
        let gpu = json!([{ "name": "g", "deviceName": "example.com/gpu" }]);
        let cases = [
            ("sockets", json!({}), domain(json!({ "cpu": { "sockets": 1 } })), vec!["domain.cpu.sockets"]),
            ("cores", json!({}), domain(json!({ "cpu": { "cores": 1 } })), vec!["domain.cpu.cores"]),
            ("threads", json!({}), domain(json!({ "cpu": { "threads": 1 } })), vec!["domain.cpu.threads"]),
            (
                "zero counts",
                json!({}),
                domain(json!({ "cpu": { "sockets": 0, "cores": 0, "threads": 0 } })),
                vec![],
            ),
            ("only the VM's model", json!({}), domain(json!({ "cpu": { "model": "a" } })), vec![]),
            (
                "model",
                json!({ "cpu": { "model": "a" } }),
                domain(json!({ "cpu": { "model": "a" } })),
                vec!["domain.cpu.model"],
            ),
            (
                "empty model",
                json!({ "cpu": { "model": "a" } }),
                domain(json!({ "cpu": { "model": "" } })),
                vec![],
            ),
            (
                "dedicated",
                json!({ "cpu": { "dedicatedCPUPlacement": false } }),
                domain(json!({ "cpu": { "dedicatedCpuPlacement": true } })),
                vec!["domain.cpu.dedicatedCPUPlacement"],
            ),
            (
                "not dedicated",
                json!({ "cpu": { "dedicatedCPUPlacement": true } }),
                domain(json!({ "cpu": { "dedicatedCpuPlacement": false } })),
                vec![],
            ),
            (
                "isolated",
                json!({ "cpu": { "isolateEmulatorThread": true } }),
                domain(json!({ "cpu": { "isolateEmulatorThread": true } })),
                vec!["domain.cpu.isolateEmulatorThread"],
            ),
            (
                "numa",
                json!({ "cpu": { "numa": {} } }),
                domain(json!({ "cpu": { "numa": {} } })),
                vec!["domain.cpu.numa"],
            ),
            (
                "realtime",
                json!({ "cpu": { "realtime": {} } }),
                domain(json!({ "cpu": { "realtime": {} } })),
                vec!["domain.cpu.realtime"],
            ),
            (
                "CPU request",
                json!({}),
                domain(json!({ "resources": { "requests": { "cpu": "1" } } })),
                vec!["domain.resources.requests.cpu"],
            ),
            (
                "CPU limit",
                json!({}),
                domain(json!({ "resources": { "limits": { "cpu": "1" } } })),
                vec!["domain.resources.limits.cpu"],
            ),
            (
                "memory request",
                json!({}),
                domain(json!({ "resources": { "requests": { "memory": "1Gi" } } })),
                vec!["domain.resources.requests.memory"],
            ),
            (
                "memory limit",
                json!({}),
                domain(json!({ "resources": { "limits": { "memory": "1Gi" } } })),
                vec!["domain.resources.limits.memory"],
            ),
            (
                "other request",
                json!({}),
                domain(json!({ "resources": { "requests": { "example.com/x": "1" } } })),
                vec![],
            ),
            (
                "guest memory",
                json!({}),
                domain(json!({ "memory": { "guest": "1Gi" } })),
                vec!["domain.memory.guest"],
            ),
            (
                "hugepages",
                json!({ "memory": { "hugepages": {} } }),
                domain(json!({ "memory": { "hugepages": {} } })),
                vec!["domain.memory.hugepages"],
            ),
            ("only the VM's hugepages", json!({}), domain(json!({ "memory": { "hugepages": {} } })), vec![]),
            (
                "most memory",
                json!({ "memory": { "maxGuest": "8Gi" } }),
                domain(json!({ "memory": { "maxGuest": "8Gi" } })),
                vec!["domain.memory.maxGuest"],
            ),
            (
                "node selector",
                json!({ "nodeSelector": { "a": "b" } }),
                json!({ "nodeSelector": { "a": "b" } }),
                vec!["nodeSelector"],
            ),
            ("only the VM's selector", json!({}), json!({ "nodeSelector": { "a": "b" } }), vec![]),
            (
                "scheduler",
                json!({ "schedulerName": "a" }),
                json!({ "schedulerName": "b" }),
                vec!["schedulerName"],
            ),
            (
                "IO threads",
                json!({ "ioThreads": { "supplementalPoolThreadCount": 1 } }),
                domain(json!({ "ioThreads": { "supplementalPoolThreadCount": 1 } })),
                vec!["domain.ioThreads.supplementalPoolThreadCount"],
            ),
            (
                "IO policy",
                json!({ "ioThreadsPolicy": "auto" }),
                domain(json!({ "ioThreadsPolicy": "shared" })),
                vec!["domain.ioThreadsPolicy"],
            ),
            (
                "security",
                json!({ "launchSecurity": {} }),
                domain(json!({ "launchSecurity": {} })),
                vec!["domain.launchSecurity"],
            ),
            (
                "GPUs",
                json!({ "gpus": gpu }),
                domain(json!({ "devices": { "gpus": gpu } })),
                vec!["domain.devices.gpus"],
            ),
            ("only the VM's GPUs", json!({}), domain(json!({ "devices": { "gpus": gpu } })), vec![]),
            (
                "host devices",
                json!({ "hostDevices": gpu }),
                domain(json!({ "devices": { "hostDevices": gpu } })),
                vec!["domain.devices.hostDevices"],
            ),
            (
                "several",
                json!({}),
                domain(json!({ "cpu": { "cores": 2 }, "memory": { "guest": "1Gi" } })),
                vec!["domain.cpu.cores", "domain.memory.guest"],
            ),
        ];
        for (name, instancetype, spec, expected) in cases {
            let expected: Vec<String> =
                expected.iter().map(|end| format!("spec.template.spec.{end}")).collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            let (problems, after, _) = applied(&instancetype, &spec, &Value::Null);
            assert_fields(name, &problems, &expected);
            let unchanged = after == patched(&json!({ "domain": { "devices": {} } }), &spec);
            assert_eq!(unchanged, !expected.is_empty(), "{name}");
        }
    }
}
