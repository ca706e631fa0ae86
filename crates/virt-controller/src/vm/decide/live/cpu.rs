//! Adds sockets to a running instance.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_admission::ClusterConfig;
use kubevirt_api::names::{conditions, reasons};
use kubevirt_api::quantity::{Amount, Format};
use kubevirt_api::vmi::cpu::Cpu;
use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec};

use super::Verdict;
use crate::vm::plan::Failure;
use crate::vm::view;

/// Brings the number of sockets over, and the CPU that is requested for them.
pub fn apply(
    config: &ClusterConfig,
    wanted: &VirtualMachineInstanceSpec,
    vmi: &mut VirtualMachineInstance,
    now: Timestamp,
) -> Result<Verdict, Failure> {
    let (Some(new), Some(old)) = (&wanted.domain.cpu, &vmi.spec.domain.cpu) else { return Ok(Verdict::Done) };
    if sockets(new) == sockets(old) {
        return Ok(Verdict::Done);
    }
    let wait = |why: &str| Err(Failure::new(reasons::vm::HOTPLUG_CPU_ERROR, why));
    if view::condition_is(vmi, conditions::vmi::HOT_VCPU_CHANGE, "True") {
        return wait("CPUs cannot be changed before the change that is under way has ended");
    }
    if view::is_migrating(vmi, now) {
        return wait("CPUs cannot be changed while the machine migrates");
    }
    let restart = |why: &str| Ok(Verdict::Restart(why.to_owned()));
    if sockets(new) > old.max_sockets.unwrap_or_default() {
        return restart("there are more CPU sockets in the template than the running machine has room for");
    }
    if sockets(new) < sockets(old) {
        return restart("CPU sockets can be taken away only by a restart");
    }
    if wanted.architecture.as_deref() == Some("arm64") {
        return restart("on arm64 CPU sockets can be added only by a restart");
    }
    let more = request_for(config, count(new).saturating_sub(count(old)));
    let sockets = new.sockets;
    vmi.spec.domain.cpu.get_or_insert_default().sockets = sockets;
    // An amount that the user set grows along; one that was filled in is worked out from the sockets.
    let asked = wanted.domain.resources.as_ref();
    if let (Some(asked), Some(resources)) = (asked, &mut vmi.spec.domain.resources) {
        add(asked.requests.as_ref(), resources.requests.as_mut(), more);
        add(asked.limits.as_ref(), resources.limits.as_mut(), more);
    }
    Ok(Verdict::Done)
}

fn sockets(cpu: &Cpu) -> i32 {
    cpu.sockets.filter(|count| *count > 0).unwrap_or(1)
}

/// How many CPUs the guest sees.
fn count(cpu: &Cpu) -> i32 {
    let times = |count: Option<i32>| count.filter(|count| *count > 0).unwrap_or(1);
    sockets(cpu).saturating_mul(times(cpu.cores)).saturating_mul(times(cpu.threads))
}

/// What is requested for so many CPUs.
fn request_for(config: &ClusterConfig, cpus: i32) -> Amount {
    let developer = config.configuration().developer_configuration.as_ref();
    let ratio = developer.and_then(|developer| developer.cpu_allocation_ratio).filter(|ratio| *ratio > 0);
    Amount::from_milli(i64::from(cpus).saturating_mul(1000 / ratio.unwrap_or(10)))
}

type Amounts = BTreeMap<String, Quantity>;

fn add(asked: Option<&Amounts>, amounts: Option<&mut Amounts>, more: Amount) {
    let set = asked.is_some_and(|asked| asked.contains_key("cpu"));
    let Some(quantity) = amounts.and_then(|amounts| amounts.get_mut("cpu")).filter(|_| set) else { return };
    if let Some(sum) = Amount::of(quantity).ok().and_then(|amount| amount.checked_add(more)) {
        *quantity = sum.to_quantity(Format::DecimalSi);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::vm::testing::{at, patched, read};

    fn spec(cpu: Value) -> Value {
        json!({ "domain": { "cpu": cpu, "devices": {}, "resources": { "requests": { "cpu": "200m" } } } })
    }

    fn applied(wanted: Value, vmi: Value) -> (Result<Verdict, Failure>, Value) {
        let base = json!({ "spec": spec(json!({ "cores": 2, "sockets": 1, "maxSockets": 4 })) });
        let mut vmi = read(patched(&base, &vmi));
        let verdict = apply(&ClusterConfig::default(), &read(wanted), &mut vmi, at(10));
        (verdict, json!(vmi.spec.domain))
    }

    #[test]
    fn sockets_are_added_with_the_cpu_requested_for_them() {
        let (verdict, domain) = applied(spec(json!({ "cores": 2, "sockets": 3 })), json!({}));
        assert_eq!(verdict, Ok(Verdict::Done));
        assert_eq!(domain["cpu"]["sockets"], 3);
        assert_eq!(domain["resources"]["requests"]["cpu"], "600m");
    }

    #[test]
    fn what_cannot_be_done_now_waits_or_needs_a_restart() {
        let changing = json!({ "status": { "conditions": [{ "type": "HotVCPUChange", "status": "True" }] } });
        let migrating =
            json!({ "status": { "migrationState": { "startTimestamp": "1970-01-01T00:00:01Z" } } });
        let arm = patched(&spec(json!({ "sockets": 2 })), &json!({ "architecture": "arm64" }));
        let two = json!({ "spec": { "domain": { "cpu": { "sockets": 2 } } } });
        for (wanted, vmi, restart) in [
            (spec(json!({ "sockets": 2 })), changing, false),
            (spec(json!({ "sockets": 2 })), migrating, false),
            (spec(json!({ "sockets": 5 })), json!({}), true),
            (arm, json!({}), true),
            (spec(json!({ "sockets": 1 })), two, true),
        ] {
            let (verdict, _) = applied(wanted, vmi);
            assert_eq!(matches!(verdict, Ok(Verdict::Restart(_))), restart, "{verdict:?}");
            assert_eq!(verdict.is_err(), !restart, "{verdict:?}");
        }
        let unset = spec(json!({ "cores": 2 }));
        assert_eq!(applied(unset, json!({})).0, Ok(Verdict::Done));
    }
}
