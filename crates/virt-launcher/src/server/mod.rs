//! The commands of the handler, each handed to the part of the launcher that carries it out.

mod answer;
mod commands;

use std::io;
use std::path::Path;
use std::sync::Arc;

use kubevirt_launcher_rpc::cmd::cmd_server::CmdServer;
use kubevirt_launcher_rpc::cmd::info::cmd_info_server::{CmdInfo, CmdInfoServer};
use kubevirt_launcher_rpc::cmd::info::{CmdInfoRequest, CmdInfoResponse};
use kubevirt_launcher_rpc::connect::{self, MESSAGE_LIMIT};
use kubevirt_launcher_rpc::{LAUNCHER_SOCKET, STARTING_LAUNCHER_SOCKET, version};
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use crate::launcher::Launcher;

/// The launcher, as handlers see it.
#[derive(Clone)]
pub(crate) struct Commands {
    pub(crate) launcher: Arc<Launcher>,
}

/// Begins to listen; the socket is there under its own name only once commands are answered.
pub fn listen(launcher: Arc<Launcher>, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let starting = folder.join(STARTING_LAUNCHER_SOCKET);
    let incoming = connect::listen(&starting)?;
    let commands = Commands { launcher };
    let server = Server::builder()
        .add_service(CmdInfoServer::new(commands.clone()))
        .add_service(
            CmdServer::new(commands)
                .max_decoding_message_size(MESSAGE_LIMIT)
                .max_encoding_message_size(MESSAGE_LIMIT),
        )
        .serve_with_incoming(incoming);
    tokio::spawn(async move {
        if let Err(error) = server.await {
            tracing::error!(%error, "commands are no longer heard");
        }
    });
    std::fs::rename(starting, folder.join(LAUNCHER_SOCKET))
}

#[tonic::async_trait]
impl CmdInfo for Commands {
    async fn info(&self, _: Request<CmdInfoRequest>) -> Result<Response<CmdInfoResponse>, Status> {
        Ok(Response::new(CmdInfoResponse { supported_cmd_versions: version::COMMANDS.to_vec() }))
    }
}
