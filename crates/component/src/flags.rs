//! The flags that all daemons share, and the client that they lead to.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::header::USER_AGENT;
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kubevirt_api::duration;

use crate::client::{Unusable, client};
use crate::leader::{Gate, Term};
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::role::Role;
use crate::tls::Files;

/// Where a pod finds the namespace that it runs in.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// The namespace of an installation that says nothing of it.
const USUAL_NAMESPACE: &str = "kubevirt";

/// The flags that all daemons share: `#[command(flatten)]` them.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    pub listen: IpAddr,
    /// Port to listen on
    #[arg(long)]
    pub port: Option<u16>,
    /// How much to log: 2 for everyday use, 4 to look for a fault
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = kubevirt_logs::DEFAULT_VERBOSITY)]
    pub verbosity: u32,
    /// How to reach the API server; not needed in a pod
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// URL of the API server, in place of the one that the kubeconfig names
    #[arg(long, value_name = "URL")]
    pub master: Option<axum::http::Uri>,
    /// Certificate of this server
    #[arg(long, alias = "prom-cert-file", value_name = "FILE")]
    pub tls_cert_file: Option<PathBuf>,
    /// Key of that certificate
    #[arg(long, alias = "prom-key-file", value_name = "FILE")]
    pub tls_key_file: Option<PathBuf>,
    /// Namespace of the installation; that of the pod by default
    #[arg(long = "install-namespace", value_name = "NAMESPACE", env = "NAMESPACE")]
    pub namespace: Option<String>,
}

/// A client could not be made.
#[derive(Debug, thiserror::Error)]
pub enum NoClient {
    /// The kubeconfig is no good.
    #[error("{0}: {1}")]
    Kubeconfig(PathBuf, #[source] kube::config::KubeconfigError),
    /// There is none, and this is not a pod.
    #[error("no --kubeconfig is given, and this is not a pod: {0}")]
    NotInCluster(#[from] kube::config::InClusterError),
    /// What they say makes no client.
    #[error(transparent)]
    Client(#[from] Unusable),
}

impl Common {
    /// Where to listen.
    pub fn address(&self, usual_port: u16) -> SocketAddr {
        SocketAddr::new(self.listen, self.port.unwrap_or(usual_port))
    }

    /// The server's certificate and key; where the component's Secret is mounted unless flags say another place.
    pub fn certificate(&self, role: Role) -> Files {
        let folder = match role {
            Role::Handler => "/etc/virt-handler/servercertificates".to_owned(),
            other => format!("/etc/{}/certificates", other.name()),
        };
        let file = |given: &Option<PathBuf>, name| given.clone().unwrap_or(Path::new(&folder).join(name));
        Files { certificate: file(&self.tls_cert_file, "tls.crt"), key: file(&self.tls_key_file, "tls.key") }
    }

    /// The namespace of the installation.
    pub fn namespace(&self) -> String {
        let given = self.namespace.clone().filter(|name| !name.is_empty());
        given.unwrap_or_else(|| {
            let own = std::fs::read_to_string(NAMESPACE_FILE).unwrap_or_default();
            if own.trim().is_empty() { USUAL_NAMESPACE.to_owned() } else { own.trim().to_owned() }
        })
    }

    /// A client of the API server that keeps to the limits. What must not wait behind others, such as the renewal
    /// of a lease, has a client of its own with [`Limits::none`].
    pub async fn client(
        &self,
        role: Role,
        limits: &Limits,
        metrics: &Metrics,
    ) -> Result<kube::Client, NoClient> {
        self.client_behind(None, role, limits, metrics).await
    }

    /// The same for the work of a leader: once the term is over, it can look at things and change none.
    pub async fn leader_client(
        &self,
        term: &Term,
        role: Role,
        limits: &Limits,
        metrics: &Metrics,
    ) -> Result<kube::Client, NoClient> {
        self.client_behind(Some(term.gate()), role, limits, metrics).await
    }

    async fn client_behind(
        &self,
        gate: Option<Gate>,
        role: Role,
        limits: &Limits,
        metrics: &Metrics,
    ) -> Result<kube::Client, NoClient> {
        let mut config = self.config().await?;
        config.headers.push((USER_AGENT, role.user_agent()));
        let metrics = metrics.requests(config.cluster_url.authority().map_or("", |host| host.as_str()));
        Ok(client(&config, limits, metrics, gate)?)
    }

    async fn config(&self) -> Result<kube::Config, NoClient> {
        let mut config = match &self.kubeconfig {
            Some(path) if !path.as_os_str().is_empty() => {
                let broken = |error| NoClient::Kubeconfig(path.clone(), error);
                let file = Kubeconfig::read_from(path).map_err(broken)?;
                let options = KubeConfigOptions::default();
                kube::Config::from_custom_kubeconfig(file, &options).await.map_err(broken)?
            }
            _ => match &self.master {
                Some(master) => kube::Config::new(master.clone()),
                None => kube::Config::incluster()?,
            },
        };
        if let Some(master) = &self.master {
            config.cluster_url = master.clone();
        }
        // The API server is never behind the proxy that leads out of a cluster.
        config.proxy_url = None;
        Ok(config)
    }
}

/// How long leadership lasts; for daemons of which only one works at a time.
#[derive(Args, Clone, Debug)]
pub struct Election {
    /// How long others wait after the last sign of life of the leader
    #[arg(long = "leader-elect-lease-duration", value_name = "TIME", default_value = "15s", value_parser = time)]
    pub lease: Duration,
    /// How long the leader works on without being able to renew its lease
    #[arg(long = "leader-elect-renew-deadline", value_name = "TIME", default_value = "10s", value_parser = time)]
    pub renew: Duration,
    /// How long to wait between two attempts to take or to renew the lease
    #[arg(long = "leader-elect-retry-period", value_name = "TIME", default_value = "2s", value_parser = time)]
    pub retry: Duration,
    /// The kind of object that is the lock
    #[arg(long = "leader-elect-resource-lock", default_value = "leases", value_parser = ["leases"])]
    pub lock: String,
}

/// Reads a time as Go writes it, such as `1m30s`.
pub fn time(text: &str) -> Result<Duration, String> {
    let parsed = duration::Duration(text.to_owned()).parse().map_err(|error| error.to_string())?;
    if parsed.is_negative() { Err("must not be negative".to_owned()) } else { Ok(parsed.into()) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Daemon {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        election: Election,
    }

    fn parse(line: &str) -> Daemon {
        Daemon::try_parse_from(line.split_whitespace()).unwrap()
    }

    #[test]
    fn lines_as_pods_have_them() {
        let daemon =
            parse("virt-controller --port 8443 -v 4 --prom-cert-file /a --leader-elect-lease-duration 1m");
        assert_eq!(daemon.common.address(1).to_string(), "0.0.0.0:8443");
        assert_eq!(daemon.common.verbosity, 4);
        assert_eq!(daemon.election.lease, Duration::from_secs(60));
        let files = daemon.common.certificate(Role::Controller);
        assert_eq!(files.certificate, Path::new("/a"));
        assert_eq!(files.key, Path::new("/etc/virt-controller/certificates/tls.key"));
        let daemon = parse("virt-handler --listen 127.0.0.1 --v=2 --install-namespace test");
        assert_eq!(daemon.common.address(8185).to_string(), "127.0.0.1:8185");
        assert_eq!(daemon.common.namespace(), "test");
    }

    #[test]
    fn other_locks_and_negative_times_are_refused() {
        for wrong in
            ["--leader-elect-resource-lock endpoints", "--leader-elect-retry-period=-2s", "--port 70000"]
        {
            assert!(Daemon::try_parse_from(format!("x {wrong}").split_whitespace()).is_err(), "{wrong}");
        }
    }
}
