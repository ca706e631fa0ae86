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

use crate::context::Context;
use apply::Error;
use observe::Types;

/// How many machines are worked on at a time.
const WORKERS: usize = 10;

/// Works on machines until the context is stopped.
pub async fn run(cx: Context) {
    let types = Types::start(&cx.client, &cx.stop);
    cx.stores.ready().await;
    types.ready().await;
    let look = |key: NamespacedName| {
        let (cx, types) = (&cx, &types);
        async move { reconcile(cx, types, &key).await }
    };
    cx.queues.vms.work(WORKERS, &cx.stop, look).await;
}

async fn reconcile(cx: &Context, types: &Types, key: &NamespacedName) -> Result<Next, Error> {
    let Some(seen) = observe::observe(cx, types, key) else { return Ok(Next::Wait) };
    let now = Timestamp::now();
    let plan = decide::decide(&seen, now);
    apply::apply(cx, &seen, plan, now).await
}
