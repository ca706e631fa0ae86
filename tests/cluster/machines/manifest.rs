//! Manifests of small machines, for tests to change.

use serde_json::{Value, json};

use super::key::key;

/// What an instance runs: the test guest from a container disk, with the pod network and a key for ssh.
pub fn guest(name: &str) -> anyhow::Result<Value> {
    let image = &test_kit::system_images()?.guest.reference;
    Ok(json!({
        "terminationGracePeriodSeconds": 30,
        "domain": {
            "memory": {"guest": "192Mi"},
            "devices": {
                "disks": [
                    {"name": "root", "disk": {"bus": "virtio"}},
                    {"name": "cloud-init", "disk": {"bus": "virtio"}},
                ],
                "interfaces": [{"name": "default", "masquerade": {}}],
            },
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [
            {"name": "root", "containerDisk": {"image": image, "imagePullPolicy": "IfNotPresent"}},
            {"name": "cloud-init", "cloudInitNoCloud": {"userData": user_data(name)?}},
        ],
    }))
}

/// What an instance runs that needs no guest: nothing is on its disk, so it costs next to nothing.
pub fn idle() -> Value {
    json!({
        "terminationGracePeriodSeconds": 0,
        "domain": {"memory": {"guest": "64Mi"}, "devices": {}},
    })
}

/// Lets tests in by ssh, as root, to whom cloud-init gives no keys by itself.
pub fn user_data(name: &str) -> anyhow::Result<String> {
    let key = &key()?.public;
    let commands = [
        "mkdir -p -m 700 /root/.ssh".to_owned(),
        format!("echo '{key}' >/root/.ssh/authorized_keys"),
        "chmod 600 /root/.ssh/authorized_keys".to_owned(),
    ];
    Ok(format!("#cloud-config\nhostname: {name}\nruncmd:\n  - {}\n", commands.join("\n  - ")))
}

/// An instance.
pub fn instance(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": spec,
    })
}

/// A machine that runs as the strategy says.
pub fn machine(name: &str, run_strategy: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {
            "runStrategy": run_strategy,
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    })
}

/// Puts an instance on a node.
pub fn on_node(mut spec: Value, node: &str) -> Value {
    spec["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    spec
}
