//! One conversation with the launcher of this pod.

use std::path::Path;
use std::time::Duration;

use kubevirt_launcher_rpc::cmd::Response;
use kubevirt_launcher_rpc::cmd::cmd_client::CmdClient;
use kubevirt_launcher_rpc::connect::{self, ConnectError};
use tokio::time::timeout;
use tonic::transport::Channel;

/// The launcher, as these programs speak to it.
pub(super) type Launcher = CmdClient<Channel>;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    /// The system gives us no runtime.
    #[error("cannot begin: {0}")]
    Begin(#[from] std::io::Error),
    /// There is no launcher.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It does not answer.
    #[error("the launcher does not answer within {0:?}")]
    Silent(Duration),
    /// It went away.
    #[error("the launcher does not answer: {0}")]
    Gone(#[from] Box<tonic::Status>),
    /// It would not do it.
    #[error("{0}")]
    Refused(String),
    /// It answered with something else.
    #[error("the launcher's answer cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

/// Connects to the launcher and has a conversation with it, on this thread.
pub(super) fn ask<T>(
    socket: &Path,
    conversation: impl AsyncFnOnce(&mut Launcher) -> Result<T, AskError>,
) -> Result<T, AskError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut launcher = connect::launcher(socket).await?;
        conversation(&mut launcher).await
    })
}

/// Waits for an answer, but not for ever.
pub(super) async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
) -> Result<T, AskError> {
    let answer = timeout(limit, answer).await.map_err(|_| AskError::Silent(limit))?;
    Ok(answer.map_err(Box::new)?.into_inner())
}

/// Whether the launcher did it.
pub(super) fn accepted(response: Option<Response>) -> Result<(), AskError> {
    let response = response.unwrap_or_default();
    if response.success { Ok(()) } else { Err(AskError::Refused(response.message)) }
}
