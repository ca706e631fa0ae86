//! What virt-api takes on its command line.

use std::path::PathBuf;

use clap::Parser;
use kubevirt_component::Common;

/// Admission webhooks and subresources.
#[derive(Debug, Parser)]
#[command(name = "virt-api", version)]
pub struct Arguments {
    /// What all daemons take.
    #[command(flatten)]
    pub common: Common,
    /// Serve no webhooks
    #[arg(long)]
    pub subresources_only: bool,
    /// Port of virt-handler's consoles
    #[arg(long, default_value_t = 8186)]
    pub console_server_port: u16,
    /// ConfigMap with the authorities of the installation
    #[arg(long, value_name = "NAME", default_value = "kubevirt-ca")]
    pub ca_configmap_name: String,
    /// Certificate that virt-handler knows this server by
    #[arg(long, value_name = "FILE", default_value = "/etc/virt-handler/clientcertificates/tls.crt")]
    pub handler_cert_file: PathBuf,
    /// Key of that certificate
    #[arg(long, value_name = "FILE", default_value = "/etc/virt-handler/clientcertificates/tls.key")]
    pub handler_key_file: PathBuf,
    /// Somebody else renews certificates: do not look at the names in them
    #[arg(long)]
    pub externally_managed: bool,
}
