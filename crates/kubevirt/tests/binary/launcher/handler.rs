//! The ear of a handler: it notes what a launcher tells.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kubevirt_launcher_rpc::notify::info::notify_info_server::{NotifyInfo, NotifyInfoServer};
use kubevirt_launcher_rpc::notify::info::{NotifyInfoRequest, NotifyInfoResponse};
use kubevirt_launcher_rpc::notify::notify_server::{Notify, NotifyServer};
use kubevirt_launcher_rpc::notify::{DomainEventRequest, K8sEventRequest, Response};
use kubevirt_launcher_rpc::{DomainReport, connect};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tonic::{Request, Status};

/// What a launcher has told so far.
#[derive(Clone)]
pub(crate) struct Heard {
    reports: Arc<watch::Sender<Vec<DomainReport>>>,
    events: Arc<watch::Sender<Vec<Value>>>,
}

/// A handler that listens until it is dropped.
pub(crate) struct Handler {
    pub(crate) heard: Heard,
    /// Its own, so that its end also ends its connections, as the end of a process does.
    runtime: Option<Runtime>,
}

impl Handler {
    /// Listens in the launcher's shared folder.
    pub(crate) fn listen(socket: &Path) -> Self {
        let heard = Heard { reports: Arc::default(), events: Arc::default() };
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let inside = runtime.enter();
        let incoming = connect::listen(socket).unwrap();
        let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(socket, everyone).unwrap();
        let server = tonic::transport::Server::builder()
            .add_service(NotifyInfoServer::new(heard.clone()))
            .add_service(NotifyServer::new(heard.clone()))
            .serve_with_incoming(incoming);
        runtime.spawn(async move { server.await.unwrap() });
        drop(inside);
        Self { heard, runtime: Some(runtime) }
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Heard {
    /// Waits for a report that the test wants to see; the latest, if there are several.
    pub(crate) async fn wait(&self, what: &str, wanted: impl Fn(&DomainReport) -> bool) -> DomainReport {
        let mut follow = self.reports.subscribe();
        let found = tokio::time::timeout(PATIENCE, follow.wait_for(|all| all.iter().any(&wanted))).await;
        match found {
            Ok(Ok(all)) => all.iter().rev().find(|report| wanted(report)).unwrap().clone(),
            _ => panic!("never heard of {what}: {:#?}", self.last().map(|report| report.status)),
        }
    }

    /// All reports so far.
    pub(crate) fn all(&self) -> Vec<DomainReport> {
        self.reports.borrow().clone()
    }

    /// The latest report.
    pub(crate) fn last(&self) -> Option<DomainReport> {
        self.reports.borrow().last().cloned()
    }

    /// Waits for an event for the users of the cluster.
    pub(crate) async fn wait_for_event(&self, reason: &str, words: &str) {
        let mut follow = self.events.subscribe();
        let is_it = |event: &Value| {
            event["reason"] == reason
                && event["message"].as_str().is_some_and(|message| message.contains(words))
        };
        let found = tokio::time::timeout(PATIENCE, follow.wait_for(|all| all.iter().any(is_it))).await;
        assert!(matches!(found, Ok(Ok(_))), "never heard of {reason}: {:#?}", self.events.borrow());
    }
}

/// The longest that anything may take; generous, for busy machines.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

#[tonic::async_trait]
impl Notify for Heard {
    async fn handle_domain_event(
        &self,
        request: Request<DomainEventRequest>,
    ) -> Result<tonic::Response<Response>, Status> {
        let report: DomainReport = serde_json::from_slice(&request.into_inner().domain_json).unwrap();
        self.reports.send_modify(|all| all.push(report));
        Ok(tonic::Response::new(Response { success: true, message: String::new() }))
    }

    async fn handle_k8s_event(
        &self,
        request: Request<K8sEventRequest>,
    ) -> Result<tonic::Response<Response>, Status> {
        let event = serde_json::from_slice(&request.into_inner().event_json).unwrap();
        self.events.send_modify(|all| all.push(event));
        Ok(tonic::Response::new(Response { success: true, message: String::new() }))
    }
}

#[tonic::async_trait]
impl NotifyInfo for Heard {
    async fn info(
        &self,
        _: Request<NotifyInfoRequest>,
    ) -> Result<tonic::Response<NotifyInfoResponse>, Status> {
        Ok(tonic::Response::new(NotifyInfoResponse { supported_notify_versions: vec![1] }))
    }
}
