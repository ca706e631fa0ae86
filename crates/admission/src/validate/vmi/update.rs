//! Changes of a running instance: users change no specification and none of our labels.

use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec};

use super::{metadata, node_restriction};
use crate::validate::same::same;
use crate::validate::vmi_spec::storage::{hotplug, utility_volumes};
use crate::{Context, Path, Problems};

/// Everything that is wrong with a change.
pub(super) fn check(
    cx: &Context<'_>,
    new: &VirtualMachineInstance,
    old: &VirtualMachineInstance,
) -> Problems {
    let mut problems = Problems::default();
    node_restriction::check(cx, new, old, &mut problems);
    let own = cx.by_own_component();
    if !same(&new.spec, &old.spec) {
        // Our own components write what users ask for through subresources and the virtual machine.
        if own {
            check_grown(&new.spec, &old.spec, &mut problems);
            utility_volumes::check_change(cx, new, old, &mut problems);
            hotplug::check_change(cx, new, old, &mut problems);
        } else {
            let message =
                "the specification of a running instance is not changed here; change its VirtualMachine";
            problems.not_supported(&Path::WHOLE, message);
        }
    }
    let labels = |vmi: &VirtualMachineInstance| {
        let all = metadata::own_labels(vmi.metadata.labels.as_ref());
        all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<Vec<_>>()
    };
    if !own && labels(new) != labels(old) {
        problems.not_supported(&Path::WHOLE, "the labels of KubeVirt's components are not changed by users");
    }
    problems
}

/// How far a guest can grow is settled when it starts.
fn check_grown(new: &VirtualMachineInstanceSpec, old: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let sockets = |spec: &VirtualMachineInstanceSpec| {
        spec.domain.cpu.as_ref().and_then(|cpu| cpu.max_sockets).unwrap_or_default()
    };
    if sockets(new) != sockets(old) {
        problems.invalid(&Path::WHOLE, "cpu.maxSockets cannot change while the guest runs");
    }
    let memory = |spec: &VirtualMachineInstanceSpec| {
        let memory = spec.domain.memory.as_ref()?;
        memory.max_guest.as_ref().map(QuantityExt::amount)
    };
    if let (Some(new), Some(old)) = (memory(new), memory(old))
        && new != old
    {
        problems.invalid(&Path::WHOLE, "memory.maxGuest cannot change while the guest runs");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::base;
    use crate::testing::{World, assert_fields, patched, read};
    use crate::{Problems, Reason};

    fn change(world: &World, before: &Value, after: &Value) -> Problems {
        let (old, new) = (read(patched(&base(), before)), read(patched(&base(), after)));
        world.run(|cx| super::super::check(cx, &new, Some(&old)))
    }

    #[test]
    fn users_change_no_specification() {
        let user = World::default().updating();
        let none = json!({});
        let memory = |guest: &str| json!({ "spec": { "domain": { "memory": { "guest": guest } } } });
        for (name, before, after, expected) in [
            ("nothing", &none, &none, &[][..]),
            ("annotation", &none, &json!({ "metadata": { "annotations": { "a": "b" } } }), &[]),
            ("label", &none, &json!({ "metadata": { "labels": { "a": "b" } } }), &[]),
            ("status", &none, &json!({ "status": { "phase": "Running" } }), &[]),
            ("memory", &none, &memory("2Gi"), &[""]),
            ("memory in other words", &none, &memory("1024Mi"), &[]),
            ("host name", &none, &json!({ "spec": { "hostname": "web" } }), &[""]),
            (
                "own label",
                &none,
                &json!({ "metadata": { "labels": { "kubevirt.io/nodeName": "n" } } }),
                &[""],
            ),
            (
                "own label gone",
                &json!({ "metadata": { "labels": { "kubevirt.io/nodeName": "n" } } }),
                &none,
                &[""],
            ),
            (
                "own label changed",
                &json!({ "metadata": { "labels": { "kubevirt.io/created-by": "a" } } }),
                &json!({ "metadata": { "labels": { "kubevirt.io/created-by": "b" } } }),
                &[""],
            ),
            (
                "own label kept",
                &json!({ "metadata": { "labels": { "kubevirt.io/created-by": "a" } } }),
                &json!({ "metadata": { "labels": { "kubevirt.io/created-by": "a", "b": "c" } } }),
                &[],
            ),
        ] {
            let problems = change(&user, before, after);
            assert_fields(name, &problems, expected);
            assert!(problems.iter().all(|problem| problem.reason == Reason::NotSupported), "{name}");
        }
    }

    #[test]
    fn our_own_components_grow_a_guest_within_its_limits() {
        let own = World::default().updating().by_controller();
        let none = json!({});
        let domain = |domain: Value| json!({ "spec": { "domain": domain } });
        for (name, before, after, expected) in [
            ("sockets", &none, &domain(json!({ "cpu": { "sockets": 2 } })), &[][..]),
            ("most sockets", &none, &domain(json!({ "cpu": { "maxSockets": 8 } })), &[""]),
            ("no CPU any more", &none, &domain(json!({ "cpu": null })), &[""]),
            ("guest", &none, &domain(json!({ "memory": { "guest": "2Gi" } })), &[]),
            ("most memory", &none, &domain(json!({ "memory": { "maxGuest": "8Gi" } })), &[""]),
            (
                "most memory in other words",
                &none,
                &domain(json!({ "memory": { "maxGuest": "4096Mi", "guest": "2Gi" } })),
                &[],
            ),
            ("most memory gone", &none, &domain(json!({ "memory": { "maxGuest": null } })), &[]),
            ("own label", &none, &json!({ "metadata": { "labels": { "kubevirt.io/nodeName": "n" } } }), &[]),
        ] {
            let problems = change(&own, before, after);
            assert_fields(name, &problems, expected);
            assert!(problems.iter().all(|problem| problem.reason == Reason::Invalid), "{name}");
        }
    }
}
