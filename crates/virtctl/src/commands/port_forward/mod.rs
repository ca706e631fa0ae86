//! `port-forward`: ports of a machine on this one.

mod ports;
mod tcp;
mod udp;

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use kubevirt_streams::{Stream, Upgraded, join};

use self::ports::{Port, Protocol};
use crate::connect::{Connect, Session};
use crate::failure::Failure;
use crate::local;
use crate::output::note;
use crate::subresource::{Error, Kind};
use crate::target::Target;

/// Forward local ports to a virtual machine or virtual machine instance.
///
/// The first argument is type/name or type/name/namespace, where the type is vm or vmi (also in their long and plural
/// forms). Each further argument is a port: protocol/localPort:targetPort, where the protocol is tcp (the default) or
/// udp, and the target port is the local one unless it is given. Local port 0 is any that is free.
///
/// All traffic goes through the Kubernetes API server: for much of it, use a Service.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Forward the local port 8080 to the same port of 'testvmi':
  {program} port-forward vmi/testvmi 8080

  # Forward the local port 8080 to port 9090 of the VM 'testvm' in 'mynamespace':
  {program} port-forward vm/testvm/mynamespace 8080:9090

  # Forward datagrams:
  {program} port-forward vmi/testvmi udp/8080:9090")]
pub struct Arguments {
    /// What to forward to
    #[arg(value_name = "TYPE/NAME[/NAMESPACE]")]
    target: String,
    /// What to forward
    #[arg(value_name = "[PROTOCOL/]LOCAL[:TARGET]", required = true)]
    ports: Vec<String>,
    /// Where the local ports are opened: 0.0.0.0 is on all interfaces
    #[arg(long, default_value = "127.0.0.1")]
    address: String,
    /// Forward standard input and output instead of a local port; takes one port only
    #[arg(long)]
    stdio: bool,
}

/// One port of one machine, and how to get there.
#[derive(Clone, Debug)]
struct Tunnel {
    session: Session,
    kind: Kind,
    namespace: String,
    name: String,
    port: Port,
}

impl Tunnel {
    async fn open(&self) -> Result<Stream<Upgraded>, Error> {
        let path = format!("portforward/{}/{}", self.port.target, self.port.protocol.word());
        self.session.stream(self.kind, &self.namespace, &self.name, &path, &[]).await
    }

    /// Tells what went wrong with one connection; others go on.
    fn complain(&self, error: &dyn std::fmt::Display) {
        let (kind, name, namespace) = (self.kind.short(), &self.name, &self.namespace);
        note!("can't access {kind}/{name}.{namespace} at {}: {error}", self.port.target);
    }
}

impl Arguments {
    /// Listens until the user has enough.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let target = Target::parse(&self.target)?;
        let ports = self.ports.iter().map(|text| Port::parse(text)).collect::<Result<Vec<_>, _>>()?;
        let session = connect.session().await?;
        let namespace = target.namespace_or(&session.namespace).to_owned();
        let tunnels = ports.into_iter().map(|port| Tunnel {
            session: session.clone(),
            kind: target.kind,
            namespace: namespace.clone(),
            name: target.name.clone(),
            port,
        });
        let tunnels: Vec<Tunnel> = tunnels.collect();
        if self.stdio {
            let [tunnel] = &tunnels[..] else {
                let what = "only one port supported when forwarding to stdout";
                return Err(Failure::new(what, "Give one port, or leave --stdio away.").into());
            };
            return through_standard_streams(tunnel).await;
        }
        for tunnel in tunnels {
            let local = local::address(&self.address, tunnel.port.local).await?;
            match tunnel.port.protocol {
                Protocol::Tcp => tcp::forward(tunnel, local).await?,
                Protocol::Udp => udp::forward(tunnel, local).await?,
            }
        }
        tokio::signal::ctrl_c().await.context("signals cannot be waited for")?;
        Ok(ExitCode::SUCCESS)
    }
}

async fn through_standard_streams(tunnel: &Tunnel) -> Result<ExitCode> {
    let stream = tunnel.open().await?;
    join(tokio::io::join(tokio::io::stdin(), tokio::io::stdout()), stream).await?;
    Ok(ExitCode::SUCCESS)
}

/// What a user reads when a port is open.
fn announce(tunnel: &Tunnel, local: SocketAddr) {
    note!("forwarding {} {local} to {}", tunnel.port.protocol.word(), tunnel.port.target);
}

fn cannot_listen(local: SocketAddr, error: &std::io::Error) -> Failure {
    let next = "Choose another local port, as in 8080:80; 0 is any that is free.";
    Failure::new(format!("{local} cannot be listened on: {error}"), next)
}
