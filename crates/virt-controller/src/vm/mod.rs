//! The controller of virtual machines: makes and deletes their instances as they ask for.
//!
//! `observe` gathers what is known, `decide` makes a plan of it, `apply` carries the plan out and `status` says what
//! came of it. Only `observe` and `apply` know of stores and clients.

mod apply;
mod clone_source;
pub mod decide;
pub mod observe;
pub mod plan;
pub mod status;
#[cfg(test)]
mod testing;
pub mod view;

use jiff::Timestamp;
use kubevirt_component::{NamespacedName, Next};
use tokio::task::JoinHandle;

use crate::context::Context;
use apply::Error;

/// Looks after all machines until told to stop.
pub fn start(context: &Context, workers: usize) -> JoinHandle<()> {
    let work = |context: Context, key: NamespacedName| async move { reconcile(&context, &key).await };
    context.work_on(&context.queues.vms, workers, work)
}

async fn reconcile(cx: &Context, key: &NamespacedName) -> Result<Next, Error> {
    // An instance that cannot be read is not one that is missing. We hear of it when it can be.
    if cx.stores.vmis.is_unreadable(key) {
        return Ok(Next::Wait);
    }
    let Some(seen) = observe::observe(cx, key) else { return Ok(Next::Wait) };
    let now = Timestamp::now();
    let plan = decide::decide(&seen, now);
    apply::apply(cx, &seen, plan, now).await
}
