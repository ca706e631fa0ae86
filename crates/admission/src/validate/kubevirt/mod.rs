//! Rules for `KubeVirt`, the installation itself.

mod certificates;
mod configuration;
mod placement;
mod tls;
mod warnings;

use kubevirt_api::kubevirt::install::{ComponentConfig, UninstallStrategy};
use kubevirt_api::kubevirt::status::KubeVirtPhase;
use kubevirt_api::kubevirt::{KubeVirt, KubeVirtSpec};
use serde::de::IgnoredAny;

use crate::{Context, Path, Problems};

/// Everything that is wrong with an installation: there is only one, and its settings must be usable.
pub fn check(cx: &Context<'_>, new: &KubeVirt, old: Option<&KubeVirt>) -> Problems {
    let mut problems = Problems::default();
    match old {
        Some(old) => check_change(&new.spec, &old.spec, &mut problems),
        None => check_only(cx, &mut problems),
    }
    problems
}

/// Whether the installation may be removed: not while there are workloads, if it is set so.
pub fn check_delete(cx: &Context<'_>, kubevirt: &KubeVirt) -> Problems {
    let mut problems = Problems::default();
    let strategy = kubevirt.spec.uninstall_strategy.as_ref().filter(|strategy| !strategy.is_empty());
    let removes = strategy.is_none_or(|strategy| *strategy == UninstallStrategy::RemoveWorkloads);
    let phase = kubevirt.status.as_ref().and_then(|status| status.phase.as_ref());
    if removes || phase != Some(&KubeVirtPhase::Deployed) {
        return problems;
    }
    let workloads = [
        ("virtual machine instances", cx.objects.vmis("").len()),
        ("virtual machines", cx.objects.vms("").len()),
        ("replica sets", cx.objects.replica_sets("").len()),
    ];
    let left: Vec<String> = workloads
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    if !left.is_empty() {
        problems.forbidden(
            &Path::WHOLE,
            format!(
                "there are still {}; delete them or change spec.uninstallStrategy first",
                left.join(", ")
            ),
        );
    }
    problems
}

fn check_only(cx: &Context<'_>, problems: &mut Problems) {
    if let Some(other) = cx.objects.kubevirts("").first() {
        let name = other.metadata.name.as_deref().unwrap_or_default();
        let namespace = other.metadata.namespace.as_deref().unwrap_or_default();
        problems.forbidden(&Path::WHOLE, format!("KubeVirt is installed already, as {namespace}/{name}"));
    }
}

fn check_change(new: &KubeVirtSpec, old: &KubeVirtSpec, problems: &mut Problems) {
    check_patches(new, problems);
    let strategy = new.certificate_rotate_strategy.as_ref();
    if let Some(certificates) = strategy.and_then(|strategy| strategy.self_signed.as_ref()) {
        certificates::check(certificates, problems);
    }
    let (settings, before) =
        (new.configuration.clone().unwrap_or_default(), old.configuration.clone().unwrap_or_default());
    configuration::check(&settings, &before, problems);
    warnings::warn(&settings, &before, problems);

    let placement =
        |component: &Option<ComponentConfig>| component.clone().unwrap_or_default().node_placement;
    for (name, new, old) in [("infra", &new.infra, &old.infra), ("workloads", &new.workloads, &old.workloads)]
    {
        let (new, old) = (placement(new), placement(old));
        if let Some(new) = new.filter(|new| Some(new) != old.as_ref())
            && let Some(problem) = placement::problem(&new)
        {
            problems.invalid(&Path::WHOLE, format!("spec.{name}.nodePlacement cannot be used: {problem}"));
        }
    }
    match new.infra.as_ref().and_then(|infra| infra.replicas) {
        Some(0) => {
            problems
                .invalid(&Path::WHOLE, "spec.infra.replicas is 0, but the control plane needs at least 1");
        }
        Some(replicas) if !(0..=255).contains(&replicas) => {
            problems.invalid(
                &Path::new("spec.infra.replicas"),
                format!("is {replicas}, but must be from 1 to 255"),
            );
        }
        _ => {}
    }
}

fn check_patches(spec: &KubeVirtSpec, problems: &mut Problems) {
    let patches = spec.customize_components.as_ref().and_then(|components| components.patches.as_deref());
    for patch in patches.unwrap_or_default() {
        if let Err(error) = serde_json::from_str::<IgnoredAny>(&patch.patch) {
            let (kind, name) = (&patch.resource_type, &patch.resource_name);
            problems.not_supported(
                &Path::WHOLE,
                format!("the patch for {kind} {name} in spec.customizeComponents is not JSON: {error}"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, assert_fields, patched, read, shared};

    fn installation(spec: Value) -> Value {
        json!({ "metadata": { "name": "kubevirt", "namespace": "kubevirt" }, "spec": spec })
    }

    #[test]
    fn there_is_only_one() {
        let new = read(installation(json!({})));
        let mut world = World::default();
        assert_fields("first", &world.run(|cx| check(cx, &new, None)), &[]);
        world.objects.kubevirts.push(shared(installation(json!({}))));
        assert_fields("second", &world.run(|cx| check(cx, &new, None)), &[""]);
        assert_fields("update", &world.run(|cx| check(cx, &new, Some(&new))), &[]);
    }

    #[test]
    fn components() {
        let patch = |text: &str| {
            json!({ "customizeComponents": { "patches": [
            { "resourceName": "virt-api", "resourceType": "Deployment", "patch": text, "type": "merge" },
        ] } })
        };
        let infra = |replicas: i64| json!({ "infra": { "replicas": replicas } });
        let placed = |component: &str, placement: Value| json!({ component: { "nodePlacement": placement } });
        let cases = [
            ("nothing", json!({}), &[][..]),
            ("patch", patch(r#"{"a": 1}"#), &[]),
            ("no JSON", patch("{a: 1}"), &[""]),
            ("one replica", infra(1), &[]),
            ("no replica", infra(0), &[""]),
            ("negative", infra(-1), &["spec.infra.replicas"]),
            ("too many", infra(256), &["spec.infra.replicas"]),
            ("infra", placed("infra", json!({ "nodeSelector": { "a": "b" } })), &[]),
            ("bad infra", placed("infra", json!({ "nodeSelector": { "-": "b" } })), &[""]),
            ("workloads", placed("workloads", json!({ "tolerations": [{ "operator": "Exists" }] })), &[]),
            ("bad workloads", placed("workloads", json!({ "tolerations": [{ "operator": "Near" }] })), &[""]),
            (
                "certificates",
                json!({ "certificateRotateStrategy": { "selfSigned": { "server": { "duration": "200h" } } } }),
                &[""],
            ),
            (
                "configuration",
                json!({ "configuration": { "tlsConfiguration": { "ciphers": ["x"] } } }),
                &["spec.configuration.tlsConfiguration.ciphers"],
            ),
        ];
        let old = read(installation(json!({})));
        for (case, spec, expected) in cases {
            let new = read(installation(spec));
            assert_fields(case, &World::default().updating().run(|cx| check(cx, &new, Some(&old))), expected);
        }
        let bad: KubeVirt = read(installation(placed("infra", json!({ "nodeSelector": { "-": "b" } }))));
        assert_fields("as before", &World::default().run(|cx| check(cx, &bad, Some(&bad))), &[]);
    }

    #[test]
    fn removal_can_be_held_up_by_workloads() {
        let block = json!({
            "spec": { "uninstallStrategy": "BlockUninstallIfWorkloadsExist" }, "status": { "phase": "Deployed" },
        });
        let cases = [
            ("blocks", json!({}), &[""][..]),
            ("removes workloads", json!({ "spec": { "uninstallStrategy": "RemoveWorkloads" } }), &[]),
            ("says nothing", json!({ "spec": { "uninstallStrategy": null } }), &[]),
            ("empty", json!({ "spec": { "uninstallStrategy": "" } }), &[]),
            ("unknown", json!({ "spec": { "uninstallStrategy": "Never" } }), &[""]),
            ("not deployed", json!({ "status": { "phase": "Deploying" } }), &[]),
            ("no status", json!({ "status": null }), &[]),
        ];
        let vm = json!({ "metadata": { "name": "a", "namespace": "b" }, "spec": { "template": {} } });
        let vmi =
            json!({ "metadata": { "name": "a", "namespace": "b" }, "spec": { "domain": { "devices": {} } } });
        for kind in ["vm", "vmi", "replica set"] {
            let mut world = World::default();
            match kind {
                "vm" => world.objects.vms.push(shared(vm.clone())),
                "vmi" => world.objects.vmis.push(shared(vmi.clone())),
                _ => world
                    .objects
                    .replica_sets
                    .push(shared(json!({ "spec": { "selector": {}, "template": {} } }))),
            }
            for (case, patch, expected) in &cases {
                let kubevirt = read(patched(&block, patch));
                assert_fields(
                    &format!("{kind}: {case}"),
                    &world.run(|cx| check_delete(cx, &kubevirt)),
                    expected,
                );
            }
        }
        assert_fields("none left", &World::default().run(|cx| check_delete(cx, &read(block.clone()))), &[]);
    }
}
