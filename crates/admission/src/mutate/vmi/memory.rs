//! The memory of the guest, and how far it can grow while the guest runs.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::quantity::{Amount, Format, QuantityExt};
use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::memory::Hugepages;

use super::architecture;
use super::resources::{limit, nonzero, request};
use crate::ClusterConfig;

/// The sizes that memory is plugged in: 2 MiB, or a whole page where pages are of 1 GiB.
const BLOCK: i64 = 2 << 20;
const HUGE_BLOCK: i64 = 1 << 30;
/// The least memory of a guest that more can be plugged into.
const LEAST_GUEST: i64 = 1 << 30;

/// Takes the memory of the guest from what is requested or allowed, or else gives it one huge page.
pub fn set_guest(spec: &mut VirtualMachineInstanceSpec) {
    let memory = spec.domain.memory.get_or_insert_default();
    if memory.guest.is_some() {
        return;
    }
    let resources = spec.domain.resources.as_ref();
    let of_resources = nonzero(request(resources, "memory")).or_else(|| nonzero(limit(resources, "memory")));
    memory.guest = of_resources.cloned().or_else(|| page(memory.hugepages.as_ref()?));
}

fn page(hugepages: &Hugepages) -> Option<Quantity> {
    let size = Quantity(hugepages.page_size.clone()?);
    size.amount().is_ok().then_some(size)
}

/// Leaves room to grow to: what the cluster allows, or a multiple of what the guest has; none if the guest cannot.
pub fn set_hotplug_room(config: &ClusterConfig, spec: &mut VirtualMachineInstanceSpec) {
    let memory = spec.domain.memory.as_ref();
    if memory.is_some_and(|memory| memory.max_guest.is_some()) {
        return;
    }
    let most = config.max_guest().cloned().or_else(|| {
        let guest = memory?.guest.as_ref()?.amount().ok()?.checked_value()?;
        let most = guest.checked_mul(i64::from(config.max_hotplug_ratio().max(0)))?;
        Some(Amount::from_int(most).to_quantity(Format::BinarySi))
    });
    if hotplug_obstacles(spec, most.as_ref()).is_empty() {
        spec.domain.memory.get_or_insert_default().max_guest = most;
    }
}

/// Everything that keeps memory from being plugged into this guest up to `most`.
pub fn hotplug_obstacles(spec: &VirtualMachineInstanceSpec, most: Option<&Quantity>) -> Vec<&'static str> {
    let domain = &spec.domain;
    let cpu = domain.cpu.as_ref();
    let numa = cpu.and_then(|cpu| cpu.numa.as_ref());
    let memory = domain.memory.as_ref();
    let guest = memory.and_then(|memory| memory.guest.as_ref()?.amount().ok());
    let most = most.and_then(|most| most.amount().ok());
    let page = memory.and_then(|memory| memory.hugepages.as_ref()?.page_size.as_deref());
    let block = if page == Some("1Gi") { HUGE_BLOCK } else { BLOCK };
    let broken = |amount: Option<Amount>| amount.is_some_and(|amount| amount.value() % block != 0);
    let table = [
        (cpu.is_some_and(|cpu| cpu.realtime.is_some()), "cpu.realtime keeps it from growing"),
        (
            numa.is_some_and(|numa| numa.guest_mapping_passthrough.is_some()),
            "cpu.numa.guestMappingPassthrough keeps it from growing",
        ),
        (domain.launch_security.is_some(), "launchSecurity keeps it from growing"),
        (guest.is_none(), "memory.guest must say how much memory the guest starts with"),
        (most.is_none(), "memory.maxGuest must say how much memory the guest can grow to"),
        (
            guest.zip(most).is_some_and(|(guest, most)| guest > most),
            "memory.guest is more than memory.maxGuest",
        ),
        (broken(guest), "memory.guest must be a multiple of 2Mi, or of 1Gi with pages of that size"),
        (broken(most), "memory.maxGuest must be a multiple of 2Mi, or of 1Gi with pages of that size"),
        (architecture::of(spec) != "amd64", "only guests for amd64 can grow"),
        (guest.is_some_and(|guest| guest.value() < LEAST_GUEST), "a guest with less than 1Gi cannot grow"),
    ];
    table.into_iter().filter(|(holds, _)| *holds).map(|(_, text)| text).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, patched, read};

    fn spec(domain: &Value) -> VirtualMachineInstanceSpec {
        read(json!({ "architecture": "amd64", "domain": patched(&json!({ "devices": {} }), domain) }))
    }

    #[test]
    fn the_guest_has_what_is_requested_for_it() {
        let cases = [
            (json!({}), None),
            (
                json!({ "memory": { "guest": "1Gi" }, "resources": { "requests": { "memory": "2Gi" } } }),
                Some("1Gi"),
            ),
            (
                json!({ "resources": { "requests": { "memory": "2Gi" }, "limits": { "memory": "3Gi" } } }),
                Some("2Gi"),
            ),
            (
                json!({ "resources": { "requests": { "memory": "0" }, "limits": { "memory": "3Gi" } } }),
                Some("3Gi"),
            ),
            (
                json!({ "resources": { "requests": { "memory": "lots" }, "limits": { "memory": "3Gi" } } }),
                Some("3Gi"),
            ),
            (
                json!({ "resources": { "requests": { "memory": "64M" } }, "memory": { "hugepages": { "pageSize": "2Mi" } } }),
                Some("64M"),
            ),
            (json!({ "memory": { "hugepages": { "pageSize": "2Mi" } } }), Some("2Mi")),
            (json!({ "memory": { "hugepages": { "pageSize": "wide" } } }), None),
            (json!({ "memory": { "hugepages": {} } }), None),
        ];
        for (domain, expected) in cases {
            let mut spec = spec(&domain);
            set_guest(&mut spec);
            let guest = spec.domain.memory.unwrap().guest.map(|guest| guest.0);
            assert_eq!(guest.as_deref(), expected, "{domain}");
        }
    }

    #[test]
    fn there_is_room_for_four_times_the_memory_unless_something_is_in_the_way() {
        let cases = [
            (json!({ "memory": { "guest": "1Gi" } }), Some("4Gi")),
            (json!({ "memory": { "guest": "3Gi" } }), Some("12Gi")),
            (json!({ "memory": { "guest": "2G" } }), None),
            (json!({ "memory": { "guest": "1Gi", "maxGuest": "2Gi" } }), Some("2Gi")),
            (json!({ "memory": { "guest": "512Mi" } }), None),
            (json!({ "memory": { "guest": "1025Mi" } }), None),
            (json!({ "memory": { "guest": "1026Mi" } }), Some("4104Mi")),
            (json!({ "memory": { "guest": "1026Mi", "hugepages": { "pageSize": "1Gi" } } }), None),
            (json!({ "memory": { "guest": "2Gi", "hugepages": { "pageSize": "1Gi" } } }), Some("8Gi")),
            (json!({ "memory": { "guest": "lots" } }), None),
            (json!({ "memory": { "guest": "8Ei" } }), None),
            (json!({ "memory": { "guest": "-2Mi" } }), None),
            (json!({ "memory": {} }), None),
            (json!({ "memory": { "guest": "1Gi" }, "launchSecurity": { "sev": {} } }), None),
            (json!({ "memory": { "guest": "1Gi" }, "cpu": { "realtime": {} } }), None),
            (json!({ "memory": { "guest": "1Gi" }, "cpu": { "numa": {} } }), Some("4Gi")),
            (
                json!({ "memory": { "guest": "1Gi" }, "cpu": { "numa": { "guestMappingPassthrough": {} } } }),
                None,
            ),
        ];
        for (domain, expected) in cases {
            let mut spec = spec(&domain);
            set_hotplug_room(&ClusterConfig::default(), &mut spec);
            let most = spec.domain.memory.unwrap().max_guest.map(|most| most.0);
            assert_eq!(most.as_deref(), expected, "{domain}");
        }
    }

    #[test]
    fn the_cluster_can_set_the_room() {
        let cases = [
            (json!({ "maxGuest": "6Gi" }), "2Gi", Some("6Gi")),
            (json!({ "maxGuest": "6Gi" }), "8Gi", None),
            (json!({ "maxGuest": "6145Mi" }), "2Gi", None),
            (json!({ "maxHotplugRatio": 2 }), "2Gi", Some("4Gi")),
            (json!({ "maxHotplugRatio": 1 }), "2Gi", Some("2Gi")),
            (json!({ "maxHotplugRatio": 0 }), "2Gi", Some("8Gi")),
            (json!({ "maxHotplugRatio": -3 }), "2Gi", None),
        ];
        for (live, guest, expected) in cases {
            let world = World::default().with_configuration(json!({ "liveUpdateConfiguration": live }));
            let mut spec = spec(&json!({ "memory": { "guest": guest } }));
            set_hotplug_room(&world.config, &mut spec);
            let most = spec.domain.memory.unwrap().max_guest.map(|most| most.0);
            assert_eq!(most.as_deref(), expected, "{live} {guest}");
        }
    }
}
