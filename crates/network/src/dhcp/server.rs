//! Listens for the guest's DHCP requests and answers them.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
};

use rustix::net::netdevice::name_to_index;
use socket2::{Domain, Socket, Type};
use tokio::{net::UdpSocket, task::JoinSet};

use super::{Settings, v4, v6};
use crate::{Mac, Wiring};

/// Larger than any request; they come one at a time.
const BUFFER: usize = 2048;

/// Why DHCP is not served.
#[derive(Debug, thiserror::Error)]
pub enum DhcpError {
    /// The bridge is not there: phase 1 has not been here, or in another network namespace.
    #[error("there is no bridge {0}: the network has not been wired up here")]
    NoBridge(String),
    /// The port may not be used.
    #[error("cannot listen on port {port}: it needs the capability NET_BIND_SERVICE")]
    NotAllowed {
        /// The port.
        port: u16,
    },
    /// The kernel wants a privilege for what it lets anyone do since 5.7.
    #[error("cannot bind a socket to {device}: before Linux 5.7 it needs the capability NET_RAW")]
    OldKernel {
        /// The bridge.
        device: String,
    },
    /// Anything else that sockets say.
    #[error("cannot listen on port {port} of {device}: {source}")]
    Listen {
        /// The bridge.
        device: String,
        /// The port.
        port: u16,
        /// What the kernel said.
        source: io::Error,
    },
}

/// The DHCP servers of one network; they end when this is dropped.
#[derive(Debug)]
pub struct Server {
    tasks: JoinSet<io::Error>,
}

impl Server {
    /// Why a server ended, which none does by itself. Waits forever where there is none.
    pub async fn failed(&mut self) -> io::Error {
        match self.tasks.join_next().await {
            Some(Ok(error)) => error,
            Some(Err(error)) => error.into(),
            None => std::future::pending().await,
        }
    }
}

/// Starts to serve what a wiring says is to be served, which may be nothing. Call it within a tokio runtime.
pub fn serve(wiring: &Wiring, settings: &Settings) -> Result<Server, DhcpError> {
    let mut tasks = JoinSet::new();
    if let (Some(bridge), Some(lease)) = (&wiring.bridge, &wiring.dhcp4) {
        let responder = v4::Responder::new(lease, wiring.mtu, settings);
        let socket = listen(bridge, Domain::IPV4, v4::SERVER_PORT)?;
        tasks.spawn(async move {
            answer(&socket, |packet, _| {
                let reply = responder.reply(packet)?;
                Some((reply.packet, reply.to.into()))
            })
            .await
        });
    }
    if let (Some(bridge), Some(lease)) = (&wiring.bridge, &wiring.dhcp6) {
        let responder = v6::Responder::new(lease, Mac::GATEWAY, &settings.resolv.servers6);
        let socket = listen(bridge, Domain::IPV6, v6::SERVER_PORT)?;
        tasks.spawn(
            async move { answer(&socket, |packet, from| Some((responder.reply(packet)?, from))).await },
        );
    }
    Ok(Server { tasks })
}

/// Answers until nothing can be received any more.
async fn answer(
    socket: &UdpSocket,
    reply: impl Fn(&[u8], SocketAddr) -> Option<(Vec<u8>, SocketAddr)>,
) -> io::Error {
    /// One error may be the echo of an earlier reply that did not arrive.
    const PATIENCE: u32 = 16;
    let mut buffer = [0; BUFFER];
    let mut errors = 0;
    loop {
        match socket.recv_from(&mut buffer).await {
            Ok((length, from)) => {
                errors = 0;
                if let Some((packet, to)) = reply(&buffer[..length], from) {
                    // A reply that gets lost is asked for again.
                    let _ = socket.send_to(&packet, to).await;
                }
            }
            Err(error) if errors == PATIENCE => return error,
            Err(_) => errors += 1,
        }
    }
}

fn listen(device: &str, domain: Domain, port: u16) -> Result<UdpSocket, DhcpError> {
    let failed = |source: io::Error| DhcpError::Listen { device: device.to_owned(), port, source };
    let socket = Socket::new(domain, Type::DGRAM.nonblocking(), None).map_err(failed)?;
    let index = name_to_index(&socket, device).map_err(|_| DhcpError::NoBridge(device.to_owned()))?;
    socket.bind_device(Some(device.as_bytes())).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => DhcpError::OldKernel { device: device.to_owned() },
        _ => failed(error),
    })?;
    bind(&socket, domain, index, port).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => DhcpError::NotAllowed { port },
        _ => failed(error),
    })?;
    UdpSocket::from_std(socket.into()).map_err(failed)
}

fn bind(socket: &Socket, domain: Domain, index: u32, port: u16) -> io::Result<()> {
    socket.set_reuse_address(true)?;
    if domain == Domain::IPV4 {
        socket.set_broadcast(true)?;
        return socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into());
    }
    socket.set_only_v6(true)?;
    socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)).into())?;
    socket.join_multicast_v6(&v6::SERVERS, index)
}
