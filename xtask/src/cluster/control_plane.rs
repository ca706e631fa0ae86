//! etcd, the API server, the controller manager and the scheduler.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::binaries::{Binaries, recipes};
use super::certs::{self, CLUSTER_CA, FRONT_PROXY_CA, SERVICE_ACCOUNTS};
use super::kubectl::Kubectl;
use super::layout::{API_PORT, HUB, Layout, POD_RANGE, SERVICE_RANGE};
use super::processes::{self, Started};
use super::state::Ports;

/// The components of the smallest control plane, in the order in which they start.
pub const SMALLEST: &[&str] = &["etcd", "kube-apiserver"];
/// What nodes need besides.
pub const CONTROLLERS: &[&str] = &["kube-controller-manager", "kube-scheduler"];

const READY_WITHIN: Duration = Duration::from_secs(120);

/// Where a control plane listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On this machine's loopback, without nodes.
    Loopback(Ports),
    /// In the cluster's own network, with nodes; the number is a process that lives in it.
    Hub(u32),
}

impl Place {
    fn etcd_ports(self) -> (u16, u16) {
        match self {
            Self::Loopback(ports) => (ports.etcd, ports.etcd_peers),
            Self::Hub(_) => (2379, 2380),
        }
    }

    /// The address at which components reach the API server.
    pub fn server(self) -> String {
        match self {
            Self::Loopback(ports) => format!("https://{}:{}", Ipv4Addr::LOCALHOST, ports.api),
            Self::Hub(_) => format!("https://{HUB}:{API_PORT}"),
        }
    }

    /// The beginning of a command that runs in this place.
    pub fn enter(self) -> Vec<OsString> {
        match self {
            Self::Loopback(_) => Vec::new(),
            Self::Hub(process) => {
                vec!["nsenter".into(), format!("--net=/proc/{process}/ns/net").into(), "--".into()]
            }
        }
    }
}

/// Starts etcd and the API server.
pub fn start_smallest(layout: &Layout, binaries: &Binaries, place: Place) -> Result<Vec<Started>> {
    SMALLEST.iter().map(|component| start(layout, binaries, place, component)).collect()
}

/// Waits until the API server is ready.
pub fn wait_until_ready(started: &mut [Started], kubectl: &Kubectl) -> Result<()> {
    processes::wait_until(started, "kube-apiserver", READY_WITHIN, || {
        let answer = kubectl.run(&["get", "--raw", "/readyz"])?;
        ensure!(answer == "ok", "/readyz says {answer}");
        Ok(())
    })
}

/// Waits until the controllers have made what pods need.
pub fn wait_for_controllers(started: &mut [Started], kubectl: &Kubectl) -> Result<()> {
    processes::wait_until(started, "kube-controller-manager", READY_WITHIN, || {
        kubectl.run(&["get", "serviceaccount/default", "configmap/kube-root-ca.crt"]).map(drop)
    })
}

/// Starts the controllers; they end for lack of roles when the API server is not ready.
pub fn start_controllers(layout: &Layout, binaries: &Binaries, place: Place) -> Result<Vec<Started>> {
    CONTROLLERS.iter().map(|component| start(layout, binaries, place, component)).collect()
}

/// Starts one component.
pub fn start(layout: &Layout, binaries: &Binaries, place: Place, component: &str) -> Result<Started> {
    let (recipe, arguments) = match component {
        "etcd" => (&recipes::ETCD_SERVER, etcd(layout, place)),
        "kube-apiserver" => (&recipes::API_SERVER, api_server(layout, place)),
        "kube-controller-manager" => (&recipes::CONTROLLER_MANAGER, controller_manager(layout)),
        "kube-scheduler" => (&recipes::SCHEDULER, scheduler(layout)),
        _ => bail!("{component} cannot be started by itself"),
    };
    let mut command = place.enter();
    command.push(binaries.program(recipe).into());
    command.extend(arguments.into_iter().map(OsString::from));
    processes::start(layout, component, &command)
}

fn etcd(layout: &Layout, place: Place) -> Vec<String> {
    let (clients, peers) = place.etcd_ports();
    let (clients, peers) = (format!("http://127.0.0.1:{clients}"), format!("http://127.0.0.1:{peers}"));
    vec![
        "--name=etcd".into(),
        format!("--data-dir={}", layout.etcd().display()),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=etcd={peers}"),
        // Nothing here has to survive a power cut.
        "--unsafe-no-fsync".into(),
        "--log-level=warn".into(),
    ]
}

fn api_server(layout: &Layout, place: Place) -> Vec<String> {
    let certificate = |file| certs::certificate(layout, file).display().to_string();
    let key = |file| certs::key(layout, file).display().to_string();
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{}", place.etcd_ports().0),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        "--authorization-mode=Node,RBAC".into(),
        "--allow-privileged=true".into(),
        format!("--client-ca-file={}", certificate(CLUSTER_CA)),
        format!("--tls-cert-file={}", certificate("kube-apiserver")),
        format!("--tls-private-key-file={}", key("kube-apiserver")),
        format!("--service-account-key-file={}", certs::public_key(layout, SERVICE_ACCOUNTS).display()),
        format!("--service-account-signing-key-file={}", key(SERVICE_ACCOUNTS)),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--requestheader-client-ca-file={}", certificate(FRONT_PROXY_CA)),
        "--requestheader-allowed-names=front-proxy-client".into(),
        "--requestheader-username-headers=X-Remote-User".into(),
        "--requestheader-group-headers=X-Remote-Group".into(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
        format!("--proxy-client-cert-file={}", certificate("front-proxy-client")),
        format!("--proxy-client-key-file={}", key("front-proxy-client")),
    ];
    match place {
        Place::Loopback(ports) => arguments.extend([
            format!("--bind-address={}", Ipv4Addr::LOCALHOST),
            format!("--secure-port={}", ports.api),
            format!("--advertise-address={}", Ipv4Addr::LOCALHOST),
            // The address above may not stand in an Endpoints object.
            "--endpoint-reconciler-type=none".into(),
            // No controller makes service accounts, and pods should be accepted all the same.
            "--disable-admission-plugins=ServiceAccount".into(),
        ]),
        Place::Hub(_) => arguments.extend([
            "--bind-address=0.0.0.0".into(),
            format!("--secure-port={API_PORT}"),
            format!("--advertise-address={HUB}"),
            // Webhooks and aggregated APIs are reached at their pods: there is no kube-proxy here.
            "--enable-aggregator-routing=true".into(),
            "--kubelet-preferred-address-types=InternalIP".into(),
            format!("--kubelet-certificate-authority={}", certificate(CLUSTER_CA)),
            format!("--kubelet-client-certificate={}", certificate("kube-apiserver-kubelet-client")),
            format!("--kubelet-client-key={}", key("kube-apiserver-kubelet-client")),
        ]),
    }
    arguments
}

fn controller_manager(layout: &Layout) -> Vec<String> {
    let kubeconfig = layout.component_kubeconfig("kube-controller-manager");
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--authentication-kubeconfig={}", kubeconfig.display()),
        format!("--authorization-kubeconfig={}", kubeconfig.display()),
        format!("--root-ca-file={}", certs::certificate(layout, CLUSTER_CA).display()),
        format!("--service-account-private-key-file={}", certs::key(layout, SERVICE_ACCOUNTS).display()),
        format!("--cluster-signing-cert-file={}", certs::certificate(layout, CLUSTER_CA).display()),
        format!("--cluster-signing-key-file={}", certs::key(layout, CLUSTER_CA).display()),
        "--use-service-account-credentials=true".into(),
        "--leader-elect=false".into(),
        "--bind-address=127.0.0.1".into(),
        format!("--cluster-cidr={POD_RANGE}"),
        // Nodes have their pod networks from us.
        "--allocate-node-cidrs=false".into(),
        // A stopped node should be noticed within a test's patience.
        "--node-monitor-period=1s".into(),
        "--node-monitor-grace-period=16s".into(),
    ]
}

fn scheduler(layout: &Layout) -> Vec<String> {
    let kubeconfig = layout.component_kubeconfig("kube-scheduler");
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--authentication-kubeconfig={}", kubeconfig.display()),
        format!("--authorization-kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".into(),
        "--bind-address=127.0.0.1".into(),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const PORTS: Ports = Ports { api: 20_001, etcd: 20_002, etcd_peers: 20_003 };

    #[test]
    fn without_nodes_everything_stays_on_loopback() {
        let layout = Layout::new(Path::new("/c"), "one").unwrap();
        let place = Place::Loopback(PORTS);
        let arguments = [etcd(&layout, place), api_server(&layout, place)].concat();
        for argument in &arguments {
            assert!(!argument.contains("0.0.0.0") && !argument.contains("10.199."), "{argument}");
        }
        for expected in
            ["--etcd-servers=http://127.0.0.1:20002", "--bind-address=127.0.0.1", "--secure-port=20001"]
        {
            assert!(arguments.iter().any(|argument| argument == expected), "{expected}");
        }
        assert!(place.enter().is_empty());
        assert_eq!(place.server(), "https://127.0.0.1:20001");
    }

    #[test]
    fn with_nodes_the_api_server_is_advertised_on_the_bridge() {
        let layout = Layout::new(Path::new("/c"), "one").unwrap();
        let place = Place::Hub(7);
        let arguments = api_server(&layout, place);
        for expected in ["--advertise-address=10.199.0.1", "--enable-aggregator-routing=true"] {
            assert!(arguments.iter().any(|argument| argument == expected), "{expected}");
        }
        assert_eq!(place.enter(), ["nsenter", "--net=/proc/7/ns/net", "--"]);
        assert_eq!(place.server(), "https://10.199.0.1:6443");
    }

    #[test]
    fn no_argument_is_given_twice() {
        let layout = Layout::new(Path::new("/c"), "one").unwrap();
        for place in [Place::Loopback(PORTS), Place::Hub(7)] {
            for arguments in [
                etcd(&layout, place),
                api_server(&layout, place),
                controller_manager(&layout),
                scheduler(&layout),
            ] {
                let mut names: Vec<&str> = arguments.iter().filter_map(|one| one.split('=').next()).collect();
                names.sort_unstable();
                assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
            }
        }
    }
}
