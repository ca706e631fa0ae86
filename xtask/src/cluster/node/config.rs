//! The settings of containerd, the kubelet, kube-proxy and the pod network.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::super::binaries::{Binaries, recipes};
use super::super::certs::{self, CLUSTER_CA};
use super::super::layout::{Layout, Node, POD_RANGE};

/// The image that every pod's first container has.
pub const PAUSE_IMAGE: &str = "localhost/kubevirt-rs/pause:1";
const CONTAINERD: &str = "unix:///run/containerd/containerd.sock";

/// What the kubelet would set for the whole machine, with the values that it wants: it finds them so and
/// leaves the machine's own alone.
pub const KERNEL_SETTINGS: &[(&str, &str)] = &[
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];

/// The folder that says where containerd pulls from.
pub fn registries(node: &Node) -> PathBuf {
    node.root.join("registries")
}

/// containerd's configuration.
pub fn containerd(binaries: &Binaries, node: &Node) -> String {
    format!(
        r#"version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
# Would make a folder on the machine itself.
disabled_plugins = ["io.containerd.internal.v1.opt"]

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"

[plugins."io.containerd.cri.v1.images".registry]
config_path = "{registries}"

[plugins."io.containerd.cri.v1.runtime"]
# As with other runtimes: whoever listens at a low port needs the right to.
enable_unprivileged_ports = false
# The machine may be a container itself, without the right to lower scores.
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{cni}"]
conf_dir = "/etc/cni/net.d"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "{runc}"
"#,
        registries = registries(node).display(),
        cni = binaries.folder(&recipes::NETWORK_PLUGINS).display(),
        runc = binaries.program(&recipes::CONTAINER_RUNTIME).display(),
    )
}

/// The pod network's configuration. Every node and the control plane have routes to all pods, so pods are
/// seen under their own addresses.
pub fn pod_network(node: &Node) -> Value {
    json!({
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": true,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": node.pod_network()}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "backend": "nftables", "capabilities": {"portMappings": true}},
        ],
    })
}

/// The kubelet's configuration, which may be JSON as well as YAML.
pub fn kubelet(layout: &Layout, node: &Node) -> Value {
    let server = format!("{}-kubelet-server", node.name);
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": certs::certificate(layout, CLUSTER_CA)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": certs::certificate(layout, &server),
        "tlsPrivateKeyFile": certs::key(layout, &server),
        "containerRuntimeEndpoint": CONTAINERD,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": node.cgroup,
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        // The machine's root file system may be unknown to the kubelet; see `EPHEMERAL_STORAGE`.
        "localStorageCapacityIsolation": false,
        "resolvConf": "",
        "clusterDomain": "cluster.local",
        // Images come from archives: none can be fetched again, whatever the disk looks like.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "0%", "imagefs.available": "0%", "nodefs.inodesFree": "0%"},
        "nodeStatusUpdateFrequency": "4s",
    })
}

/// The kubelet's arguments.
pub fn kubelet_arguments(layout: &Layout, node: &Node) -> Vec<String> {
    vec![
        format!("--config={}", node.root.join("kubelet.json").display()),
        format!("--kubeconfig={}", layout.component_kubeconfig(&node.component("kubelet")).display()),
        format!("--hostname-override={}", node.name),
        format!("--node-ip={}", node.address()),
    ]
}

/// kube-proxy's arguments.
pub fn proxy_arguments(layout: &Layout, node: &Node) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", layout.component_kubeconfig(&node.component("kube-proxy")).display()),
        format!("--hostname-override={}", node.name),
        "--proxy-mode=nftables".into(),
        format!("--cluster-cidr={POD_RANGE}"),
        // These are settings of the whole machine.
        "--conntrack-max-per-core=0".into(),
        "--conntrack-tcp-timeout-established=0s".into(),
        "--conntrack-tcp-timeout-close-wait=0s".into(),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn nodes_differ_where_they_must() {
        let layout = Layout::new(Path::new("/c"), "x").unwrap();
        let (one, two) = (layout.node(1), layout.node(2));
        for field in ["cgroupRoot", "tlsCertFile"] {
            assert_ne!(kubelet(&layout, &one)[field], kubelet(&layout, &two)[field], "{field}");
        }
        assert_ne!(pod_network(&one), pod_network(&two));
        assert_ne!(kubelet_arguments(&layout, &one), kubelet_arguments(&layout, &two));
    }

    #[test]
    fn certificates_of_the_configuration_are_issued() {
        let layout = Layout::new(Path::new("/c"), "x").unwrap();
        let node = layout.node(1);
        let issued = certs::node(&node);
        let server = kubelet(&layout, &node)["tlsCertFile"].as_str().unwrap().to_owned();
        assert!(
            issued.iter().any(|subject| certs::certificate(&layout, &subject.file) == Path::new(&server))
        );
        for program in ["kubelet", "kube-proxy"] {
            let file = layout.component_kubeconfig(&node.component(program));
            assert!(
                issued.iter().any(|subject| layout.component_kubeconfig(&subject.file) == file),
                "{program}"
            );
        }
    }

    #[test]
    fn containerd_finds_its_programs_in_the_cache() {
        let layout = Layout::new(Path::new("/c"), "x").unwrap();
        let text = containerd(&Binaries::new(Path::new("/c")), &layout.node(1));
        assert!(text.contains(r#"bin_dirs = ["/c/bin/cni-plugins-v1.9.1"]"#));
        assert!(text.contains(r#"BinaryName = "/c/bin/runc-v1.5.2/runc""#));
        assert!(text.contains(r#"config_path = "/c/clusters/x/node01/registries""#));
    }
}
