//! CPU and memory that are requested where a VMI says nothing, as one that admission never saw.

use kubevirt_admission::ClusterConfig;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};

use super::super::{Surroundings, launcher};

fn requests(domain: Value, ratio: i64) -> Value {
    let config =
        json!({ "spec": { "configuration": { "developerConfiguration": { "cpuAllocationRatio": ratio } } } });
    let config = ClusterConfig::of(&serde_json::from_value(config).unwrap());
    let vmi = json!({ "metadata": { "name": "a", "uid": "u" }, "spec": { "domain": domain } });
    let vmi: VirtualMachineInstance = serde_json::from_value(vmi).unwrap();
    let pod = launcher(&vmi, &Surroundings::new(&config, "image")).unwrap();
    let pod = serde_json::to_value(pod).unwrap();
    pod["spec"]["containers"][0]["resources"]["requests"].clone()
}

#[test]
fn virtual_cpus_share_those_of_the_node() {
    let cases = [
        (json!({ "devices": {} }), 10, json!("100m")),
        (json!({ "devices": {}, "cpu": {} }), 10, Value::Null),
        (json!({ "devices": {}, "cpu": { "cores": 2, "threads": 2, "sockets": 4 } }), 10, json!("1600m")),
        (json!({ "devices": {}, "cpu": { "cores": 2 } }), 1, json!("2")),
        (json!({ "devices": {}, "cpu": { "cores": 1 } }), 3, json!("334m")),
        (
            json!({ "devices": {}, "cpu": { "cores": 1 }, "ioThreads": { "supplementalPoolThreadCount": 3 } }),
            10,
            json!("400m"),
        ),
    ];
    for (domain, ratio, expected) in cases {
        assert_eq!(requests(domain.clone(), ratio)["cpu"], expected, "{domain}");
    }
}

#[test]
fn memory_follows_the_guest() {
    let memory = |domain: Value| requests(domain, 10)["memory"].clone();
    // 60 MiB are beside the guest, and its page tables; 48 more where there is a limit.
    assert_eq!(memory(json!({ "devices": {}, "memory": { "guest": "128Mi" } })), "189Mi");
    assert_eq!(memory(json!({ "devices": {}, "resources": { "limits": { "memory": "128Mi" } } })), "237Mi");
    assert_eq!(memory(json!({ "devices": {}, "memory": { "hugepages": { "pageSize": "2Mi" } } })), "60Mi");
}
