//! Calling and listening on unix sockets.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use crate::version::{COMMANDS, EVENTS, NoCommonVersion, highest_common};
use crate::{cmd, notify, target};

/// The longest that the other side may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why the other side cannot be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody listens.
    #[error("nobody answers at {path}: {source}")]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: tonic::transport::Error,
    },
    /// It did not say which versions it knows.
    #[error("cannot learn the version of the other side: {0}")]
    Handshake(#[from] Box<tonic::Status>),
    /// It speaks another protocol.
    #[error(transparent)]
    Version(#[from] NoCommonVersion),
}

/// Resolves when a connection is over.
pub type Closed = oneshot::Receiver<()>;

/// A channel to whoever listens at the socket, and its end. It connects once: who comes later to the same path
/// may be somebody else.
pub async fn channel(path: &Path) -> Result<(Channel, Closed), ConnectError> {
    let (open, closed) = oneshot::channel();
    let open = Arc::new(Mutex::new(Some(open)));
    let target = path.to_owned();
    let connector = service_fn(move |_: Uri| {
        let open = open.lock().ok().and_then(|mut open| open.take());
        let target = target.clone();
        async move {
            let open = open.ok_or(io::ErrorKind::NotConnected)?;
            let stream = UnixStream::connect(target).await?;
            io::Result::Ok(TokioIo::new(Watched { stream, _open: open }))
        }
    });
    // The address is never looked up: the connector knows where to go.
    let endpoint = Endpoint::from_static("http://localhost").connect_timeout(PATIENCE);
    let channel = endpoint.connect_with_connector(connector).await;
    match channel {
        Ok(channel) => Ok((channel, closed)),
        Err(source) => Err(ConnectError::Unreachable { path: path.to_owned(), source }),
    }
}

/// A stream that lets go of a sender when it is dropped, which is when its connection is over.
struct Watched {
    stream: UnixStream,
    _open: oneshot::Sender<()>,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Connects to a launcher and agrees on a version.
pub async fn launcher(path: &Path) -> Result<cmd::cmd_client::CmdClient<Channel>, ConnectError> {
    let (channel, _) = channel(path).await?;
    let mut info = cmd::info::cmd_info_client::CmdInfoClient::new(channel.clone());
    let told = info.info(cmd::info::CmdInfoRequest {}).await.map_err(Box::new)?;
    highest_common(&COMMANDS, &told.into_inner().supported_cmd_versions)?;
    Ok(cmd::cmd_client::CmdClient::new(channel).max_decoding_message_size(MESSAGE_LIMIT))
}

/// Connects to the launcher that a machine goes to.
pub async fn target(path: &Path) -> Result<target::target_client::TargetClient<Channel>, ConnectError> {
    let (channel, _) = channel(path).await?;
    Ok(target::target_client::TargetClient::new(channel))
}

/// Connects to the handler's ear and agrees on a version.
pub async fn handler(
    path: &Path,
) -> Result<(notify::notify_client::NotifyClient<Channel>, Closed), ConnectError> {
    let (channel, closed) = channel(path).await?;
    let mut info = notify::info::notify_info_client::NotifyInfoClient::new(channel.clone());
    let told = info.info(notify::info::NotifyInfoRequest {}).await.map_err(Box::new)?;
    highest_common(&EVENTS, &told.into_inner().supported_notify_versions)?;
    Ok((notify::notify_client::NotifyClient::new(channel), closed))
}

/// The largest message: a screenshot of a large display has its place in it.
pub const MESSAGE_LIMIT: usize = 64 << 20;

/// Listens at a path; a socket that somebody left there is taken away first.
pub fn listen(path: &Path) -> io::Result<UnixListenerStream> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(path).map(UnixListenerStream::new)
}
