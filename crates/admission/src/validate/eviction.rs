//! What becomes of a request to evict a pod: pods of running machines are not simply deleted.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::Eviction;
use kubevirt_api::condition;
use kubevirt_api::names::external::autoscaler::{DESCHEDULER, REQUESTED_BY};
use kubevirt_api::names::values::app;
use kubevirt_api::names::{annotations, conditions, labels};
use kubevirt_api::vmi::{EvictionStrategy, VirtualMachineInstance};

use crate::Context;

/// What to answer to an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The pod may go.
    Allow,
    /// The pod stays; the one who asks may try again later (429, Too Many Requests).
    Refuse {
        /// Why.
        message: String,
    },
    /// The pod stays, and its instance is marked to leave the node; answered like a refusal.
    Evacuate {
        /// Where the instance is.
        namespace: String,
        /// What it is called.
        vmi: String,
        /// The node that it has to leave: its `status.evacuationNodeName` from now on.
        node: String,
        /// Whether the descheduler asks, which is noted on the instance.
        by_descheduler: bool,
        /// Whether nothing is to be stored.
        dry_run: bool,
        /// What to answer; the descheduler looks for these words.
        message: String,
    },
}

/// Whether the pod that the request names may be evicted.
pub fn check(cx: &Context<'_>, eviction: &Eviction) -> Decision {
    let Some(pod) = cx.objects.pod(&cx.request.namespace, &cx.request.name) else {
        return Decision::Allow;
    };
    match component(&pod) {
        Some(app::HOTPLUG_DISK) => hotplug(cx, &pod),
        Some(app::LAUNCHER) if !is_over(&pod) => launcher(cx, &pod, eviction),
        _ => Decision::Allow,
    }
}

/// A pod that holds a hotplugged volume stays as long as its machine runs.
fn hotplug(cx: &Context<'_>, pod: &Pod) -> Decision {
    let namespace = &cx.request.namespace;
    let owner = match pod.metadata.owner_references.as_deref() {
        Some([owner]) => cx.objects.pod(namespace, &owner.name),
        _ => None,
    };
    let running = owner.filter(|owner| component(owner) == Some(app::LAUNCHER) && !is_over(owner));
    let vmi = running.as_deref().and_then(instance).and_then(|name| cx.objects.vmi(namespace, name));
    match vmi.as_ref().and_then(|vmi| vmi.metadata.name.as_deref()) {
        Some(vmi) => Decision::Refuse {
            message: format!(
                "pod {namespace}/{} holds a hotplugged volume of instance {vmi}, which runs",
                cx.request.name
            ),
        },
        None => Decision::Allow,
    }
}

fn launcher(cx: &Context<'_>, pod: &Pod, eviction: &Eviction) -> Decision {
    let Some(name) = instance(pod) else { return Decision::Allow };
    let namespace = &cx.request.namespace;
    let Some(vmi) = cx.objects.vmi(namespace, name) else {
        return Decision::Refuse { message: format!("the pod's instance {namespace}/{name} is not known") };
    };
    let cluster = cx.config.configuration().eviction_strategy.as_ref();
    let movable = is_migratable(&vmi);
    match vmi.spec.eviction_strategy.as_ref().or(cluster) {
        Some(EvictionStrategy::LiveMigrate) if !movable => {
            return Decision::Refuse {
                message: format!("instance {name} is to be migrated on eviction but cannot be migrated"),
            };
        }
        Some(EvictionStrategy::LiveMigrate | EvictionStrategy::External) => {}
        Some(EvictionStrategy::LiveMigrateIfPossible) if movable => {}
        _ => return Decision::Allow,
    }
    let message = format!("Eviction triggered evacuation of VMI \"{namespace}/{name}\"");
    let status = vmi.status.as_ref();
    let leaves = status.and_then(|status| status.evacuation_node_name.as_deref()).unwrap_or_default();
    if !leaves.is_empty() {
        return Decision::Refuse { message: format!("Evacuation in progress: {message}") };
    }
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    if status.and_then(|status| status.node_name.as_deref()).unwrap_or_default() != node {
        return Decision::Refuse { message: format!("instance {name} is just arriving in this pod") };
    }
    let asked_by = eviction.metadata.annotations.as_ref().and_then(|all| all.get(REQUESTED_BY));
    Decision::Evacuate {
        namespace: namespace.clone(),
        vmi: name.to_owned(),
        node: node.to_owned(),
        by_descheduler: asked_by.is_some_and(|by| by == DESCHEDULER),
        dry_run: cx.request.dry_run || is_dry_run(eviction),
        message,
    }
}

fn is_dry_run(eviction: &Eviction) -> bool {
    let modes = eviction.delete_options.as_ref().and_then(|options| options.dry_run.as_ref()?.first());
    modes.is_some_and(|mode| mode == "All")
}

/// The component that a pod belongs to.
fn component(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.as_ref()?.get(labels::APP).map(String::as_str)
}

/// The instance that a launcher pod runs.
fn instance(pod: &Pod) -> Option<&str> {
    pod.metadata.annotations.as_ref()?.get(annotations::DOMAIN).map(String::as_str)
}

fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn is_migratable(vmi: &VirtualMachineInstance) -> bool {
    let known = vmi.status.as_ref().and_then(|status| status.conditions.as_deref());
    condition::find(known, conditions::vmi::LIVE_MIGRATABLE).is_some_and(condition::Condition::is_true)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, patched, read, shared};

    fn launcher_pod() -> Value {
        json!({
            "metadata": {
                "name": "virt-launcher-vm",
                "namespace": "default",
                "labels": { "kubevirt.io": "virt-launcher" },
                "annotations": { "kubevirt.io/domain": "vm" },
            },
            "spec": { "nodeName": "node1", "containers": [] },
            "status": { "phase": "Running" },
        })
    }

    fn vmi() -> Value {
        json!({
            "metadata": { "name": "vm", "namespace": "default" },
            "spec": { "evictionStrategy": "LiveMigrate", "domain": { "devices": {} } },
            "status": { "nodeName": "node1", "conditions": [{ "type": "LiveMigratable", "status": "True" }] },
        })
    }

    fn world(pod: &Value, vmi: &Value) -> World {
        let mut world = World::default();
        world.request.name = pod["metadata"]["name"].as_str().unwrap().to_owned();
        world.objects.pods.push(shared(pod.clone()));
        world.objects.vmis.push(shared(vmi.clone()));
        world
    }

    /// One letter for each kind of decision.
    fn letter(decision: &Decision) -> char {
        match decision {
            Decision::Allow => 'a',
            Decision::Refuse { .. } => 'r',
            Decision::Evacuate { .. } => 'e',
        }
    }

    #[test]
    fn the_strategy_decides_on_a_launcher_pod() {
        let immovable =
            json!({ "status": { "conditions": [{ "type": "LiveMigratable", "status": "False" }] } });
        let strategy = |name: &str| json!({ "spec": { "evictionStrategy": name } });
        let both = |name: &str| patched(&immovable, &strategy(name));
        let cases = [
            ("movable", json!({}), 'e'),
            ("immovable", immovable.clone(), 'r'),
            ("no conditions", json!({ "status": { "conditions": null } }), 'r'),
            ("if possible", strategy("LiveMigrateIfPossible"), 'e'),
            ("if possible, but it is not", both("LiveMigrateIfPossible"), 'a'),
            ("external", strategy("External"), 'e'),
            ("external, immovable", both("External"), 'e'),
            ("none", strategy("None"), 'a'),
            ("the cluster's, which is none", json!({ "spec": { "evictionStrategy": null } }), 'a'),
            ("leaving already", json!({ "status": { "evacuationNodeName": "node1" } }), 'r'),
            ("runs elsewhere", json!({ "status": { "nodeName": "node2" } }), 'r'),
        ];
        for (case, patch, expected) in cases {
            let world = world(&launcher_pod(), &patched(&vmi(), &patch));
            let decision = world.run(|cx| check(cx, &Eviction::default()));
            assert_eq!(letter(&decision), expected, "{case}: {decision:?}");
        }
    }

    #[test]
    fn the_cluster_strategy_holds_where_the_instance_has_none() {
        let vmi = patched(&vmi(), &json!({ "spec": { "evictionStrategy": null } }));
        let world =
            world(&launcher_pod(), &vmi).with_configuration(json!({ "evictionStrategy": "LiveMigrate" }));
        assert_eq!(letter(&world.run(|cx| check(cx, &Eviction::default()))), 'e');
    }

    #[test]
    fn other_pods_may_go() {
        let cases = [
            ("another pod", json!({ "metadata": { "labels": null } }), 'a'),
            ("succeeded", json!({ "status": { "phase": "Succeeded" } }), 'a'),
            ("failed", json!({ "status": { "phase": "Failed" } }), 'a'),
            ("names no instance", json!({ "metadata": { "annotations": null } }), 'a'),
            (
                "unknown instance",
                json!({ "metadata": { "annotations": { "kubevirt.io/domain": "x" } } }),
                'r',
            ),
        ];
        for (case, patch, expected) in cases {
            let world = world(&patched(&launcher_pod(), &patch), &vmi());
            let decision = world.run(|cx| check(cx, &Eviction::default()));
            assert_eq!(letter(&decision), expected, "{case}: {decision:?}");
        }
        assert_eq!(World::default().run(|cx| check(cx, &Eviction::default())), Decision::Allow);
    }

    #[test]
    fn pods_of_hotplugged_volumes_stay_with_their_machine() {
        let pod = json!({
            "metadata": {
                "name": "hp-volume",
                "namespace": "default",
                "labels": { "kubevirt.io": "hotplug-disk" },
                "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "virt-launcher-vm", "uid": "1" }],
            },
        });
        let none = json!({ "metadata": { "ownerReferences": null } });
        let cases = [
            ("runs", json!({}), json!({}), 'r'),
            ("no owner", none, json!({}), 'a'),
            ("owner is over", json!({}), json!({ "status": { "phase": "Succeeded" } }), 'a'),
            ("owner is another pod", json!({}), json!({ "metadata": { "labels": null } }), 'a'),
            ("owner has no instance", json!({}), json!({ "metadata": { "annotations": null } }), 'a'),
            (
                "instance is gone",
                json!({}),
                json!({ "metadata": { "annotations": { "kubevirt.io/domain": "x" } } }),
                'a',
            ),
            ("owner is gone", json!({}), json!({ "metadata": { "name": "y" } }), 'a'),
        ];
        for (case, patch, owner_patch, expected) in cases {
            let mut world = world(&patched(&pod, &patch), &vmi());
            world.objects.pods.push(shared(patched(&launcher_pod(), &owner_patch)));
            let decision = world.run(|cx| check(cx, &Eviction::default()));
            assert_eq!(letter(&decision), expected, "{case}: {decision:?}");
        }
    }

    #[test]
    fn the_mark_says_who_asked_and_how_serious() {
        let eviction = |value: Value| read::<Eviction>(value);
        let cases = [
            (json!({ "metadata": {} }), false, false),
            (
                json!({ "metadata": { "annotations": { "requested-by": "sigs.k8s.io/descheduler" } } }),
                true,
                false,
            ),
            (json!({ "metadata": { "annotations": { "requested-by": "me" } } }), false, false),
            (json!({ "metadata": {}, "deleteOptions": { "dryRun": ["All"] } }), false, true),
            (json!({ "metadata": {}, "deleteOptions": { "dryRun": [] } }), false, false),
        ];
        for (value, descheduler, dry) in cases {
            let decision = world(&launcher_pod(), &vmi()).run(|cx| check(cx, &eviction(value)));
            let Decision::Evacuate { vmi, node, by_descheduler, dry_run, message, .. } = decision else {
                panic!("{decision:?}");
            };
            assert_eq!(
                (vmi.as_str(), node.as_str(), by_descheduler, dry_run),
                ("vm", "node1", descheduler, dry)
            );
            assert_eq!(message, "Eviction triggered evacuation of VMI \"default/vm\"");
        }
        let mut world = world(&launcher_pod(), &vmi());
        world.request.dry_run = true;
        let decision = world.run(|cx| check(cx, &Eviction::default()));
        assert!(matches!(decision, Decision::Evacuate { dry_run: true, .. }));
    }
}
