//! Which machines come first when some must go or change, and which do not come up at all.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeSelectorRequirement;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use kubevirt_api::condition;
use kubevirt_api::names::conditions::vm::READY;
use kubevirt_api::pool::{PoolAutohealingStrategy, PoolSelectionPolicy, PoolSelectors, PoolSortPolicy};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::PrintableStatus;

use super::member;
use crate::owned::suffix;

/// Start failures in a row that make a machine hopeless.
const FAILURES: i64 = 3;
/// How long a machine may be in trouble.
const TROUBLE: Duration = Duration::from_secs(300);

/// The machines that a policy allows, in its order.
pub fn order(
    mut machines: Vec<Arc<VirtualMachine>>,
    policy: Option<&PoolSelectionPolicy>,
) -> Vec<Arc<VirtualMachine>> {
    if let Some(selectors) = policy.and_then(|policy| policy.selectors.as_ref()) {
        machines.retain(|vm| allows(selectors, vm));
    }
    let number = |vm: &VirtualMachine| member::index(&vm.name_any()).unwrap_or_default();
    let born = |vm: &VirtualMachine| vm.metadata.creation_timestamp.as_ref().map(|time| time.0);
    match policy.and_then(|policy| policy.sort_policy.as_ref()) {
        Some(PoolSortPolicy::AscendingOrder) => machines.sort_by_key(|vm| number(vm)),
        Some(PoolSortPolicy::DescendingOrder) => machines.sort_by_key(|vm| Reverse(number(vm))),
        Some(PoolSortPolicy::Newest) => machines.sort_by_key(|vm| Reverse((born(vm), number(vm)))),
        Some(PoolSortPolicy::Oldest) => machines.sort_by_key(|vm| (born(vm), number(vm))),
        // By chance, but the same chance at the next look: a store that lags behind must not widen the choice.
        _ => machines.sort_by_key(|vm| suffix(&vm.uid().unwrap_or_default(), 0)),
    }
    machines
}

fn allows(selectors: &PoolSelectors, vm: &VirtualMachine) -> bool {
    let template = &vm.spec.template;
    let labels = template.metadata.as_ref().and_then(|meta| meta.labels.clone()).unwrap_or_default();
    let nodes = template.spec.as_ref().and_then(|spec| spec.node_selector.clone()).unwrap_or_default();
    let by_label = selectors.label_selector.as_ref().is_none_or(|selector| {
        // One that cannot be read selects nothing: better too few than the wrong ones.
        Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(&labels))
    });
    let requirements = selectors.node_selector_requirement_matcher.as_deref().unwrap_or_default();
    by_label && requirements.iter().all(|requirement| meets(requirement, &nodes))
}

fn meets(requirement: &NodeSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&requirement.key);
    let values = requirement.values.as_deref().unwrap_or_default();
    let number = |text: Option<&String>| text.and_then(|text| text.parse::<i64>().ok());
    let compare = |holds: fn(i64, i64) -> bool| {
        number(value).zip(number(values.first())).is_some_and(|(value, bound)| holds(value, bound))
    };
    match requirement.operator.as_str() {
        "In" => value.is_some_and(|value| values.contains(value)),
        "NotIn" => value.is_none_or(|value| !values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compare(|value, bound| value > bound),
        "Lt" => compare(|value, bound| value < bound),
        _ => false,
    }
}

/// How long a machine may go on that does not come up, before it is replaced; nothing if there is no end to that.
pub fn patience(vm: &VirtualMachine, healing: &PoolAutohealingStrategy, now: Timestamp) -> Option<Duration> {
    let status = vm.status.as_ref()?;
    let failures = status.start_failure.as_ref().and_then(|failure| failure.consecutive_fail_count);
    let most = healing.start_up_failure_threshold.map_or(FAILURES, i64::from);
    if failures.is_some_and(|failures| failures >= most) {
        return Some(Duration::ZERO);
    }
    if !is_in_trouble(status.printable_status.as_ref()?) {
        return None;
    }
    let ready = condition::find(status.conditions.as_deref(), READY).filter(|ready| ready.status == "False");
    let since = ready.and_then(|it| it.last_probe_time.as_ref().or(it.last_transition_time.as_ref()))?;
    let longest = healing.min_failing_to_start_duration.as_ref();
    let longest = longest.and_then(|text| text.parse().ok()).map_or(TROUBLE, Duration::from);
    // What begins in the future, by another clock, begins now.
    let passed = Duration::try_from(now.duration_since(since.0)).unwrap_or_default();
    Some(longest.saturating_sub(passed))
}

fn is_in_trouble(status: &PrintableStatus) -> bool {
    use PrintableStatus as Status;
    matches!(
        status,
        Status::CrashLoopBackOff
            | Status::ErrorUnschedulable
            | Status::DataVolumeError
            | Status::ErrorPvcNotFound
            | Status::ErrImagePull
            | Status::ImagePullBackOff
    )
}
