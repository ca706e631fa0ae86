//! Where the files of a cluster lie and which addresses it uses.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// The API server's port inside the cluster's own network.
pub const API_PORT: u16 = 6443;
/// The address range of Services.
pub const SERVICE_RANGE: &str = "10.96.0.0/16";
/// The Service address of the API server: the first of [`SERVICE_RANGE`].
pub const API_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
/// The control plane's address on the cluster's bridge.
pub const HUB: Ipv4Addr = Ipv4Addr::new(10, 199, 0, 1);
/// All pod networks.
pub const POD_RANGE: &str = "10.200.0.0/16";
/// Where every node sees [`Layout::shared`].
pub const SHARED_MOUNT: &str = "/var/lib/kubevirt-rs/shared";
/// More nodes than this do not fit one machine.
pub const MAX_NODES: u8 = 9;

const LONGEST_NAME: usize = 20;
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// The folder that outlives clusters: `$KUBEVIRT_RS_CACHE`, or `kubevirt-rs` among the user's caches.
pub fn cache() -> Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("KUBEVIRT_RS_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|caches| caches.join("kubevirt-rs")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/kubevirt-rs")))
        .context("no place for the cache: set KUBEVIRT_RS_CACHE or HOME")?;
    std::path::absolute(&cache).with_context(|| format!("cache folder {}", cache.display()))
}

/// The files of one cluster, all under one folder that carries its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    name: String,
    root: PathBuf,
}

impl Layout {
    /// The layout of the cluster `name` below the folder `cache`.
    pub fn new(cache: &Path, name: &str) -> Result<Self> {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        ensure!(
            !name.is_empty()
                && name.len() <= LONGEST_NAME
                && name.chars().all(allowed)
                && !name.starts_with('-'),
            "cluster name {name:?}: 1 to {LONGEST_NAME} of a-z, 0-9 and '-', not starting with '-'"
        );
        Ok(Self { name: name.to_owned(), root: cache.join("clusters").join(name) })
    }

    /// The cluster's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder that holds everything of the cluster.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What the cluster was started with, and its ports; see [`super::state`].
    pub fn state(&self) -> PathBuf {
        self.root.join("cluster.json")
    }

    /// Certificates and keys.
    pub fn certificates(&self) -> PathBuf {
        self.root.join("pki")
    }

    /// The administrator's kubeconfig, for use on this machine.
    pub fn kubeconfig(&self) -> PathBuf {
        self.component_kubeconfig("admin")
    }

    /// What kubectl keeps of the API.
    pub fn kubectl_cache(&self) -> PathBuf {
        self.root.join("kubectl")
    }

    /// The kubeconfig of a component.
    pub fn component_kubeconfig(&self, component: &str) -> PathBuf {
        self.root.join("kubeconfig").join(component.replace('/', "-"))
    }

    /// The log of a component.
    pub fn log(&self, component: &str) -> PathBuf {
        self.root.join("logs").join(format!("{}.log", component.replace('/', "-")))
    }

    /// etcd's data.
    pub fn etcd(&self) -> PathBuf {
        self.root.join("etcd")
    }

    /// The socket that leads from this machine's loopback into the cluster's network.
    pub fn api_socket(&self) -> PathBuf {
        self.root.join("api.sock")
    }

    /// A folder that all nodes see, as [`SHARED_MOUNT`].
    pub fn shared(&self) -> PathBuf {
        self.root.join("shared")
    }

    /// The cgroup of the cluster, in every hierarchy.
    pub fn cgroup(&self) -> String {
        format!("kubevirt-rs-{}", self.name)
    }

    /// Node number `number`, from 1.
    pub fn node(&self, number: u8) -> Node {
        let name = format!("node{number:02}");
        Node { root: self.root.join(&name), cgroup: format!("/{}/{name}", self.cgroup()), name, number }
    }
}

/// The names, folders and addresses of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The node's name in Kubernetes and its host name.
    pub name: String,
    /// The node's folder.
    pub root: PathBuf,
    /// The cgroup below which the node's pods run.
    pub cgroup: String,
    number: u8,
}

impl Node {
    /// The node's address on the cluster's bridge.
    pub fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 199, 0, 10 + self.number)
    }

    /// The network of the node's pods.
    pub fn pod_network(&self) -> String {
        format!("10.200.{}.0/24", self.number)
    }

    /// The name of a component on this node, as in logs and messages.
    pub fn component(&self, program: &str) -> String {
        format!("{}/{program}", self.name)
    }
}

/// `count` ports of the loopback address that nothing listens on. Where the search begins depends on the
/// name, so that clusters that start at the same time do not look at the same ports, and the range lies
/// below the one from which the kernel takes ports for outgoing connections.
pub fn free_ports(name: &str, count: usize) -> Result<Vec<u16>> {
    let free: Vec<u16> = candidate_ports(name)
        .filter(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .take(count)
        .collect();
    ensure!(free.len() == count, "no {count} free ports in {PORTS:?} on loopback");
    Ok(free)
}

fn candidate_ports(name: &str) -> impl Iterator<Item = u16> + use<> {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let size = PORTS.end - PORTS.start;
    let first = u16::try_from(hash % u64::from(size)).unwrap_or(0);
    (0..size).map(move |step| PORTS.start + (first + step) % size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_names_that_are_safe_in_paths_and_cgroups() {
        for (name, good) in [
            ("default", true),
            ("ci-2", true),
            ("a", true),
            ("", false),
            ("-a", false),
            ("A", false),
            ("../etc", false),
            ("a/b", false),
            ("a.b", false),
            ("twenty-characters-ab", true),
            ("twenty-one-characters", false),
        ] {
            assert_eq!(Layout::new(Path::new("/c"), name).is_ok(), good, "{name}");
        }
    }

    #[test]
    fn keeps_clusters_apart() {
        let one = Layout::new(Path::new("/c"), "one").unwrap();
        let two = Layout::new(Path::new("/c"), "two").unwrap();
        assert_eq!(one.root(), Path::new("/c/clusters/one"));
        assert_ne!(one.cgroup(), two.cgroup());
        assert_ne!(one.kubeconfig(), two.kubeconfig());
        assert_ne!(candidate_ports("one").next(), candidate_ports("two").next());
    }

    #[test]
    fn numbers_nodes() {
        let layout = Layout::new(Path::new("/c"), "x").unwrap();
        let node = layout.node(2);
        assert_eq!(node.name, "node02");
        assert_eq!(node.address().to_string(), "10.199.0.12");
        assert_eq!(node.pod_network(), "10.200.2.0/24");
        assert_eq!(node.cgroup, "/kubevirt-rs-x/node02");
        assert_eq!(
            layout.log(&node.component("kubelet")),
            Path::new("/c/clusters/x/logs/node02-kubelet.log")
        );
    }

    #[test]
    fn tries_every_port_once() {
        let mut ports: Vec<u16> = candidate_ports("default").collect();
        ports.sort_unstable();
        assert!(ports.into_iter().eq(PORTS));
    }

    #[test]
    fn finds_different_free_ports() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, candidate_ports("layout-test").next().unwrap()));
        let ports = free_ports("layout-test", 3).unwrap();
        assert_eq!(ports.len(), 3);
        assert!(ports[0] != ports[1] && ports[1] != ports[2]);
        if let Ok(taken) = taken {
            assert!(!ports.contains(&taken.local_addr().unwrap().port()));
        }
    }
}
