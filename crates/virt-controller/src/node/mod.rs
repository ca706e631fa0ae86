//! Nodes: those whose handler is silent get no new guests, and guests that are lost with them fail.

mod apply;
mod decide;
mod observe;
#[cfg(test)]
mod tests;
mod tsc;

use jiff::Timestamp;
use kubevirt_component::{NamespacedName, Next};
use tokio::task::JoinHandle;

pub use decide::{Plan, SILENCE, decide};

use decide::if_it_answers;
pub use observe::Observed;

use crate::context::Context;

/// Who reports the events of nodes, and of instances that are lost with them.
const REPORTER: &str = "node-controller";

/// Looks after all nodes until told to stop.
pub fn start(context: &Context, workers: usize) -> JoinHandle<()> {
    let labels = context.clone();
    tokio::spawn(async move { labels.stop.run_until_cancelled(tsc::keep_labels(&labels)).await });
    let work = |context: Context, key: NamespacedName| async move { reconcile(&context, &key.name).await };
    context.reporting_as(REPORTER).work_on(&context.queues.nodes, workers, work)
}

async fn reconcile(context: &Context, name: &str) -> kube::Result<Next> {
    let key = NamespacedName::new("", name);
    // A node that cannot be read is not one that is gone. We hear of it when it can be.
    if context.stores.nodes.is_unreadable(&key) {
        return Ok(Next::Wait);
    }
    // Every new guest brings us here, and to look at all the others of its node would cost the more the fuller it is.
    let node = context.stores.nodes.get(&key);
    if let Some(plan) = if_it_answers(node.as_deref(), Timestamp::now()) {
        return Ok(plan.recheck.map_or(Next::Wait, Next::After));
    }
    let mut observed = Observed::look_up(&context.stores, name);
    let mut plan = decide(&observed, Timestamp::now());
    if plan.look_for_pods {
        apply::look_for_pods(context, name, &mut observed).await?;
        plan = decide(&observed, Timestamp::now());
    }
    if let Some(node) = &observed.node {
        if plan.mark_unschedulable {
            apply::mark_unschedulable(context, node).await?;
        }
        if plan.tell_of_orphans {
            apply::tell_of_orphans(context, node);
        }
    }
    // One after the other: where something is wrong already, a storm of writes does not help.
    // One that cannot be written does not keep the others from being told.
    let mut outcome = Ok(());
    for vmi in &plan.lost {
        let told = apply::fail(context, vmi).await;
        outcome = outcome.and(told);
    }
    outcome?;
    Ok(plan.recheck.map_or(Next::Wait, Next::After))
}
