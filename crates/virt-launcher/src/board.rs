//! What the launcher knows of its domain, for everyone who wants to know.

use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::report::{DomainStatus, Reason, ReportMetadata, State};
use tokio::sync::{mpsc, watch};

/// An event for the users of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// `Normal` or `Warning`.
    pub kind: &'static str,
    /// One word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// The latest report of the domain, and notices that happened on the way.
///
/// Only the latest report counts, so whoever was away learns all that matters from it.
#[derive(Debug)]
pub struct Board {
    report: watch::Sender<DomainReport>,
    notices: mpsc::UnboundedSender<Notice>,
}

impl Board {
    /// An empty board, and what is told from it.
    pub fn new(metadata: ReportMetadata) -> (Self, mpsc::UnboundedReceiver<Notice>) {
        let (notices, told) = mpsc::unbounded_channel();
        let report = DomainReport { metadata, ..DomainReport::default() };
        (Self { report: watch::Sender::new(report), notices }, told)
    }

    /// The report as it is now.
    pub fn report(&self) -> DomainReport {
        self.report.borrow().clone()
    }

    /// The state as it is now.
    pub fn state(&self) -> (State, Reason) {
        let report = self.report.borrow();
        (report.status.status, report.status.reason)
    }

    /// Follows the report.
    pub fn follow(&self) -> watch::Receiver<DomainReport> {
        self.report.subscribe()
    }

    /// Changes the report; followers hear of it only if something is different.
    pub fn change(&self, change: impl FnOnce(&mut DomainReport)) {
        self.report.send_if_modified(|report| {
            let before = report.clone();
            change(report);
            *report != before
        });
    }

    /// Changes the status.
    pub fn change_status(&self, change: impl FnOnce(&mut DomainStatus)) {
        self.change(|report| change(&mut report.status));
    }

    /// Tells the users of the cluster.
    pub fn notice(&self, notice: Notice) {
        // Nobody listens once the launcher ends.
        let _ = self.notices.send(notice);
    }
}

/// The time now, as reports write it.
pub fn now() -> String {
    format!("{:.0}", jiff::Timestamp::now())
}
