//! Clusters come up, and leave nothing behind.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Result;
use xtask::cluster::{Cluster, Options, processes};

#[test]
fn a_control_plane_leaves_nothing_behind() -> Result<()> {
    comes_and_goes(&Options::control_plane_only("test-come-go-0"))
}

#[test]
fn a_broken_cluster_is_started_anew() -> Result<()> {
    let options = Options::control_plane_only("test-broken");
    let cluster = Cluster::up(&options)?;
    cluster.kubectl(&["create", "namespace", "lost"])?;
    cluster.kill_component("etcd")?;
    assert!(!cluster.is_whole()?);
    Cluster::up(&options)?;
    assert!(cluster.is_whole()?);
    let refused = cluster.kubectl(&["get", "namespace", "lost"]).unwrap_err().to_string();
    assert!(refused.contains("not found"), "{refused}");
    cluster.down().map(drop)
}

#[test]
fn a_node_leaves_nothing_behind() -> Result<()> {
    comes_and_goes(&Options::with_nodes("test-come-go-1", 1))
}

fn comes_and_goes(options: &Options) -> Result<()> {
    let cluster = Cluster::up(options)?;
    let again = Cluster::up(options)?;
    assert_eq!(cluster.kubeconfig(), again.kubeconfig());
    let more = Options { nodes: options.nodes + 1, ..options.clone() };
    assert!(Cluster::up(&more).is_err(), "it is up with other settings");
    let nodes = cluster.kubectl(&["get", "nodes", "--output=name"])?;
    assert_eq!(nodes.lines().count(), usize::from(options.nodes));
    let refused = cluster.kubectl(&["get", "candles"]).unwrap_err().to_string();
    assert!(refused.contains("the server doesn't have a resource type"), "{refused}");

    let folder = cluster.layout().root().to_owned();
    assert!(cluster.down()?);
    assert!(!folder.exists());
    assert!(processes::running(&folder)?.is_empty());
    assert_eq!(traces(&options.name)?, BTreeSet::new());
    assert!(!again.down()?);
    Ok(())
}

/// What a cluster of this name could leave on the machine: mounts, links, cgroups and files.
fn traces(name: &str) -> Result<BTreeSet<String>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let mounts: Vec<String> = mounts.lines().map(str::to_owned).collect();
    let list = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().display().to_string()).collect()
    };
    let cgroups =
        list(Path::new("/sys/fs/cgroup")).into_iter().flat_map(|hierarchy| list(Path::new(&hierarchy)));
    let folders = ["/run", "/run/netns", "/etc", "/opt", "/var/lib", "/var/log"];
    let files = folders.into_iter().flat_map(|folder| list(Path::new(folder)));
    let all = mounts.into_iter().chain(cgroups).chain(files);
    // Links carry the names of nodes, which clusters have in common, and are never in the machine's network.
    let links = list(Path::new("/sys/class/net")).into_iter().filter(|link| link.contains("node"));
    Ok(all.filter(|line| line.contains(name)).chain(links).collect())
}
