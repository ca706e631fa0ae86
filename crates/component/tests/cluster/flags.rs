//! The flags of a daemon that has only an API server.

use std::net::Ipv4Addr;

use kubevirt_component::Common;
use xtask::cluster::Cluster;

pub fn common(cluster: &Cluster) -> Common {
    Common {
        listen: Ipv4Addr::LOCALHOST.into(),
        port: None,
        verbosity: 2,
        kubeconfig: Some(cluster.kubeconfig()),
        master: None,
        tls_cert_file: None,
        tls_key_file: None,
        namespace: None,
    }
}
