//! What a machine must keep to so that memory can be added while it runs.

use kubevirt_api::quantity::{Amount, QuantityExt};
use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::memory::Memory;

use crate::mutate::vmi::memory::hotplug_obstacles;
use crate::{Context, Path, Problems};

/// Checks an instance whose domain stands at `path`, where changes are applied live.
pub fn check(cx: &Context<'_>, path: &Path<'_>, vmi: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    if !cx.config.live_update() {
        return;
    }
    if let Some(memory) = vmi.domain.memory.as_ref().filter(|memory| memory.max_guest.is_some()) {
        check_memory(path, vmi, memory, problems);
    }
}

fn check_memory(path: &Path<'_>, vmi: &VirtualMachineInstanceSpec, memory: &Memory, problems: &mut Problems) {
    let guest = memory.guest.as_ref().map(QuantityExt::amount);
    let max_guest = memory.max_guest.as_ref().map(QuantityExt::amount);
    if matches!(guest, Some(Err(_))) || matches!(max_guest, Some(Err(_))) {
        malformed(&path.at("memory.guest"), guest, problems);
        malformed(&path.at("memory.maxGuest"), max_guest, problems);
        return;
    }
    // One problem for the field, with all that stands against it.
    let against = hotplug_obstacles(vmi, memory.max_guest.as_ref());
    if !against.is_empty() {
        problems.invalid(
            &path.at("memory.guest"),
            format!("memory cannot be added up to maxGuest: {}", against.join("; ")),
        );
    }
}

/// Reports a quantity that is none, unless that is known already.
fn malformed<E: ToString>(field: &Path<'_>, amount: Option<Result<Amount, E>>, problems: &mut Problems) {
    if let Some(Err(error)) = amount {
        let name = field.to_string();
        if !problems.iter().any(|problem| problem.field == name) {
            problems.invalid(field, error.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, assert_fields, patched, read};

    fn found(world: &World, patch: &Value) -> Problems {
        let base = json!({
            "architecture": "amd64",
            "domain": { "devices": {}, "memory": { "guest": "1Gi", "maxGuest": "4Gi" } },
        });
        let vmi = read(patched(&base, patch));
        let mut problems = Problems::default();
        world.run(|cx| check(cx, &Path::new("domain"), &vmi, &mut problems));
        problems
    }

    fn memory(guest: &str, max_guest: &str) -> Value {
        json!({ "domain": { "memory": { "guest": guest, "maxGuest": max_guest } } })
    }

    fn large_pages(guest: &str, max_guest: &str) -> Value {
        let mut patch = memory(guest, max_guest);
        patch["domain"]["memory"]["hugepages"] = json!({ "pageSize": "1Gi" });
        patch
    }

    #[test]
    fn machines_that_can_and_cannot_grow() {
        let cpu = |value: Value| json!({ "domain": { "cpu": value } });
        let guest = &["domain.memory.guest"][..];
        let cases = [
            ("as it is", json!({}), &[][..]),
            ("realtime", cpu(json!({ "realtime": {} })), guest),
            ("pass through", cpu(json!({ "numa": { "guestMappingPassthrough": {} } })), guest),
            ("plain NUMA", cpu(json!({ "numa": {} })), &[]),
            ("encrypted", json!({ "domain": { "launchSecurity": { "sev": {} } } }), guest),
            ("arm64", json!({ "architecture": "arm64" }), guest),
            ("no architecture", json!({ "architecture": null }), guest),
            ("no guest memory", json!({ "domain": { "memory": { "guest": null } } }), guest),
            ("no growth", json!({ "domain": { "memory": { "maxGuest": null } } }), &[]),
            (
                "arm64 without growth",
                json!({ "architecture": "arm64", "domain": { "memory": { "maxGuest": null } } }),
                &[],
            ),
            ("full", memory("4Gi", "4Gi"), &[]),
            ("more than full", memory("5Gi", "4Gi"), guest),
            ("odd guest", memory("1025Mi", "4Gi"), guest),
            ("odd limit", memory("1Gi", "4097Mi"), guest),
            ("decimal limit", memory("1Gi", "4G"), guest),
            ("in steps", memory("1026Mi", "4098Mi"), &[]),
            ("small", memory("512Mi", "4Gi"), guest),
            ("large pages", large_pages("1Gi", "4Gi"), &[]),
            ("odd large pages", large_pages("1026Mi", "4Gi"), guest),
            ("odd limit of large pages", large_pages("1Gi", "4098Mi"), guest),
            ("no quantity", memory("lots", "4Gi"), guest),
            ("no limit quantity", memory("1Gi", "lots"), &["domain.memory.maxGuest"]),
            (
                "many obstacles are one problem",
                patched(&cpu(json!({ "realtime": {} })), &memory("5Mi", "3Mi")),
                guest,
            ),
        ];
        for (case, patch, expected) in cases {
            assert_fields(case, &found(&World::default(), &patch), expected);
        }
    }

    #[test]
    fn nothing_holds_where_changes_wait_for_a_restart() {
        let staged = World::default().with_configuration(json!({ "vmRolloutStrategy": "Stage" }));
        assert_fields("staged", &found(&staged, &memory("5Gi", "3Mi")), &[]);
    }
}
