//! The kubelet's side of device plugins: its words, and registering with it.

use std::path::Path;
use std::time::Duration;

use kubevirt_launcher_rpc::connect::{self, ConnectError};
use tonic::Status;

/// The protocol.
#[allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    reason = "generated; the protocol file says what each is"
)]
pub mod api {
    tonic::include_proto!("v1beta1");
}

/// The version that the kubelet knows.
const VERSION: &str = "v1beta1";
/// The kubelet's socket, in the folder of device plugins.
pub const SOCKET: &str = "kubelet.sock";
/// A device that can be given out.
pub const HEALTHY: &str = "Healthy";
/// A device that cannot be given out for now.
pub const UNHEALTHY: &str = "Unhealthy";
/// The longest that the kubelet may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why the kubelet does not know of a plugin.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// It does not listen.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It refused.
    #[error("the kubelet refused: {0}")]
    Refused(#[from] Box<Status>),
    /// It did not answer.
    #[error("the kubelet did not answer within {PATIENCE:?}")]
    Silent,
}

/// Tells the kubelet of a plugin that listens beside it.
pub async fn register(folder: &Path, socket: &str, resource: &str) -> Result<(), RegisterError> {
    let request = api::RegisterRequest {
        version: VERSION.to_owned(),
        endpoint: socket.to_owned(),
        resource_name: resource.to_owned(),
        options: None,
    };
    let ask = async {
        let (channel, _) = connect::channel(&folder.join(SOCKET)).await?;
        let mut kubelet = api::registration_client::RegistrationClient::new(channel);
        kubelet.register(request).await.map_err(Box::new)?;
        Ok(())
    };
    tokio::time::timeout(PATIENCE, ask).await.unwrap_or(Err(RegisterError::Silent))
}
