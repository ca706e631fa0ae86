//! A Lease on the API server.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::Instant;

use super::Candidate;
use super::decide::{Seen, Timing, released, renewed};

/// The lease was not renewed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// Somebody else has it.
    #[error("{0} holds it")]
    Taken(String),
    /// The API server did not do it.
    #[error(transparent)]
    Api(#[from] kube::Error),
}

/// A lease and what was last seen of it.
pub(super) struct Lock {
    api: Api<Lease>,
    name: String,
    lease: Option<Lease>,
    seen: Option<Seen>,
}

impl Lock {
    pub(super) fn new(client: Client, candidate: &Candidate) -> Self {
        let api = Api::namespaced(client, &candidate.namespace);
        Self { api, name: candidate.lease.clone(), lease: None, seen: None }
    }

    pub(super) fn seen(&self) -> Option<&Seen> {
        self.seen.as_ref()
    }

    /// Reads the lease.
    pub(super) async fn look(&mut self) -> Result<(), kube::Error> {
        let found = self.api.get_opt(&self.name).await?;
        match found {
            Some(lease) => self.note(lease),
            None => (self.lease, self.seen) = (None, None),
        }
        Ok(())
    }

    fn note(&mut self, lease: Lease) {
        let spec = lease.spec.clone().unwrap_or_default();
        self.seen = Some(Seen::again(self.seen.take(), spec, Instant::now()));
        self.lease = Some(lease);
    }

    /// Writes the lease, if it is still as it was seen.
    pub(super) async fn write(&mut self, spec: LeaseSpec) -> Result<(), kube::Error> {
        let parameters = PostParams::default();
        let written = match &self.lease {
            Some(lease) => {
                // The resource version makes it fail if somebody else was here.
                let lease = Lease { spec: Some(spec), ..lease.clone() };
                self.api.replace(&self.name, &parameters, &lease).await?
            }
            None => {
                let mut lease = Lease { spec: Some(spec), ..Lease::default() };
                lease.metadata.name = Some(self.name.clone());
                self.api.create(&parameters, &lease).await?
            }
        };
        self.note(written);
        Ok(())
    }

    /// Gives a sign of life.
    pub(super) async fn renew(&mut self, identity: &str, timing: &Timing) -> Result<(), Failed> {
        let known = self.seen.as_ref().map(|seen| seen.spec.clone()).unwrap_or_default();
        let error = match self.write(renewed(&known, identity, timing, Timestamp::now())).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        // Our own write may have got through without its answer, somebody may have edited or removed the lease.
        self.look().await?;
        match self.seen.as_ref().and_then(|seen| seen.spec.holder_identity.clone()) {
            Some(holder) if holder != identity => Err(Failed::Taken(holder)),
            _ => Err(error.into()),
        }
    }

    /// Lets others have it. If it fails, they have to wait for its end.
    pub(super) async fn release(&mut self) {
        let Some(seen) = &self.seen else { return };
        let spec = released(&seen.spec, Timestamp::now());
        let written = tokio::time::timeout(super::GRACE, self.write(spec)).await;
        if !matches!(written, Ok(Ok(()))) {
            tracing::warn!(lease = self.name, "the lease could not be given back");
        }
    }
}
