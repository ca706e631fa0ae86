//! Rules for instance types, of a namespace and of the cluster.

use kubevirt_api::instancetype::{
    VirtualMachineClusterInstancetype, VirtualMachineInstancetype, VirtualMachineInstancetypeSpec,
};
use kubevirt_api::quantity::QuantityExt;

use crate::{Context, Path, Problems};

/// Everything that is wrong with an instance type; any change of it is allowed.
pub fn check(
    _cx: &Context<'_>,
    new: &VirtualMachineInstancetype,
    _old: Option<&VirtualMachineInstancetype>,
) -> Problems {
    check_spec(&Path::new("spec"), &new.spec)
}

/// Everything that is wrong with an instance type of the cluster; any change of it is allowed.
pub fn check_cluster(
    _cx: &Context<'_>,
    new: &VirtualMachineClusterInstancetype,
    _old: Option<&VirtualMachineClusterInstancetype>,
) -> Problems {
    check_spec(&Path::new("spec"), &new.spec)
}

/// Everything that is wrong with the specification of an instance type that stands at this path.
pub fn check_spec(path: &Path<'_>, spec: &VirtualMachineInstancetypeSpec) -> Problems {
    let mut problems = Problems::default();
    let pool = spec.io_threads.as_ref().and_then(|threads| threads.supplemental_pool_thread_count);
    for (field, count) in [
        ("cpu.guest", Some(spec.cpu.guest)),
        ("cpu.maxSockets", spec.cpu.max_sockets),
        ("ioThreads.supplementalPoolThreadCount", pool),
    ] {
        if let Some(count) = count.filter(|count| *count < 0) {
            problems.invalid(&path.at(field), format!("{count} is negative, but this counts something"));
        }
    }
    for (field, quantity) in
        [("memory.guest", Some(&spec.memory.guest)), ("memory.maxGuest", spec.memory.max_guest.as_ref())]
    {
        if let Some(Err(error)) = quantity.map(QuantityExt::amount) {
            problems.invalid(&path.at(field), format!("{error}: write it as 512Mi or 4Gi"));
        }
    }
    let percent = spec.memory.overcommit_percent.unwrap_or_default();
    if !(0..=100).contains(&percent) {
        let message = format!("{percent} is no share of the memory: use a percentage from 0 to 100");
        problems.invalid(&path.at("memory.overcommitPercent"), message);
    }
    if percent != 0 && spec.memory.hugepages.is_some() {
        let message =
            "huge pages are set aside in full, so they cannot be overcommitted: use one or the other";
        problems.invalid(&path.at("memory.overcommitPercent"), message);
    }
    if spec.launch_security.is_some() {
        let field = path.at("launchSecurity");
        problems.warn(format!("{field} is deprecated: set preferredLaunchSecurity in a preference instead"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{World, assert_fields, patched, read};

    #[test]
    fn an_instance_type_is_a_size_that_a_vm_can_have() {
        let base = json!({
            "metadata": { "name": "i" }, "spec": { "cpu": { "guest": 1 }, "memory": { "guest": "1Gi" } },
        });
        let overcommit = "spec.memory.overcommitPercent";
        let cases = [
            ("plain", json!({}), vec![]),
            ("no CPUs", json!({ "cpu": { "guest": 0 } }), vec![]),
            ("negative CPUs", json!({ "cpu": { "guest": -1 } }), vec!["spec.cpu.guest"]),
            ("negative sockets", json!({ "cpu": { "maxSockets": -1 } }), vec!["spec.cpu.maxSockets"]),
            (
                "negative threads",
                json!({ "ioThreads": { "supplementalPoolThreadCount": -1 } }),
                vec!["spec.ioThreads.supplementalPoolThreadCount"],
            ),
            ("no overcommit", json!({ "memory": { "overcommitPercent": 0 } }), vec![]),
            ("some overcommit", json!({ "memory": { "overcommitPercent": 15 } }), vec![]),
            ("full overcommit", json!({ "memory": { "overcommitPercent": 100 } }), vec![]),
            ("negative overcommit", json!({ "memory": { "overcommitPercent": -1 } }), vec![overcommit]),
            ("too much overcommit", json!({ "memory": { "overcommitPercent": 101 } }), vec![overcommit]),
            (
                "overcommitted huge pages",
                json!({ "memory": { "overcommitPercent": 15, "hugepages": { "pageSize": "2Mi" } } }),
                vec![overcommit],
            ),
            (
                "overcommitted twice over",
                json!({ "memory": { "overcommitPercent": 150, "hugepages": {} } }),
                vec![overcommit, overcommit],
            ),
            ("huge pages", json!({ "memory": { "overcommitPercent": 0, "hugepages": {} } }), vec![]),
            ("memory", json!({ "memory": { "guest": "a lot" } }), vec!["spec.memory.guest"]),
            ("most memory", json!({ "memory": { "maxGuest": "1 Gi" } }), vec!["spec.memory.maxGuest"]),
        ];
        for (name, spec, expected) in cases {
            let object = patched(&base, &json!({ "spec": spec }));
            let namespaced = World::default().run(|cx| check(cx, &read(object.clone()), None));
            assert_fields(name, &namespaced, &expected);
            assert_eq!(
                World::default().run(|cx| check_cluster(cx, &read(object), None)),
                namespaced,
                "{name}"
            );
            assert!(namespaced.warnings().is_empty(), "{name}");
        }
    }

    #[test]
    fn any_change_is_allowed() {
        let old = VirtualMachineInstancetype::default();
        let new = read(json!({ "spec": { "cpu": { "guest": 9 }, "memory": { "guest": "9Gi" } } }));
        assert_fields("grown", &World::default().updating().run(|cx| check(cx, &new, Some(&old))), &[]);
    }

    #[test]
    fn launch_security_is_better_left_to_preferences() {
        let spec = json!({ "cpu": { "guest": 1 }, "memory": { "guest": "1Gi" }, "launchSecurity": {} });
        let problems = check_spec(&Path::new("spec"), &read(spec));
        assert_fields("deprecated", &problems, &[]);
        assert_eq!(problems.warnings().len(), 1);
    }
}
