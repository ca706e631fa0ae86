//! From an `AdmissionReview` to its answer: schema, defaults, verdict.

mod answer;
mod dispatch;
mod incoming;
mod metadata;
mod raw;

use serde_json::Value;

use crate::{ClusterConfig, Context, Objects, OwnAccounts, Problems};

pub use answer::{Answer, Refusal};
pub use incoming::{Incoming, NotAReview, Resource};
pub use raw::{check as check_schema, decode};

/// The version of reviews that is read and written.
const API_VERSION: &str = "admission.k8s.io/v1";

/// Which steps are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// Only the defaults are filled in.
    Mutate,
    /// The same, where another review gives the verdict: what can be read is not held to its schema here.
    Prepare,
    /// Only the verdict is given, on the object as it is.
    Validate,
    /// Defaults first, then the verdict on what they made of the object.
    Both,
}

impl Steps {
    fn mutate(self) -> bool {
        self != Self::Validate
    }

    fn validate(self) -> bool {
        matches!(self, Self::Validate | Self::Both)
    }
}

/// What a review may know of the cluster and the world.
pub struct Surroundings<'a> {
    /// What the installation is set to.
    pub config: &'a ClusterConfig,
    /// The other objects of the cluster.
    pub objects: &'a dyn Objects,
    /// The service accounts of our own components.
    pub own_accounts: &'a OwnAccounts,
    /// The present time.
    pub now: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time,
    /// A source of fresh random UUIDs.
    pub fresh_uuid: &'a dyn Fn() -> uuid::Uuid,
}

/// What became of an object.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What is wrong with it.
    pub problems: Problems,
    /// The object before and after the defaults, as our types hold it.
    pub change: Option<(Value, Value)>,
    /// A refusal that is not about the object's fields.
    pub refusal: Option<Refusal>,
}

/// Answers a request.
pub fn answer(incoming: &Incoming, surroundings: &Surroundings<'_>, steps: Steps) -> Answer {
    let cx = Context {
        request: &incoming.request,
        config: surroundings.config,
        objects: surroundings.objects,
        own_accounts: surroundings.own_accounts,
        now: surroundings.now.clone(),
        fresh_uuid: surroundings.fresh_uuid,
    };
    Answer::from(incoming, dispatch::review(&cx, incoming, steps))
}

#[cfg(test)]
mod tests;
