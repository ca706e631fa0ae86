//! Forwarding connections.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use kubevirt_streams::join;
use tokio::net::{TcpListener, TcpStream};

use super::{Tunnel, announce, cannot_listen};
use crate::output::note;

/// Listens, and opens a stream for each connection. Returns once the port is open.
pub async fn forward(tunnel: Tunnel, local: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(local).await.map_err(|error| cannot_listen(local, &error))?;
    announce(&tunnel, listener.local_addr()?);
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((connection, _)) => {
                    tokio::spawn(carry(tunnel.clone(), connection));
                }
                // Too many open files, most likely: some will be closed.
                Err(error) => {
                    tunnel.complain(&error);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    });
    Ok(())
}

async fn carry(tunnel: Tunnel, connection: TcpStream) {
    let _ = connection.set_nodelay(true);
    match tunnel.open().await {
        Ok(stream) => {
            if let Err(error) = join(connection, stream).await {
                note!("error handling connection for {}: {error}", tunnel.port.local);
            }
        }
        Err(error) => tunnel.complain(&error),
    }
}
