//! Sockets of guests.
#![expect(unsafe_code, reason = "no library that we have connects to addresses of vsock")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use kubevirt_component::tls::Files;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use self::guests::config;

mod guests;

/// How long a guest may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connects to a port of a guest.
pub(super) async fn connect(cid: u32, port: u32) -> io::Result<UnixStream> {
    let said = |error: io::Error| io::Error::new(error.kind(), format!("vsock {cid}:{port}: {error}"));
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::VSOCK, SocketType::STREAM, flags, None)?;
    let begun = begin(&socket, cid, port);
    // A stream of bytes is read and written in the same way, whatever it is made of.
    let stream = UnixStream::from_std(socket.into())?;
    let connected = async {
        match begun {
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {
                stream.writable().await?;
                sockopt::socket_error(&stream)?.map_err(io::Error::from)
            }
            begun => begun,
        }
    };
    let connected = tokio::time::timeout(PATIENCE, connected).await;
    connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(said)?;
    Ok(stream)
}

fn begin(socket: &OwnedFd, cid: u32, port: u32) -> io::Result<()> {
    let address = libc::sockaddr_vm {
        svm_family: libc::AF_VSOCK as libc::sa_family_t,
        svm_reserved1: 0,
        svm_port: port,
        svm_cid: cid,
        svm_zero: [0; 4],
    };
    let length = size_of::<libc::sockaddr_vm>() as libc::socklen_t;
    // SAFETY: the address lives for the call and its length is its own.
    let result = unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Speaks TLS to a guest, with the node's certificate. Guests have certificates of their own making.
pub(super) async fn secure(connection: UnixStream, own: &Files) -> io::Result<TlsStream<UnixStream>> {
    let config = Arc::new(config(own).map_err(io::Error::other)?);
    let name = rustls::pki_types::ServerName::try_from("guest").map_err(io::Error::other)?;
    let shaking = TlsConnector::from(config).connect(name, connection);
    tokio::time::timeout(PATIENCE, shaking).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
