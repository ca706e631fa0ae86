//! Forwarding datagrams: a message of a stream is one.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use super::{Tunnel, announce, cannot_listen};

/// The largest datagram.
const LARGEST: usize = 64 << 10;
/// How many datagrams of a client wait for a slow stream; more are lost, as datagrams may be.
const QUEUE: usize = 64;
/// A client that is silent for so long has gone: nobody says goodbye by datagram.
const IDLE: Duration = Duration::from_secs(300);

/// Listens, and opens a stream for each client. Returns once the port is open.
pub async fn forward(tunnel: Tunnel, local: SocketAddr) -> Result<()> {
    let socket = Arc::new(UdpSocket::bind(local).await.map_err(|error| cannot_listen(local, &error))?);
    announce(&tunnel, socket.local_addr()?);
    tokio::spawn(receive(tunnel, socket));
    Ok(())
}

async fn receive(tunnel: Tunnel, socket: Arc<UdpSocket>) {
    let mut clients: HashMap<SocketAddr, mpsc::Sender<Vec<u8>>> = HashMap::new();
    let mut buffer = vec![0; LARGEST];
    loop {
        // A client that is gone leaves an error on the socket, which concerns nobody else.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
        clients.retain(|_, client| !client.is_closed());
        let client = clients.entry(from).or_insert_with(|| {
            let (sender, receiver) = mpsc::channel(QUEUE);
            tokio::spawn(serve(tunnel.clone(), Arc::clone(&socket), from, receiver));
            sender
        });
        let _ = client.try_send(buffer[..length].to_vec());
    }
}

async fn serve(
    tunnel: Tunnel,
    socket: Arc<UdpSocket>,
    client: SocketAddr,
    mut datagrams: mpsc::Receiver<Vec<u8>>,
) {
    let mut stream = match tunnel.open().await {
        Ok(stream) => stream,
        Err(error) => return tunnel.complain(&error),
    };
    let mut buffer = vec![0; LARGEST];
    loop {
        tokio::select! {
            datagram = datagrams.recv() => {
                let Some(datagram) = datagram else { return };
                if stream.write_all(&datagram).await.is_err() || stream.flush().await.is_err() {
                    return;
                }
            }
            read = stream.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return,
                Ok(length) => {
                    let _ = socket.send_to(&buffer[..length], client).await;
                }
            },
            () = tokio::time::sleep(IDLE) => return,
        }
    }
}
