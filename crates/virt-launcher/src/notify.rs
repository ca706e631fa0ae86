//! Telling the handler what happens, however often it restarts.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, ObjectReference};
use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::connect::{self, ConnectError};
use kubevirt_launcher_rpc::notify::notify_client::NotifyClient;
use kubevirt_launcher_rpc::notify::{DomainEventRequest, K8sEventRequest, Response};
use kubevirt_launcher_rpc::report::{ReportMetadata, State};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tonic::transport::Channel;

use crate::board::{Board, Notice};

/// How long the handler may take for an answer.
const ANSWER: Duration = Duration::from_secs(10);

/// The first and the longest pause between two attempts to reach a handler that is away.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(3));

/// Tells the handler the latest report and all notices, from the start again whenever it comes back.
pub struct Teller {
    socket: PathBuf,
    reports: watch::Receiver<DomainReport>,
    notices: mpsc::UnboundedReceiver<Notice>,
    untold: Option<Notice>,
    metadata: ReportMetadata,
    told: watch::Sender<Option<DomainReport>>,
}

impl Teller {
    /// A teller, and what it has told so far.
    pub fn new(
        socket: PathBuf,
        board: &Board,
        notices: mpsc::UnboundedReceiver<Notice>,
    ) -> (Self, watch::Receiver<Option<DomainReport>>) {
        let (told, follow) = watch::channel(None);
        let metadata = board.report().metadata;
        (Self { socket, reports: board.follow(), notices, untold: None, metadata, told }, follow)
    }

    /// Tells as long as the launcher lives.
    pub async fn run(mut self) {
        let mut pause = PAUSES.0;
        loop {
            // While there is nothing to tell, it does not matter whether the handler is there.
            if self.reports.wait_for(has_domain).await.is_err() {
                return;
            }
            match self.tell().await {
                Ok(()) => pause = PAUSES.0,
                Err(error) => {
                    tracing::debug!(%error, "the handler cannot be told");
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    /// Tells one handler until it goes.
    async fn tell(&mut self) -> Result<(), TellError> {
        let (mut handler, mut closed) = connect::handler(&self.socket).await?;
        // A handler that just came knows nothing.
        self.reports.mark_changed();
        loop {
            let notice = match self.untold.take() {
                Some(notice) => Some(notice),
                None => tokio::select! {
                    changed = self.reports.changed() => match changed {
                        Ok(()) => None,
                        Err(_) => return Ok(()),
                    },
                    Some(notice) = self.notices.recv() => Some(notice),
                    _ = &mut closed => return Ok(()),
                },
            };
            match notice {
                Some(notice) => self.tell_notice(&mut handler, notice).await?,
                None => self.tell_report(&mut handler).await?,
            }
        }
    }

    async fn tell_report(&mut self, handler: &mut NotifyClient<Channel>) -> Result<(), TellError> {
        let report = self.reports.borrow_and_update().clone();
        let event_type = if self.told.borrow().is_none() { "ADDED" } else { "MODIFIED" };
        let request = DomainEventRequest {
            domain_json: serde_json::to_vec(&report)?,
            status_json: Vec::new(),
            event_type: event_type.to_owned(),
        };
        accepted(timeout(ANSWER, handler.handle_domain_event(request)).await)?;
        self.told.send_replace(Some(report));
        Ok(())
    }

    async fn tell_notice(
        &mut self,
        handler: &mut NotifyClient<Channel>,
        notice: Notice,
    ) -> Result<(), TellError> {
        let request = K8sEventRequest { event_json: serde_json::to_vec(&event(&self.metadata, &notice))? };
        let answer = accepted(timeout(ANSWER, handler.handle_k8s_event(request)).await);
        // A notice that the handler understood and refused would be refused again.
        if matches!(answer, Err(TellError::Unreachable(_) | TellError::Silent)) {
            self.untold = Some(notice);
        }
        answer
    }
}

/// Whether there is, or was, a domain to tell of.
fn has_domain(report: &DomainReport) -> bool {
    report.spec.is_some() || report.status.status != State::NoState || report.status.migration.is_some()
}

/// The Kubernetes event of a notice; the handler adds name and time.
fn event(metadata: &ReportMetadata, notice: &Notice) -> Event {
    let involved_object = ObjectReference {
        api_version: Some("kubevirt.io/v1".into()),
        kind: Some("VirtualMachineInstance".into()),
        name: Some(metadata.name.clone()),
        namespace: Some(metadata.namespace.clone()),
        uid: Some(metadata.uid.clone()),
        ..ObjectReference::default()
    };
    Event {
        involved_object,
        type_: Some(notice.kind.to_owned()),
        reason: Some(notice.reason.to_owned()),
        message: Some(notice.message.clone()),
        ..Event::default()
    }
}

/// Why the handler was not told.
#[derive(Debug, thiserror::Error)]
enum TellError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the handler went away: {0}")]
    Unreachable(Box<tonic::Status>),
    #[error("the handler does not answer")]
    Silent,
    #[error("the handler refused: {0}")]
    Refused(String),
    #[error("it cannot be written: {0}")]
    Unwritable(#[from] serde_json::Error),
}

type Answer = Result<Result<tonic::Response<Response>, tonic::Status>, tokio::time::error::Elapsed>;

fn accepted(answer: Answer) -> Result<(), TellError> {
    let answer = answer.map_err(|_| TellError::Silent)?;
    let answer = answer.map_err(|status| TellError::Unreachable(Box::new(status)))?.into_inner();
    if answer.success { Ok(()) } else { Err(TellError::Refused(answer.message)) }
}
