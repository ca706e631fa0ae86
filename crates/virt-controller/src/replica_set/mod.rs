//! Keeps a number of alike instances running.

mod apply;
mod decide;
mod status;

pub(crate) use status::report;

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::core::Selector;
use kubevirt_api::replica_set::VirtualMachineInstanceReplicaSet;
use kubevirt_component::{NamespacedName, Next};
use tokio::task::JoinHandle;

use crate::context::{Context, index};
use apply::Error;
use decide::{Observed, Step};

/// Who reports the events of replica sets.
const REPORTER: &str = "virtualmachinereplicaset-controller";

/// Looks after all replica sets until told to stop.
pub fn start(context: &Context, workers: usize) -> JoinHandle<()> {
    let work = |context: Context, key: NamespacedName| async move { reconcile(&context, key).await };
    context.reporting_as(REPORTER).work_on(&context.queues.replica_sets, workers, work)
}

async fn reconcile(context: &Context, key: NamespacedName) -> Result<Next, Error> {
    let Some(set) = context.stores.replica_sets.get(&key) else { return Ok(Next::Wait) };
    let Some(selector) = selector(&set) else {
        // Admission refuses these; one that came before it cannot be helped until it is changed.
        tracing::warn!(%key, "the selector does not select what the template makes");
        return Ok(Next::Wait);
    };
    let plan = decide::decide(&observe(context, &set, selector.clone()));
    let actions = match &plan.step {
        Step::Claim(claims) => {
            // The instances come back to us as they are then, and bring the set up again.
            apply::claim(context, &set, claims).await?;
            return Ok(Next::Wait);
        }
        Step::Scale(actions) => actions,
    };
    let outcome = apply::scale(context, &set, actions).await;
    let wanted = status::wanted(&set, &selector, &plan, outcome.as_ref().err(), Timestamp::now());
    apply::write_status(context, &set, wanted).await?;
    outcome?;
    Ok(Next::Wait)
}

/// What the set selects, if it selects what it makes.
fn selector(set: &VirtualMachineInstanceReplicaSet) -> Option<Selector> {
    use kube::core::SelectorExt;
    let selector = Selector::try_from(set.spec.selector.clone()).ok()?;
    let labels = set.spec.template.metadata.as_ref()?.labels.as_ref().filter(|labels| !labels.is_empty())?;
    selector.matches(labels).then_some(selector)
}

fn observe(context: &Context, set: &Arc<VirtualMachineInstanceReplicaSet>, selector: Selector) -> Observed {
    let stores = &context.stores;
    let namespace = set.namespace().unwrap_or_default();
    let vmis = stores.vmis.clone();
    Observed {
        set: set.clone(),
        selector,
        members: stores.vmis.by(index::OWNER, &set.uid().unwrap_or_default()),
        orphans: stores.vmis.by(index::ORPHAN, &namespace),
        taken: Box::new(move |name| vmis.get(&NamespacedName::new(namespace.as_str(), name)).is_some()),
    }
}
