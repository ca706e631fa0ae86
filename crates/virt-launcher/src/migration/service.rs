//! What the source's launcher asks of this one, each call handed on.

use std::io;
use std::path::Path;
use std::sync::Arc;

use kubevirt_launcher_rpc::connect;
use kubevirt_launcher_rpc::target::target_server::{Target, TargetServer};
use kubevirt_launcher_rpc::target::{Answer, MigrationRef, ReceiveRequest, TakeOverRequest};
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use crate::error::CommandError;
use crate::launcher::Launcher;

/// The launcher, as the source sees it.
struct Service {
    launcher: Arc<Launcher>,
}

/// Begins to listen for the source.
pub(super) fn listen(launcher: Arc<Launcher>, socket: &Path) -> io::Result<()> {
    let incoming = connect::listen(socket)?;
    let server =
        Server::builder().add_service(TargetServer::new(Service { launcher })).serve_with_incoming(incoming);
    tokio::spawn(async move {
        if let Err(error) = server.await {
            tracing::error!(%error, "the source is no longer heard");
        }
    });
    Ok(())
}

#[tonic::async_trait]
impl Target for Service {
    async fn receive(&self, request: Request<ReceiveRequest>) -> Result<Response<Answer>, Status> {
        // On its own: a caller that hangs up must not leave a QEMU behind that nobody knows of.
        let launcher = self.launcher.clone();
        let work = tokio::spawn(async move { launcher.receive(request.into_inner()).await });
        answer("receive", work.await)
    }

    async fn confirm(&self, request: Request<MigrationRef>) -> Result<Response<Answer>, Status> {
        answer("confirm", Ok(self.launcher.confirm(&request.into_inner().migration).await))
    }

    async fn take_over(&self, request: Request<TakeOverRequest>) -> Result<Response<Answer>, Status> {
        let launcher = self.launcher.clone();
        let work = tokio::spawn(async move { launcher.take_over(&request.into_inner()).await });
        answer("take over", work.await)
    }

    async fn recover(&self, request: Request<MigrationRef>) -> Result<Response<Answer>, Status> {
        answer("recover", Ok(self.launcher.recover(&request.into_inner().migration).await))
    }

    async fn abandon(&self, request: Request<MigrationRef>) -> Result<Response<Answer>, Status> {
        let launcher = self.launcher.clone();
        let work = tokio::spawn(async move { launcher.abandon(&request.into_inner().migration).await });
        answer("abandon", work.await)
    }
}

fn answer(
    call: &str,
    outcome: Result<Result<(), CommandError>, tokio::task::JoinError>,
) -> Result<Response<Answer>, Status> {
    match outcome {
        Ok(Ok(())) => {
            tracing::info!(call, "done as the source asked");
            Ok(Answer { done: true, refusal: String::new() }.into())
        }
        Ok(Err(error)) => {
            tracing::warn!(call, %error, "the source was refused");
            Ok(Answer { done: false, refusal: error.to_string() }.into())
        }
        Err(error) => Err(Status::internal(error.to_string())),
    }
}
