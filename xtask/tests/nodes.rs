//! A cluster of two nodes, as other tests use it: pods, Services, volumes, a node that restarts, and no traces.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use xtask::cluster::layout::SHARED_MOUNT;
use xtask::cluster::{Cluster, Options, processes};
use xtask::image;

const IMAGE: &str = "localhost/kubevirt-rs/probe:1";

#[test]
#[ignore = "needs root, and builds Kubernetes when it is not in the cache yet"]
fn runs_pods_on_two_nodes_and_leaves_nothing_behind() -> Result<()> {
    let before = traces()?;
    let cluster = Cluster::up(&Options::with_nodes("test-nodes", 2))?;
    Cluster::up(&Options::with_nodes("test-nodes", 2))?;
    assert!(Cluster::up(&Options::with_nodes("test-nodes", 1)).is_err(), "it is up with other settings");

    let folder = cluster.layout().root().to_owned();
    let archive = folder.join("probe.tar");
    let aside = folder.join("probe");
    fs::create_dir_all(&aside)?;
    image::pack_program("probe", include_str!("programs/probe.rs"), IMAGE, &aside, &archive)?;
    cluster.load_image(&archive)?;

    apply(&cluster, &[pod("one", "node01"), pod("two", "node02"), service("one")])?;
    wait_until_ready(&cluster)?;
    let address = cluster.kubectl(&["get", "service", "one", "--output=jsonpath={.spec.clusterIP}"])?;
    for pod in ["one", "two"] {
        assert_eq!(
            probe(&cluster, pod, &["get", &format!("{address}:80")])?,
            "I am one",
            "Service from {pod}"
        );
    }
    assert_eq!(cluster.kubectl(&["logs", "two"])?, "serving I am two\n");
    let through_api = "/api/v1/namespaces/default/services/one:80/proxy/";
    assert_eq!(cluster.kubectl(&["get", "--raw", through_api])?, "I am one", "the API server reaches pods");

    probe(&cluster, "one", &["write", "/shared/note", "from one"])?;
    assert_eq!(probe(&cluster, "two", &["read", "/shared/note"])?, "from one");
    assert_eq!(cluster.kubectl(&["exec", "two", "--", "/image/probe", "read", "/shared/note"])?, "from one");

    cluster.restart_node("node02")?;
    let restarted = "--for=jsonpath={.status.containerStatuses[0].restartCount}=1";
    cluster.kubectl(&["wait", restarted, "pod", "two", "--timeout=60s"])?;
    wait_until_ready(&cluster)?;
    assert_eq!(probe(&cluster, "two", &["get", &format!("{address}:80")])?, "I am one", "after the restart");

    assert!(cluster.down()?);
    assert!(!folder.exists());
    assert!(processes::running(&folder)?.is_empty());
    assert_eq!(traces()?, before);
    Ok(())
}

fn pod(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "probe",
                "image": IMAGE,
                "imagePullPolicy": "Never",
                "args": ["serve", "8080", format!("I am {name}")],
                "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
                "resources": {"requests": {"ephemeral-storage": "50M"}},
                "volumeMounts": [{"name": "shared", "mountPath": "/shared"}, {"name": "image", "mountPath": "/image"}],
            }],
            "volumes": [
                {"name": "shared", "hostPath": {"path": SHARED_MOUNT}},
                {"name": "image", "image": {"reference": IMAGE, "pullPolicy": "Never"}},
            ],
        },
    })
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]},
    })
}

fn apply(cluster: &Cluster, objects: &[Value]) -> Result<()> {
    let file = cluster.layout().root().join("objects.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    fs::write(&file, serde_json::to_vec(&list)?)?;
    cluster.kubectl(&["apply", "--filename", &file.to_string_lossy()]).map(drop)
}

fn wait_until_ready(cluster: &Cluster) -> Result<()> {
    cluster.kubectl(&["wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s"]).map(drop)
}

fn probe(cluster: &Cluster, pod: &str, arguments: &[&str]) -> Result<String> {
    cluster.kubectl(&[&["exec", pod, "--", "/probe"], arguments].concat())
}

/// What a cluster could leave on the machine: mounts, links and cgroups.
fn traces() -> Result<BTreeSet<String>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let mounts: Vec<String> = mounts.lines().map(str::to_owned).collect();
    let list = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().display().to_string()).collect()
    };
    let cgroups =
        list(Path::new("/sys/fs/cgroup")).into_iter().flat_map(|hierarchy| list(Path::new(&hierarchy)));
    let folders = ["/sys/class/net", "/run", "/run/netns", "/etc", "/opt", "/var/lib", "/var/log"];
    let files = folders.into_iter().flat_map(|folder| list(Path::new(folder)));
    Ok(mounts.into_iter().chain(cgroups).chain(files).collect())
}
