//! Volumes that not every instance may have: claims shared as directories, and utility volumes.

use std::collections::HashSet;

use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use crate::{Context, Gate, Path, Problems};

/// Everything that is wrong.
pub(super) fn check(
    cx: &Context<'_>,
    path: &Path<'_>,
    spec: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    if spec.utility_volumes.as_ref().is_some_and(|volumes| !volumes.is_empty()) {
        let message =
            "utility volumes are plugged into a running instance, not given at its start; remove them";
        problems.invalid(&path.at("utilityVolumes"), message);
    }
    let shared = spec.domain.devices.filesystems.as_deref().unwrap_or_default();
    if shared.is_empty() || cx.config.enabled(Gate::VirtiofsStorageVolumes) {
        return;
    }
    let volumes = spec.volumes.iter().flatten();
    let claims: HashSet<&str> = volumes
        .filter(|volume| volume.persistent_volume_claim.is_some() || volume.data_volume.is_some())
        .map(|volume| volume.name.as_str())
        .collect();
    for filesystem in shared.iter().filter(|filesystem| claims.contains(filesystem.name.as_str())) {
        let message = format!(
            "sharing the claim of volume {:?} needs the feature gate EnableVirtioFsStorageVolumes, which is off",
            filesystem.name
        );
        problems.invalid(&path.at("domain.devices.filesystems"), message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::run;
    use crate::testing::{World, patched};

    #[test]
    fn shared_claims_and_utility_volumes() {
        let shared = |source: Value| {
            json!({
                "volumes": [patched(&json!({ "name": "v" }), &source)],
                "domain": { "devices": {
                    "filesystems": [{ "name": "v", "virtiofs": {} }, { "name": "x", "virtiofs": {} }],
                } },
            })
        };
        let claim = shared(json!({ "persistentVolumeClaim": { "claimName": "c" } }));
        let data = shared(json!({ "dataVolume": { "name": "d" } }));
        let at = "spec.domain.devices.filesystems";
        run(
            &World::default(),
            &[
                ("claim", claim.clone(), &[at]),
                ("data", data.clone(), &[at]),
                ("map", shared(json!({ "configMap": { "name": "m" } })), &[]),
                (
                    "utility",
                    json!({ "utilityVolumes": [{ "name": "u", "claimName": "c" }] }),
                    &["spec.utilityVolumes"],
                ),
                ("no utility", json!({ "utilityVolumes": [] }), &[]),
            ],
        );
        let on = World::default().with_gates(&["EnableVirtioFsStorageVolumes"]);
        run(&on, &[("claim, gate on", claim, &[]), ("data, gate on", data, &[])]);
    }
}
