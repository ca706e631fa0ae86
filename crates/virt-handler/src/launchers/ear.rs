//! The handler's ear in one pod: who speaks is known by where it is heard, not by what it says.

use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Event;
use kubevirt_component::Queue;
use kubevirt_launcher_rpc::notify::info::notify_info_server::{NotifyInfo, NotifyInfoServer};
use kubevirt_launcher_rpc::notify::info::{NotifyInfoRequest, NotifyInfoResponse};
use kubevirt_launcher_rpc::notify::notify_server::{Notify, NotifyServer};
use kubevirt_launcher_rpc::notify::{DomainEventRequest, K8sEventRequest, Response};
use kubevirt_launcher_rpc::{DomainReport, version};
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Status};

use super::allowance::{Allowance, Verdict};
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
    domains: Arc<Domains>,
    /// Who is told that there is something new.
    queue: Queue,
    /// Where events go.
    notices: mpsc::UnboundedSender<Notice>,
    /// How many more.
    allowance: Arc<Mutex<Allowance>>,
}

impl Ear {
    /// Hears a launcher that has not said anything yet.
    pub fn new(
        owner: Owner,
        domains: Arc<Domains>,
        queue: Queue,
        notices: mpsc::UnboundedSender<Notice>,
    ) -> Self {
        let allowance = Arc::new(Mutex::new(Allowance::new(Instant::now())));
        Self { owner, domains, queue, notices, allowance }
    }

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
        // All launchers share one way to the users. What is too much is not refused, or it would be said again.
        match self.allowance.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now()) {
            Verdict::Granted => {}
            Verdict::Exceeded => {
                tracing::warn!(vmi = %self.owner.key, "a launcher has too many events: some are dropped");
                return Ok(());
            }
            Verdict::Ignored => return Ok(()),
        }
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

#[cfg(test)]
mod tests {
    use kubevirt_component::NamespacedName;

    use super::*;
    use crate::testing::Folder;

    #[tokio::test(start_paused = true)]
    async fn no_launcher_drowns_the_others() {
        let folder = Folder::new();
        let domains = Arc::new(Domains::load(folder.path()).unwrap());
        let (notices, mut heard) = mpsc::unbounded_channel();
        let ear = |uid: &str| {
            let owner = Owner { key: NamespacedName::new("default", uid), uid: uid.into(), pod: uid.into() };
            Ear::new(owner, domains.clone(), Queue::new("test"), notices.clone())
        };
        let (loud, quiet) = (ear("loud"), ear("quiet"));
        let event = K8sEventRequest { event_json: br#"{"metadata": {}, "involvedObject": {}}"#.to_vec() };
        for _ in 0..1000 {
            // Its services are copies of one ear.
            loud.clone().pass_on(&event).unwrap();
        }
        quiet.pass_on(&event).unwrap();
        let mut from = std::collections::BTreeMap::<String, usize>::new();
        while let Ok(notice) = heard.try_recv() {
            *from.entry(notice.owner.uid).or_default() += 1;
        }
        assert_eq!(from, [("loud".to_owned(), 25), ("quiet".to_owned(), 1)].into());
    }
}
