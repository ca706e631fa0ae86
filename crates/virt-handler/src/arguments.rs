//! The command line of virt-handler.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser};
use kubevirt_api::names::components::secrets;
use kubevirt_component::Common;
use kubevirt_component::flags::time;

/// Looks after the instances of a node.
#[derive(Clone, Debug, Parser)]
#[command(name = "virt-handler", version)]
pub struct Arguments {
    /// What all daemons share.
    #[command(flatten)]
    pub common: Common,
    /// Name of the node in the cluster.
    #[arg(long, env = "NODE_NAME", value_name = "NODE")]
    pub hostname_override: Option<String>,
    /// Address of the handler's own pod.
    #[arg(long, env = "MY_POD_IP", value_name = "ADDRESS")]
    pub pod_ip_address: Option<String>,
    /// Folder of what only handlers may write, and what outlives them.
    #[arg(
        long,
        alias = "virt-private-dir",
        value_name = "FOLDER",
        default_value = "/var/run/kubevirt-private"
    )]
    pub kubevirt_private_dir: PathBuf,
    /// Folder where the kubelet keeps its pods.
    #[arg(long, value_name = "FOLDER", default_value = crate::launchers::folders::KUBELET_PODS)]
    pub kubelet_pods_dir: PathBuf,
    /// Folder of the kubelet.
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/kubelet")]
    pub kubelet_root: PathBuf,
    /// How long a launcher may be silent before its machine counts as lost.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub watchdog_timeout: Duration,
    /// How many machines may use a device that all share.
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    pub max_devices: usize,
    /// How many may ask for metrics at once.
    #[arg(long, alias = "max-metric-request", value_name = "COUNT", default_value_t = 3)]
    pub max_metric_requests: usize,
    /// Port for consoles and what else virt-api passes on.
    #[arg(long, value_name = "PORT", default_value_t = 8186)]
    pub console_server_port: u16,
    /// Tell the scheduler what guests this node can run.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = true, action = ArgAction::Set)]
    pub enable_node_labeller: bool,
    /// Folder of what node-labeller found out.
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/kubevirt-node-labeller")]
    pub node_labeller_dir: PathBuf,
    /// ConfigMap with the certificates of the installation's authority.
    #[arg(long, value_name = "NAME", default_value = secrets::CA)]
    pub ca_configmap_name: String,
    /// Certificates come from elsewhere: clients may have any name that the authority vouches for.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    pub externally_managed: bool,
    /// Certificate that is shown to guests over vsock.
    #[arg(long, value_name = "FILE", default_value = "/etc/virt-handler/vsockclientcertificates/tls.crt")]
    pub vsock_client_cert_file: PathBuf,
    /// Key of that certificate.
    #[arg(long, value_name = "FILE", default_value = "/etc/virt-handler/vsockclientcertificates/tls.key")]
    pub vsock_client_key_file: PathBuf,
    /// What changes nothing here.
    #[command(flatten)]
    pub unused: Unused,
}

/// Flags of KubeVirt's handler that change nothing here.
#[derive(Clone, Debug, clap::Args)]
pub struct Unused {
    /// Handler and launcher meet in the launcher's pod.
    #[arg(long, hide = true)]
    kubevirt_share_dir: Option<PathBuf>,
    /// Launchers tell by themselves.
    #[arg(long, hide = true)]
    domain_resync_period_seconds: Option<u64>,
    /// Statistics are asked for over the same port as metrics.
    #[arg(long, hide = true)]
    vmstats_server_port: Option<u16>,
    /// For migrations.
    #[arg(long, hide = true)]
    graceful_shutdown_seconds: Option<u64>,
    /// For migrations.
    #[arg(long, hide = true)]
    client_cert_file: Option<PathBuf>,
    /// For migrations.
    #[arg(long, hide = true)]
    client_key_file: Option<PathBuf>,
    /// For migrations.
    #[arg(long, hide = true)]
    migration_client_cert_file: Option<PathBuf>,
    /// For migrations.
    #[arg(long, hide = true)]
    migration_client_key_file: Option<PathBuf>,
    /// For migrations.
    #[arg(long, hide = true)]
    migration_cn_types: Vec<String>,
}

impl Arguments {
    /// The name of the node: what is given, or the host's own name.
    pub fn node(&self) -> Option<String> {
        let given = self.hostname_override.clone().filter(|name| !name.is_empty());
        given.or_else(|| {
            let own = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
            Some(own.trim().to_owned()).filter(|name| !name.is_empty())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("virt-handler").chain(line.split_whitespace()))
    }

    #[test]
    fn the_command_lines_of_old_and_new_pods_are_taken() {
        let old = "--port 8443 --hostname-override node1 --pod-ip-address 10.0.0.1 --max-metric-request 3 \
            --console-server-port 8186 -v 2";
        let told = parse(old).unwrap();
        assert_eq!(told.common.address(8185).port(), 8443);
        assert_eq!((told.node().as_deref(), told.max_metric_requests), (Some("node1"), 3));
        assert_eq!(told.watchdog_timeout, Duration::from_secs(30));
        let new = "--port 8443 --hostname-override node1 --pod-ip-address 10.0.0.1 --max-metric-requests 5 \
            --console-server-port 8186 --graceful-shutdown-seconds 315 -v 2 --enable-node-labeller=false \
            --watchdog-timeout 1m --migration-cn-types migration --externally-managed=true";
        let told = parse(new).unwrap();
        assert_eq!((told.watchdog_timeout, told.max_metric_requests), (Duration::from_secs(60), 5));
        assert!(!told.enable_node_labeller);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, word) in [("--watchdog-timeout soon", "soon"), ("--no-such-flag", "--no-such-flag")] {
            assert!(parse(line).unwrap_err().to_string().contains(word), "{line}");
        }
    }
}
