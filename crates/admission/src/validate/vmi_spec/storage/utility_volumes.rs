//! Changes to the utility volumes of a running instance, which are only ever plugged in.

use std::collections::HashMap;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::volumes::UtilityVolume;

use super::hotplug::permanent_volumes;
use super::volumes_of;
use crate::validate::same::same;
use crate::{Context, Gate, Path, Problems};

/// Everything that is wrong with a change to the utility volumes of a running instance.
pub fn check_change(
    cx: &Context<'_>,
    new: &VirtualMachineInstance,
    old: &VirtualMachineInstance,
    problems: &mut Problems,
) {
    let volumes = utility_volumes_of(new);
    let path = Path::new("spec.utilityVolumes");
    if !volumes.is_empty() && !cx.config.enabled(Gate::UtilityVolumes) {
        let gate = Gate::UtilityVolumes.name();
        problems.invalid(&path, format!("utility volumes need the feature gate {gate}"));
        return;
    }
    check_names(&path, new, problems);
    let permanent = permanent_volumes(old);
    let before: HashMap<&str, &UtilityVolume> =
        utility_volumes_of(old).iter().map(|volume| (volume.name.as_str(), volume)).collect();
    for volume in volumes {
        let name = volume.name.as_str();
        if permanent.contains(name) {
            let message =
                format!("utility volume {name:?} has the name of a volume that was there at the start");
            problems.invalid(&Path::WHOLE, message);
        }
        if before.get(name).is_some_and(|before| !same(volume, *before)) {
            let message = format!("utility volume {name:?} is plugged in and cannot change: remove it first");
            problems.invalid(&Path::WHOLE, message);
        }
    }
}

fn check_names(path: &Path<'_>, vmi: &VirtualMachineInstance, problems: &mut Problems) {
    let volumes: HashMap<&str, usize> = volumes_of(&vmi.spec)
        .iter()
        .enumerate()
        .map(|(index, volume)| (volume.name.as_str(), index))
        .collect();
    let mut names = HashMap::new();
    for (index, volume) in utility_volumes_of(vmi).iter().enumerate() {
        let at = path.index(index);
        let name = volume.name.as_str();
        if name.is_empty() {
            problems.required(&at.at("name"), "the name of the utility volume is missing");
        }
        if let Some(first) = names.get(name) {
            let message = format!("utility volume {first} is called {name:?} too: names are unique");
            problems.duplicate(&at.at("name"), message);
        } else {
            names.insert(name, index);
        }
        if let Some(other) = volumes.get(name) {
            let message = format!("volume {other} is called {name:?} too: choose another name");
            problems.duplicate(&at.at("name"), message);
        }
        if volume.claim_name.is_empty() {
            problems.required(&at.at("claimName"), "the name of the claim is missing");
        }
    }
}

fn utility_volumes_of(vmi: &VirtualMachineInstance) -> &[UtilityVolume] {
    vmi.spec.utility_volumes.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Reason;
    use crate::testing::{World, assert_fields, read};

    fn found(world: &World, new: &Value, old: &Value) -> Problems {
        let instance = |utility: &Value| {
            read(json!({
                "spec": {
                    "domain": {"devices": {}},
                    "volumes": [{"name": "root", "emptyDisk": {"capacity": "1Gi"}}],
                    "utilityVolumes": utility,
                },
                "status": {"volumeStatus": [
                    {"name": "root", "target": "vda"},
                    {"name": "gone", "target": "vdb"},
                    {"name": "plugged", "target": "", "hotplugVolume": {}},
                ]},
            }))
        };
        let mut problems = Problems::default();
        world.run(|cx| check_change(cx, &instance(new), &instance(old), &mut problems));
        problems
    }

    #[test]
    fn utility_volumes_are_plugged_in() {
        let world = World::default().with_gates(&["UtilityVolumes"]);
        const NAME: &str = "spec.utilityVolumes[0].name";
        let cases: Vec<(&str, Value, &[&str])> = vec![
            ("none", json!([]), &[]),
            ("one", json!([{"name": "u", "claimName": "c"}]), &[]),
            ("one plugged already", json!([{"name": "plugged", "claimName": "c"}]), &[]),
            ("one that stays", json!([{"name": "old", "claimName": "c"}]), &[]),
            ("one that changes", json!([{"name": "old", "claimName": "x"}]), &[""]),
            ("no name", json!([{"name": "", "claimName": "c"}]), &[NAME]),
            ("no claim", json!([{"name": "u", "claimName": ""}]), &["spec.utilityVolumes[0].claimName"]),
            (
                "a name twice",
                json!([{"name": "u", "claimName": "c"}, {"name": "u", "claimName": "c"}]),
                &["spec.utilityVolumes[1].name"],
            ),
            ("the name of a volume", json!([{"name": "root", "claimName": "c"}]), &[NAME, ""]),
            ("the name of a volume of the start", json!([{"name": "gone", "claimName": "c"}]), &[""]),
        ];
        let old = json!([{"name": "old", "claimName": "c"}]);
        for (case, new, expected) in cases {
            assert_fields(case, &found(&world, &new, &old), expected);
        }
        let poor = json!([{"name": "", "claimName": ""}, {"name": "", "claimName": "c"}]);
        let problems = found(&world, &poor, &old);
        let reasons: Vec<Reason> = problems.iter().map(|problem| problem.reason).collect();
        assert_eq!(reasons, [Reason::Required, Reason::Required, Reason::Required, Reason::Duplicate]);
        let off = World::default();
        assert_fields("none without the gate", &found(&off, &json!([]), &json!([])), &[]);
        let one = json!([{"name": "u", "claimName": ""}]);
        assert_fields("one without the gate", &found(&off, &one, &json!([])), &["spec.utilityVolumes"]);
    }
}
