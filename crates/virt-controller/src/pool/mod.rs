//! Keeps a number of alike machines, and brings them in line with their template.

mod apply;
mod choose;
mod decide;
mod member;
mod revision;
mod status;
mod update;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use kubevirt_api::pool::VirtualMachinePool;
use kubevirt_component::{NamespacedName, Next, patch};
use tokio::task::JoinHandle;

use crate::context::{Context, index};
use decide::Observed;

/// When to look again after somebody else wrote a machine; the store usually hears of it before.
const AFTER_CONFLICT: Duration = Duration::from_secs(1);

/// Who reports the events of pools.
const REPORTER: &str = "virtualmachinepool-controller";

/// Looks after all pools until told to stop.
pub fn start(context: &Context, workers: usize) -> JoinHandle<()> {
    let work = |context: Context, key: NamespacedName| async move { reconcile(&context, key).await };
    context.reporting_as(REPORTER).work_on(&context.queues.pools, workers, work)
}

async fn reconcile(context: &Context, key: NamespacedName) -> kube::Result<Next> {
    let Some(pool) = context.stores.pools.get(&key) else { return Ok(Next::Wait) };
    let Some(selector) = selector(&pool) else {
        // Admission refuses these; one that came before it cannot be helped until it is changed.
        tracing::warn!(%key, "the selector does not select what the template makes");
        return Ok(Next::Wait);
    };
    let now = Timestamp::now();
    let observed = observe(context, &pool, selector);
    let plan = decide::decide(&observed, now);
    let failure = apply::apply(context, &pool, &plan).await.err();
    // Somebody else was faster, which is no failure of the pool.
    if let Some(conflict) = failure.as_ref().filter(|error| patch::is_conflict(error)) {
        tracing::debug!(%key, %conflict, "what was seen is outdated");
        return Ok(Next::After(AFTER_CONFLICT));
    }
    let status = status::wanted(&observed, plan.stage, failure.as_ref(), now);
    apply::write_status(context, &pool, status).await?;
    match (failure, plan.again) {
        (Some(failure), _) => Err(failure),
        (None, Some(pause)) => Ok(Next::After(pause)),
        (None, None) => Ok(Next::Wait),
    }
}

/// What the pool selects, if it selects what it makes.
fn selector(pool: &VirtualMachinePool) -> Option<Selector> {
    let selector = Selector::try_from(pool.spec.selector.clone()).ok()?;
    let template = pool.spec.virtual_machine_template.metadata.as_ref();
    let labels = template.and_then(|meta| meta.labels.clone()).unwrap_or_default();
    selector.matches(&labels).then_some(selector)
}

fn observe(context: &Context, pool: &Arc<VirtualMachinePool>, selector: Selector) -> Observed {
    let stores = &context.stores;
    let (namespace, uid) = (pool.namespace().unwrap_or_default(), pool.uid().unwrap_or_default());
    let (vms, vmis, elsewhere) = (stores.vms.clone(), stores.vmis.clone(), namespace.clone());
    Observed {
        pool: pool.clone(),
        selector,
        machines: stores.vms.by(index::OWNER, &uid),
        abandoned: stores.vms.by(index::ABANDONED, &namespace),
        revisions: stores.revisions.by(index::OWNER, &uid),
        instance: Box::new(move |name| vmis.get(&NamespacedName::new(namespace.as_str(), name))),
        taken: Box::new(move |name| vms.get(&NamespacedName::new(elsewhere.as_str(), name)).is_some()),
    }
}
