//! The handler's ear: keeps what launchers tell.

use std::path::Path;
use std::time::Duration;

use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::connect;
use kubevirt_launcher_rpc::notify::info::notify_info_server::{NotifyInfo, NotifyInfoServer};
use kubevirt_launcher_rpc::notify::info::{NotifyInfoRequest, NotifyInfoResponse};
use kubevirt_launcher_rpc::notify::notify_server::{Notify, NotifyServer};
use kubevirt_launcher_rpc::notify::{DomainEventRequest, K8sEventRequest, Response};
use kubevirt_launcher_rpc::version;
use tokio::sync::watch;
use tonic::transport::Server;
use tonic::{Request, Status};

/// The longest that any step may take; generous, for busy machines.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// What a launcher has told.
#[derive(Clone)]
pub(crate) struct Ear {
    reports: watch::Receiver<Vec<DomainReport>>,
}

impl Ear {
    /// Listens at a socket.
    pub(crate) fn at(socket: &Path) -> Self {
        let (heard, reports) = watch::channel(Vec::new());
        let incoming = connect::listen(socket).unwrap();
        let server = Server::builder()
            .add_service(NotifyInfoServer::new(Versions))
            .add_service(NotifyServer::new(Hearing(heard)))
            .serve_with_incoming(incoming);
        tokio::spawn(server);
        Self { reports }
    }

    /// All reports so far.
    pub(crate) fn reports(&self) -> Vec<DomainReport> {
        self.reports.borrow().clone()
    }

    /// Waits for a report.
    pub(crate) async fn hear(&self, what: &str, is_it: impl Fn(&DomainReport) -> bool) -> DomainReport {
        let mut reports = self.reports.clone();
        let heard = tokio::time::timeout(PATIENCE, reports.wait_for(|all| all.iter().any(&is_it))).await;
        match heard {
            Ok(all) => all.unwrap().iter().rev().find(|report| is_it(report)).unwrap().clone(),
            Err(_) => {
                let last = self.reports().pop();
                panic!("{what}: nothing came of it: {:#?}", last.map(|report| report.status))
            }
        }
    }
}

struct Hearing(watch::Sender<Vec<DomainReport>>);

#[tonic::async_trait]
impl Notify for Hearing {
    async fn handle_domain_event(
        &self,
        request: Request<DomainEventRequest>,
    ) -> Result<tonic::Response<Response>, Status> {
        let report = serde_json::from_slice(&request.into_inner().domain_json).unwrap();
        self.0.send_modify(|all| all.push(report));
        Ok(Response { success: true, message: String::new() }.into())
    }

    async fn handle_k8s_event(
        &self,
        _: Request<K8sEventRequest>,
    ) -> Result<tonic::Response<Response>, Status> {
        Ok(Response { success: true, message: String::new() }.into())
    }
}

struct Versions;

#[tonic::async_trait]
impl NotifyInfo for Versions {
    async fn info(
        &self,
        _: Request<NotifyInfoRequest>,
    ) -> Result<tonic::Response<NotifyInfoResponse>, Status> {
        let supported_notify_versions = version::EVENTS.to_vec();
        Ok(NotifyInfoResponse { supported_notify_versions }.into())
    }
}
