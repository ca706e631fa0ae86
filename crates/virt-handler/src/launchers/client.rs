//! What the handler asks of a launcher.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::cmd::cmd_client::CmdClient;
use kubevirt_launcher_rpc::cmd::info::CmdInfoRequest;
use kubevirt_launcher_rpc::cmd::info::cmd_info_client::CmdInfoClient;
use kubevirt_launcher_rpc::cmd::{self, EmptyRequest, Response, VirtualMachineOptions, VmiRequest};
use kubevirt_launcher_rpc::connect::{self, Closed, ConnectError, MESSAGE_LIMIT};
use kubevirt_launcher_rpc::version::{COMMANDS, highest_common};
use tokio::time::timeout;
use tonic::Status;
use tonic::transport::Channel;

/// How long a question may take.
const SHORT: Duration = Duration::from_secs(5);

/// How long a command may take: disks may have to be made first.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// Why a launcher did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It says why.
    #[error("{0}")]
    Refused(String),
    /// It is gone, which is what some commands are for.
    #[error("the launcher went away: {0}")]
    Disconnected(Box<Status>),
    /// It does not answer.
    #[error("the launcher has not answered within {0:?}")]
    Silent(Duration),
    /// It knows another version of the protocol.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// What it says, or what it is told, is no JSON.
    #[error("the launcher's words cannot be understood: {0}")]
    Unreadable(#[from] serde_json::Error),
}

impl From<Status> for CommandError {
    fn from(status: Status) -> Self {
        // What breaks on the way has a cause on this side. What the launcher answers has none.
        match std::error::Error::source(&status) {
            Some(_) => Self::Disconnected(Box::new(status)),
            None => Self::Refused(format!("{}: {}", status.code(), status.message())),
        }
    }
}

impl CommandError {
    /// Whether the launcher is no longer there.
    pub fn is_disconnected(&self) -> bool {
        matches!(self, Self::Disconnected(_))
    }
}

/// A launcher that answers; clones share the connection.
#[derive(Clone, Debug)]
pub struct Launcher(Arc<Clients>);

#[derive(Debug)]
struct Clients {
    commands: CmdClient<Channel>,
    info: CmdInfoClient<Channel>,
}

impl Launcher {
    /// Connects to a launcher and agrees on a version. The second is resolved when the connection ends.
    pub async fn connect(socket: &Path) -> Result<(Self, Closed), ConnectError> {
        let (channel, closed) = connect::channel(socket).await?;
        let mut info = CmdInfoClient::new(channel.clone());
        let told = match timeout(SHORT, info.info(CmdInfoRequest {})).await {
            Ok(told) => told.map_err(Box::new)?,
            Err(_) => return Err(Box::new(Status::deadline_exceeded("it does not answer")).into()),
        };
        highest_common(&COMMANDS, &told.into_inner().supported_cmd_versions)?;
        let commands = CmdClient::new(channel)
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT);
        Ok((Self(Arc::new(Clients { commands, info })), closed))
    }

    /// Whether it is there at all. QEMU is not asked.
    pub async fn is_there(&self) -> bool {
        let mut info = self.0.info.clone();
        matches!(timeout(SHORT, info.info(CmdInfoRequest {})).await, Ok(Ok(_)))
    }

    /// Its domain, if it has one.
    pub async fn domain(&self) -> Result<Option<DomainReport>, CommandError> {
        let mut commands = self.0.commands.clone();
        let answer = within(SHORT, commands.get_domain(EmptyRequest {})).await?;
        done(answer.response)?;
        if answer.domain.is_empty() { Ok(None) } else { Ok(Some(serde_json::from_str(&answer.domain)?)) }
    }

    /// Starts the machine, or brings a running one in line with its VMI.
    pub async fn sync(
        &self,
        vmi: &VirtualMachineInstance,
        options: VirtualMachineOptions,
    ) -> Result<(), CommandError> {
        let mut commands = self.0.commands.clone();
        done(Some(within(LONG, commands.sync_virtual_machine(request(vmi, Some(options))?)).await?))
    }

    /// Asks the guest to shut down.
    pub async fn shut_down(&self, vmi: &VirtualMachineInstance) -> Result<(), CommandError> {
        let mut commands = self.0.commands.clone();
        done(Some(within(LONG, commands.shutdown_virtual_machine(request(vmi, None)?)).await?))
    }

    /// Ends the machine now.
    pub async fn kill(&self, vmi: &VirtualMachineInstance) -> Result<(), CommandError> {
        let mut commands = self.0.commands.clone();
        done(Some(within(LONG, commands.kill_virtual_machine(request(vmi, None)?)).await?))
    }

    /// Ends the machine if it still runs, and forgets it.
    pub async fn delete(&self, vmi: &VirtualMachineInstance) -> Result<(), CommandError> {
        let mut commands = self.0.commands.clone();
        done(Some(within(LONG, commands.delete_virtual_machine(request(vmi, None)?)).await?))
    }

    /// Lets the guest run again.
    pub async fn unpause(&self, vmi: &VirtualMachineInstance) -> Result<(), CommandError> {
        let mut commands = self.0.commands.clone();
        done(Some(within(LONG, commands.unpause_virtual_machine(request(vmi, None)?)).await?))
    }

    /// Begins to write the guest's memory to a file.
    pub async fn dump_memory(&self, vmi: &VirtualMachineInstance, path: &str) -> Result<(), CommandError> {
        let vmi = request(vmi, None)?.vmi;
        let wish = cmd::MemoryDumpRequest { vmi, dump_path: path.to_owned() };
        let mut commands = self.0.commands.clone();
        done(Some(within(LONG, commands.virtual_machine_memory_dump(wish)).await?))
    }

    /// All other commands.
    pub fn commands(&self) -> CmdClient<Channel> {
        self.0.commands.clone()
    }
}

/// A request about an instance.
pub fn request(
    vmi: &VirtualMachineInstance,
    options: Option<VirtualMachineOptions>,
) -> Result<VmiRequest, serde_json::Error> {
    Ok(VmiRequest {
        vmi: Some(cmd::Vmi { vmi_json: serde_json::to_vec(vmi)? }),
        options,
        ..VmiRequest::default()
    })
}

pub(super) async fn within<T>(
    time: Duration,
    answer: impl Future<Output = Result<tonic::Response<T>, Status>>,
) -> Result<T, CommandError> {
    match timeout(time, answer).await {
        Ok(Ok(answer)) => Ok(answer.into_inner()),
        Ok(Err(status)) => Err(status.into()),
        Err(_) => Err(CommandError::Silent(time)),
    }
}

pub(super) fn done(response: Option<Response>) -> Result<(), CommandError> {
    match response {
        Some(response) if !response.success => Err(CommandError::Refused(response.message)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixListener;

    use super::*;
    use crate::testing::Folder;

    async fn ask(commands: &CmdClient<Channel>) -> CommandError {
        let mut commands = commands.clone();
        within(SHORT, commands.get_domain(EmptyRequest {})).await.unwrap_err()
    }

    #[tokio::test]
    async fn a_launcher_that_says_no_is_still_there() {
        let folder = Folder::new();
        let path = folder.path().join("sock");
        // It knows no service at all, and has a runtime of its own: its end also ends its connections.
        let launcher = tokio::runtime::Runtime::new().unwrap();
        let inside = launcher.enter();
        let incoming = connect::listen(&path).unwrap();
        drop(inside);
        let server = tonic::transport::Server::builder().add_routes(tonic::service::Routes::default());
        launcher.spawn(server.serve_with_incoming(incoming));
        let (channel, closed) = connect::channel(&path).await.unwrap();
        let commands = CmdClient::new(channel);
        let no = ask(&commands).await;
        assert!(matches!(&no, CommandError::Refused(why) if !why.is_empty()), "{no:?}");
        launcher.shutdown_background();
        let _ = closed.await;
        for _ in 0..2 {
            let gone = ask(&commands).await;
            assert!(gone.is_disconnected(), "{gone:?}");
        }
    }

    #[tokio::test]
    async fn a_launcher_that_hangs_up_is_gone() {
        let folder = Folder::new();
        let path = folder.path().join("sock");
        let listener = UnixListener::bind(&path).unwrap();
        let hang_up = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            // The first words of a client, before what it wants.
            tokio::io::AsyncReadExt::read_exact(&mut stream, &mut [0; 24]).await.unwrap();
        });
        let (channel, _) = connect::channel(&path).await.unwrap();
        let gone = ask(&CmdClient::new(channel)).await;
        assert!(gone.is_disconnected(), "{gone:?}");
        hang_up.await.unwrap();
    }
}
