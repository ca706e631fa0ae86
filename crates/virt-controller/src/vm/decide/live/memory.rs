//! Gives a running instance more memory, or takes back what it was given since it started.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::names::{conditions, reasons};
use kubevirt_api::quantity::{Amount, Format};
use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec};

use super::Verdict;
use crate::vm::plan::Failure;
use crate::vm::view;

const MI: i64 = 1 << 20;
const GI: i64 = 1 << 30;

/// Brings the memory of the guest over, and what is requested for it.
pub fn apply(
    wanted: &VirtualMachineInstanceSpec,
    vmi: &mut VirtualMachineInstance,
    now: Timestamp,
) -> Result<Verdict, Failure> {
    let status = vmi.status.as_ref().and_then(|status| status.memory.as_ref());
    let current = status.and_then(|memory| bytes(memory.guest_current.as_ref()));
    let at_boot = status.and_then(|memory| bytes(memory.guest_at_boot.as_ref()));
    let (Some(new), Some(old), Some(current)) = (guest(wanted), guest(&vmi.spec), current) else {
        return Ok(Verdict::Done);
    };
    let restart = |why: &str| Ok(Verdict::Restart(format!("memory was changed in the template: {why}")));
    if view::condition_is(vmi, conditions::vmi::HOT_MEMORY_CHANGE, "False") {
        return restart("the guest did not take it");
    }
    if new == old {
        return Ok(Verdict::Done);
    }
    if !view::condition_is(vmi, conditions::vmi::LIVE_MIGRATABLE, "True") {
        return restart("only machines that can migrate take memory while they run");
    }
    let room = vmi.spec.domain.memory.as_ref().and_then(|memory| bytes(memory.max_guest.as_ref()));
    let Some(room) = room else { return restart("the running machine has no room for more") };
    let wait = |why: &str| Err(Failure::new(reasons::vm::HOTPLUG_MEMORY_ERROR, why));
    if view::condition_is(vmi, conditions::vmi::HOT_MEMORY_CHANGE, "True") {
        return wait("memory cannot be changed before the change that is under way has ended");
    }
    if view::is_migrating(vmi, now) {
        return wait("memory cannot be changed while the machine migrates");
    }
    if let Some(why) = obstacle(wanted, new, room) {
        return restart(why);
    }
    if at_boot.is_some_and(|at_boot| new < at_boot) {
        return restart("it is less than the machine started with");
    }
    resize(wanted, vmi, new, new - current);
    Ok(Verdict::Done)
}

fn bytes(quantity: Option<&Quantity>) -> Option<i64> {
    Amount::of(quantity?).ok()?.checked_value()
}

fn guest(spec: &VirtualMachineInstanceSpec) -> Option<i64> {
    bytes(spec.domain.memory.as_ref()?.guest.as_ref())
}

/// What about the machine keeps memory from being plugged.
fn obstacle(spec: &VirtualMachineInstanceSpec, guest: i64, room: i64) -> Option<&'static str> {
    let cpu = spec.domain.cpu.as_ref();
    let numa = cpu.and_then(|cpu| cpu.numa.as_ref());
    let pages = spec.domain.memory.as_ref().and_then(|memory| memory.hugepages.as_ref());
    let large = pages.and_then(|pages| pages.page_size.as_deref()) == Some("1Gi");
    let block = if large { GI } else { 2 * MI };
    if cpu.is_some_and(|cpu| cpu.realtime.is_some()) {
        return Some("a realtime machine takes none while it runs");
    }
    if numa.is_some_and(|numa| numa.guest_mapping_passthrough.is_some()) {
        return Some("a machine with the NUMA layout of its node takes none while it runs");
    }
    if spec.domain.launch_security.is_some() {
        return Some("a machine with encrypted memory takes none while it runs");
    }
    if guest > room {
        return Some("it is more than the running machine has room for");
    }
    if guest % block != 0 || room % block != 0 {
        return Some(if large { "it has to be a multiple of 1Gi" } else { "it has to be a multiple of 2Mi" });
    }
    if spec.architecture.as_deref() != Some("amd64") {
        return Some("only machines of amd64 take any while they run");
    }
    (guest < GI).then_some("a machine with less than 1Gi takes none while it runs")
}

fn resize(wanted: &VirtualMachineInstanceSpec, vmi: &mut VirtualMachineInstance, guest: i64, change: i64) {
    if let (Some(memory), Some(new)) = (&mut vmi.spec.domain.memory, &wanted.domain.memory) {
        memory.guest.clone_from(&new.guest);
    }
    let limits = wanted.domain.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    let limited = limits.is_some_and(|limits| limits.contains_key("memory"));
    let Some(resources) = &mut vmi.spec.domain.resources else { return };
    let mut change = change;
    let request = resources.requests.as_mut().and_then(|requests| requests.get_mut("memory"));
    if let Some((request, old)) = request.and_then(|request| bytes(Some(&*request)).map(|old| (request, old)))
    {
        // A guest may not have given back all that it was asked for: never request less than it is to have.
        let sum = old.saturating_add(change);
        if sum < guest {
            change = 0;
        }
        *request = binary(sum.max(guest));
    }
    let limit = resources.limits.as_mut().and_then(|limits| limits.get_mut("memory")).filter(|_| limited);
    if let Some((limit, old)) = limit.and_then(|limit| bytes(Some(&*limit)).map(|old| (limit, old))) {
        *limit = binary(old.saturating_add(change));
    }
}

fn binary(bytes: i64) -> Quantity {
    Amount::from_int(bytes).to_quantity(Format::BinarySi)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::vm::testing::{at, patched, read};

    fn wanted(guest: &str, patch: Value) -> Value {
        let base =
            json!({ "architecture": "amd64", "domain": { "memory": { "guest": guest }, "devices": {} } });
        patched(&base, &patch)
    }

    fn applied(wanted: Value, vmi: Value) -> (Result<Verdict, Failure>, Value) {
        let base = json!({
            "spec": { "domain": {
                "devices": {}, "memory": { "guest": "2Gi", "maxGuest": "8Gi" },
                "resources": { "requests": { "memory": "2Gi" } },
            } },
            "status": {
                "memory": { "guestAtBoot": "2Gi", "guestCurrent": "2Gi" },
                "conditions": [{ "type": "LiveMigratable", "status": "True" }],
            },
        });
        let mut vmi = read(patched(&base, &vmi));
        let verdict = apply(&read(wanted), &mut vmi, at(10));
        (verdict, json!(vmi.spec.domain))
    }

    #[test]
    fn memory_is_plugged_with_what_is_requested_for_it() {
        let (verdict, domain) = applied(wanted("4Gi", json!({})), json!({}));
        assert_eq!(verdict, Ok(Verdict::Done));
        assert_eq!(domain["memory"]["guest"], "4Gi");
        assert_eq!(domain["resources"]["requests"]["memory"], "4Gi");
        let (verdict, domain) = applied(wanted("2048Mi", json!({})), json!({}));
        assert_eq!((verdict, &domain["memory"]["guest"]), (Ok(Verdict::Done), &json!("2Gi")));
    }

    #[test]
    fn a_request_never_falls_below_the_guest() {
        let vmi = json!({
            "spec": { "domain": { "memory": { "guest": "6Gi" }, "resources": { "requests": { "memory": "3Gi" } } } },
            "status": { "memory": { "guestCurrent": "6Gi" } },
        });
        let (_, domain) = applied(wanted("4Gi", json!({})), vmi);
        assert_eq!(domain["resources"]["requests"]["memory"], "4Gi");
    }

    #[test]
    fn what_cannot_be_done_now_waits_or_needs_a_restart() {
        let more = || wanted("4Gi", json!({}));
        let migratable = json!({ "type": "LiveMigratable", "status": "True" });
        let changing = |status: &str| {
            let change = json!({ "type": "HotMemoryChange", "status": status });
            json!({ "status": { "conditions": [migratable, change] } })
        };
        let encrypted = wanted("4Gi", json!({ "domain": { "launchSecurity": { "sev": {} } } }));
        let no_room = json!({ "spec": { "domain": { "memory": { "maxGuest": null } } } });
        let cases = [
            ("too much", wanted("16Gi", json!({})), json!({}), true),
            ("less than at boot", wanted("1Gi", json!({})), json!({}), true),
            ("odd", wanted("2049Mi", json!({})), json!({}), true),
            ("arm64", wanted("4Gi", json!({ "architecture": "arm64" })), json!({}), true),
            ("encrypted", encrypted, json!({}), true),
            ("no room", more(), no_room, true),
            ("cannot migrate", more(), json!({ "status": { "conditions": [] } }), true),
            ("failed", more(), changing("False"), true),
            ("under way", more(), changing("True"), false),
        ];
        for (case, wanted, vmi, restart) in cases {
            let (verdict, _) = applied(wanted, vmi);
            assert_eq!(matches!(verdict, Ok(Verdict::Restart(_))), restart, "{case}: {verdict:?}");
            assert_eq!(verdict.is_err(), !restart, "{case}: {verdict:?}");
        }
    }
}
