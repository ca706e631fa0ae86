//! What is to be done for an instance, as a function of what is known of it.

use jiff::Timestamp;

use super::observe::Observed;
use super::plan::Plan;
use super::{mirror, status, steps};

/// Decides what is to be done. After steps with results one has to observe these and decide again; only then is the
/// instance part of the plan.
pub fn decide(observed: &Observed, now: Timestamp) -> Plan {
    let mut plan = Plan { trouble: observed.trouble.clone(), ..Plan::default() };
    // What has just failed is not tried again right away, but told.
    if plan.trouble.is_none() {
        plan.trouble = steps::decide(observed, &mut plan).err();
        if plan.has_results() {
            return plan;
        }
    }
    let vmi = status::decide(observed, &mut plan, now);
    if let Some(launcher) = observed.launcher() {
        mirror::decide(observed, &vmi, launcher, now, &mut plan);
    }
    plan.vmi = Some(Box::new(vmi));
    plan
}
