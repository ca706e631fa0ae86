//! The handler's ear in one pod: who speaks is known by where it is heard, not by what it says.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Event;
use kubevirt_component::Queue;
use kubevirt_launcher_rpc::notify::info::notify_info_server::{NotifyInfo, NotifyInfoServer};
use kubevirt_launcher_rpc::notify::info::{NotifyInfoRequest, NotifyInfoResponse};
use kubevirt_launcher_rpc::notify::notify_server::{Notify, NotifyServer};
use kubevirt_launcher_rpc::notify::{DomainEventRequest, K8sEventRequest, Response};
use kubevirt_launcher_rpc::{DomainReport, version};
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Status};

use crate::domains::{Domains, Owner};

/// An event that a launcher has for the users of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// Whose launcher it is.
    pub owner: Owner,
    /// Something went wrong.
    pub warning: bool,
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// What is done with what is heard.
#[derive(Clone)]
pub struct Ear {
    /// Whose launcher it is.
    pub owner: Owner,
    /// Where reports go.
    pub domains: Arc<Domains>,
    /// Who is told that there is something new.
    pub queue: Queue,
    /// Where events go.
    pub notices: mpsc::UnboundedSender<Notice>,
}

impl Ear {
    /// Listens until it is dropped.
    pub async fn listen(self, listener: UnixListener) -> Result<(), tonic::transport::Error> {
        tonic::transport::Server::builder()
            .add_service(NotifyInfoServer::new(self.clone()))
            .add_service(NotifyServer::new(self))
            .serve_with_incoming(UnixListenerStream::new(listener))
            .await
    }

    fn hear(&self, request: &DomainEventRequest) -> Result<(), String> {
        // An error or a deletion says no more than the last report does.
        if request.domain_json.is_empty() {
            return Ok(());
        }
        let report: DomainReport =
            serde_json::from_slice(&request.domain_json).map_err(|error| error.to_string())?;
        let (state, reason) = (report.status.status, report.status.reason);
        if self.domains.tell(&self.owner, report).map_err(|error| error.to_string())? {
            tracing::info!(vmi = %self.owner.key, ?state, ?reason, "a launcher tells of its domain");
            self.queue.add(self.owner.key.clone());
        }
        Ok(())
    }

    fn pass_on(&self, request: &K8sEventRequest) -> Result<(), String> {
        let event: Event = serde_json::from_slice(&request.event_json).map_err(|error| error.to_string())?;
        let notice = Notice {
            owner: self.owner.clone(),
            warning: event.type_.as_deref() == Some("Warning"),
            reason: event.reason.unwrap_or_default().chars().take(128).collect(),
            // The API takes so much.
            message: event.message.unwrap_or_default().chars().take(1000).collect(),
        };
        // Nobody listens while the handler ends.
        let _ = self.notices.send(notice);
        Ok(())
    }
}

fn answer(outcome: Result<(), String>, owner: &Owner) -> tonic::Response<Response> {
    if let Err(error) = &outcome {
        tracing::warn!(vmi = %owner.key, pod = owner.pod, %error, "what a launcher tells is not taken in");
    }
    let message = outcome.err();
    tonic::Response::new(Response { success: message.is_none(), message: message.unwrap_or_default() })
}

#[tonic::async_trait]
impl Notify for Ear {
    async fn handle_domain_event(
        &self,
        request: Request<DomainEventRequest>,
    ) -> Result<tonic::Response<Response>, Status> {
        Ok(answer(self.hear(&request.into_inner()), &self.owner))
    }

    async fn handle_k8s_event(
        &self,
        request: Request<K8sEventRequest>,
    ) -> Result<tonic::Response<Response>, Status> {
        Ok(answer(self.pass_on(&request.into_inner()), &self.owner))
    }
}

#[tonic::async_trait]
impl NotifyInfo for Ear {
    async fn info(
        &self,
        _: Request<NotifyInfoRequest>,
    ) -> Result<tonic::Response<NotifyInfoResponse>, Status> {
        let supported_notify_versions = version::EVENTS.to_vec();
        Ok(tonic::Response::new(NotifyInfoResponse { supported_notify_versions }))
    }
}
