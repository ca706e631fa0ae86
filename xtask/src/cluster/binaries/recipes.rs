//! What is built, from which Go modules and how.

use std::fmt::Write;

/// The version of Kubernetes.
pub const KUBERNETES: &str = "v1.36.4";
const ETCD: &str = "v3.7.3";
const CONTAINERD: &str = "v2.4.2";
const RUNC: &str = "v1.5.2";
const CNI_PLUGINS: &str = "v1.9.1";
const KWOK: &str = "v0.8.0";
const KUBEVIRT: &str = "v1.7.0";

/// One folder of the cache: programs of one version that are built together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// What the folder is called, with the version.
    pub name: &'static str,
    /// The version of the module.
    pub version: &'static str,
    /// The Go module.
    pub module: &'static str,
    /// The programs, each with its package below the module.
    pub programs: &'static [(&'static str, &'static str)],
    /// How the build differs from the usual one.
    pub kind: Kind,
}

/// How a recipe's build differs from the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `go build` of the module as it is.
    Plain,
    /// Kubernetes refers to its libraries by local paths, and takes its version from the linker.
    Kubernetes,
    /// KubeVirt refers to its libraries by local paths, too, and to those of others by other versions.
    KubeVirt,
    /// The container runtime needs the C library for seccomp, without which no pod starts.
    Runc,
}

const fn kubernetes(name: &'static str, programs: &'static [(&'static str, &'static str)]) -> Recipe {
    Recipe { name, version: KUBERNETES, module: "k8s.io/kubernetes", programs, kind: Kind::Kubernetes }
}

/// The store of the API server.
pub const ETCD_SERVER: Recipe = Recipe {
    name: "etcd",
    version: ETCD,
    module: "go.etcd.io/etcd/server/v3",
    programs: &[("etcd", "")],
    kind: Kind::Plain,
};
/// The API server.
pub const API_SERVER: Recipe = kubernetes("kube-apiserver", &[("kube-apiserver", "/cmd/kube-apiserver")]);
/// The command line client.
pub const KUBECTL: Recipe = kubernetes("kubectl", &[("kubectl", "/cmd/kubectl")]);
/// The controllers of Kubernetes.
pub const CONTROLLER_MANAGER: Recipe =
    kubernetes("kube-controller-manager", &[("kube-controller-manager", "/cmd/kube-controller-manager")]);
/// The scheduler.
pub const SCHEDULER: Recipe = kubernetes("kube-scheduler", &[("kube-scheduler", "/cmd/kube-scheduler")]);
/// The node agent.
pub const KUBELET: Recipe = kubernetes("kubelet", &[("kubelet", "/cmd/kubelet")]);
/// Services on a node.
pub const PROXY: Recipe = kubernetes("kube-proxy", &[("kube-proxy", "/cmd/kube-proxy")]);
/// Containers on a node.
pub const CONTAINER_DAEMON: Recipe = Recipe {
    name: "containerd",
    version: CONTAINERD,
    module: "github.com/containerd/containerd/v2",
    programs: &[
        ("containerd", "/cmd/containerd"),
        ("containerd-shim-runc-v2", "/cmd/containerd-shim-runc-v2"),
        ("ctr", "/cmd/ctr"),
    ],
    kind: Kind::Plain,
};
/// What starts a container.
pub const CONTAINER_RUNTIME: Recipe = Recipe {
    name: "runc",
    version: RUNC,
    module: "github.com/opencontainers/runc",
    programs: &[("runc", "")],
    kind: Kind::Runc,
};
/// What gives a pod its network.
pub const NETWORK_PLUGINS: Recipe = Recipe {
    name: "cni-plugins",
    version: CNI_PLUGINS,
    module: "github.com/containernetworking/plugins",
    programs: &[
        ("bridge", "/plugins/main/bridge"),
        ("host-local", "/plugins/ipam/host-local"),
        ("loopback", "/plugins/main/loopback"),
        ("macvlan", "/plugins/main/macvlan"),
        ("portmap", "/plugins/meta/portmap"),
        ("ptp", "/plugins/main/ptp"),
        ("static", "/plugins/ipam/static"),
        ("tuning", "/plugins/meta/tuning"),
    ],
    kind: Kind::Plain,
};

/// Nodes that only pretend to run pods, for tests of many.
pub const SIMULATED_NODES: Recipe = Recipe {
    name: "kwok",
    version: KWOK,
    module: "sigs.k8s.io/kwok",
    programs: &[("kwok", "/cmd/kwok")],
    kind: Kind::Plain,
};

/// KubeVirt's own client, which must work with us; of the newest version that can be built.
pub const KUBEVIRT_CLIENT: Recipe = Recipe {
    name: "virtctl",
    version: KUBEVIRT,
    module: "kubevirt.io/kubevirt",
    programs: &[("virtctl", "/cmd/virtctl")],
    kind: Kind::KubeVirt,
};

/// Enough for an API server.
pub const FOR_CONTROL_PLANE: &[Recipe] = &[ETCD_SERVER, API_SERVER, KUBECTL];
/// Everything but what single tests need besides.
pub const FOR_NODES: &[Recipe] = &[
    ETCD_SERVER,
    API_SERVER,
    KUBECTL,
    CONTROLLER_MANAGER,
    SCHEDULER,
    KUBELET,
    PROXY,
    CONTAINER_DAEMON,
    CONTAINER_RUNTIME,
    NETWORK_PLUGINS,
];

impl Recipe {
    /// The name of the folder in the cache.
    pub fn folder(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// A `go.mod` of our own that requires the module, for a build that its own `go.mod` would not allow
    /// from outside. `theirs` is the module's own one.
    pub fn go_mod(&self, theirs: &str) -> String {
        let mut text = format!("module kubevirt-rs.test/{}\n\n", self.name);
        let go = theirs.lines().find(|line| line.starts_with("go ")).unwrap_or("go 1.26.0");
        let _ = writeln!(text, "{go}\n\nrequire {} {}", self.module, self.version);
        for (what, by) in theirs.lines().filter_map(|line| line.trim().split_once(" => ")) {
            let what = what.trim_start_matches("replace ");
            let line = match (self.kind, by.starts_with("./staging/")) {
                (Kind::Kubernetes, true) => format!("{what} {}", self.version.replace("v1.", "v0.")),
                (Kind::KubeVirt, true) => format!("{what} {}", self.version),
                (Kind::KubeVirt, false) => by.to_owned(),
                _ => continue,
            };
            let _ = writeln!(text, "replace {what} => {line}");
        }
        text
    }

    /// The arguments of `go` that build the programs into the folder `output`.
    pub fn build_arguments(&self, output: &str) -> Vec<String> {
        let mut arguments = ["build", "-mod=mod", "-trimpath", "-buildvcs=false"].map(str::to_owned).to_vec();
        if self.kind == Kind::Runc {
            arguments.push("-tags=seccomp".into());
        }
        arguments.push(format!("-ldflags={}", self.linker_flags()));
        arguments.extend(["-o".to_owned(), format!("{output}/")]);
        arguments.extend(self.programs.iter().map(|(_, package)| format!("{}{package}", self.module)));
        arguments
    }

    fn linker_flags(&self) -> String {
        let mut flags = "-s -w".to_owned();
        match self.kind {
            Kind::Kubernetes => {
                let mut numbers = self.version.trim_start_matches('v').split('.');
                let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
                for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
                    for (name, value) in
                        [("gitVersion", self.version), ("gitMajor", major), ("gitMinor", minor)]
                    {
                        let _ = write!(flags, " -X {package}.{name}={value}");
                    }
                }
            }
            Kind::KubeVirt => {
                let _ = write!(flags, " -X kubevirt.io/client-go/version.gitVersion={}", self.version);
            }
            Kind::Plain => {
                let _ = write!(flags, " -X {}/version.Version={}", self.module, self.version);
            }
            Kind::Runc => {}
        }
        flags
    }

    /// Whether the build needs a C compiler.
    pub fn needs_c(&self) -> bool {
        self.kind == Kind::Runc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_the_libraries_of_kubernetes() {
        let theirs = "module k8s.io/kubernetes\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/api v0.0.0\n)\n\nreplace (\n\t\
                      k8s.io/api => ./staging/src/k8s.io/api\n)\n";
        assert_eq!(
            KUBELET.go_mod(theirs),
            "module kubevirt-rs.test/kubelet\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.36.4\n\
             replace k8s.io/api => k8s.io/api v0.36.4\n"
        );
    }

    #[test]
    fn keeps_the_replacements_of_kubevirt() {
        let theirs = "go 1.24.0\nreplace (\n\tgithub.com/a/b => github.com/c/b v1.2.3\n\t\
                      kubevirt.io/api => ./staging/src/kubevirt.io/api\n)\n";
        let ours = KUBEVIRT_CLIENT.go_mod(theirs);
        assert!(ours.ends_with(
            "replace github.com/a/b => github.com/c/b v1.2.3\nreplace kubevirt.io/api => kubevirt.io/api v1.7.0\n"
        ));
    }

    #[test]
    fn leaves_local_replacements_of_others_out() {
        let theirs = "go 1.25.0\nreplace (\n\tgo.etcd.io/etcd/api/v3 => ../api\n)\n";
        assert!(!ETCD_SERVER.go_mod(theirs).contains("replace"));
        assert!(ETCD_SERVER.go_mod(theirs).contains("\ngo 1.25.0\n"));
    }

    #[test]
    fn tells_kubernetes_its_version() {
        let arguments = API_SERVER.build_arguments("/out");
        let flags = arguments.iter().find(|argument| argument.starts_with("-ldflags=")).unwrap();
        assert!(flags.contains("-X k8s.io/component-base/version.gitVersion=v1.36.4"));
        assert!(flags.contains("-X k8s.io/client-go/pkg/version.gitMinor=36"));
        assert_eq!(arguments.last().unwrap(), "k8s.io/kubernetes/cmd/kube-apiserver");
        assert!(CONTAINER_RUNTIME.build_arguments("/out").contains(&"-tags=seccomp".to_owned()));
    }

    #[test]
    fn every_folder_is_of_one_recipe() {
        let mut folders: Vec<String> = FOR_NODES.iter().map(Recipe::folder).collect();
        folders.sort();
        folders.dedup();
        assert_eq!(folders.len(), FOR_NODES.len());
        assert!(FOR_CONTROL_PLANE.iter().all(|recipe| FOR_NODES.contains(recipe)));
    }
}
