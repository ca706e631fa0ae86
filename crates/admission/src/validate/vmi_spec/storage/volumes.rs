//! Volumes, each for itself: one source, and what that needs.

use std::collections::HashMap;

use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vmi::volumes::Volume;

use super::{cloud_init, container_path, host_disk};
use crate::validate::vmi_spec::image_path;
use crate::{Context, Gate, Path, Problems};

/// Everything that is wrong with volumes; `path` is that of the list.
pub(super) fn check(cx: &Context<'_>, path: &Path<'_>, volumes: &[Volume], problems: &mut Problems) {
    let mut names = HashMap::with_capacity(volumes.len());
    for (index, volume) in volumes.iter().enumerate() {
        let at = path.index(index);
        if let Some(first) = names.get(volume.name.as_str()) {
            let message =
                format!("volume {first} is called {:?} too: names of volumes are unique", volume.name);
            problems.invalid(&at.at("name"), message);
        } else {
            names.insert(volume.name.as_str(), index);
        }
        check_volume(cx, &at, volume, problems);
    }
    let count = |source: fn(&Volume) -> bool| volumes.iter().filter(|volume| source(volume)).count();
    for (source, found) in [
        ("serviceAccount", count(|volume| volume.service_account.is_some())),
        ("downwardMetrics", count(|volume| volume.downward_metrics.is_some())),
        ("memoryDump", count(|volume| volume.memory_dump.is_some())),
    ] {
        if found > 1 {
            problems.invalid(path, format!("{found} volumes are a {source}: there can be one"));
        }
    }
}

fn check_volume(cx: &Context<'_>, at: &Path<'_>, volume: &Volume, problems: &mut Problems) {
    match sources_of(volume) {
        1 => {}
        0 => problems.invalid(at, "the volume has no source: set one, such as persistentVolumeClaim"),
        several => problems.invalid(at, format!("the volume has {several} sources: keep one of them")),
    }
    check_names(at, volume, problems);
    cloud_init::check(at, volume, problems);
    if volume.downward_metrics.is_some() && !cx.config.enabled(Gate::DownwardMetrics) {
        let gate = Gate::DownwardMetrics.name();
        problems.invalid(at, format!("downward metrics need the feature gate {gate}"));
    }
    if let Some(source) = &volume.host_disk {
        host_disk::check(cx, at, source, problems);
    }
    if let Some(source) = &volume.container_path {
        container_path::check(&at.at("containerPath"), source, problems);
    }
    if let Some(Err(why)) = volume.empty_disk.as_ref().map(|source| source.capacity.amount()) {
        problems.invalid(&at.at("emptyDisk.capacity"), why.to_string());
    }
    let image_file = volume.container_disk.as_ref().and_then(|source| source.path.as_deref());
    if let Some(file) = image_file.filter(|file| !file.is_empty()) {
        image_path::check(&at.at("containerDisk"), file, problems);
    }
}

/// What some sources refer to has a name.
fn check_names(at: &Path<'_>, volume: &Volume, problems: &mut Problems) {
    let missing = |name: Option<&String>| name.is_none_or(String::is_empty);
    if volume.data_volume.as_ref().is_some_and(|source| source.name.is_empty()) {
        problems.required(&at.at("name"), "the name of the DataVolume is missing: set dataVolume.name");
    }
    if volume.config_map.as_ref().is_some_and(|source| missing(source.name.as_ref())) {
        problems.invalid(&at.at("configMap.name"), "the name of the ConfigMap is missing");
    }
    if volume.secret.as_ref().is_some_and(|source| missing(source.secret_name.as_ref())) {
        problems.invalid(&at.at("secret.secretName"), "the name of the Secret is missing");
    }
    if volume.service_account.as_ref().is_some_and(|source| missing(source.service_account_name.as_ref())) {
        let field = at.at("serviceAccount.serviceAccountName");
        problems.invalid(&field, "the name of the ServiceAccount is missing");
    }
}

/// How many sources a volume has.
fn sources_of(volume: &Volume) -> usize {
    let sources = [
        volume.host_disk.is_some(),
        volume.persistent_volume_claim.is_some(),
        volume.cloud_init_no_cloud.is_some(),
        volume.cloud_init_config_drive.is_some(),
        volume.sysprep.is_some(),
        volume.container_disk.is_some(),
        volume.ephemeral.is_some(),
        volume.empty_disk.is_some(),
        volume.data_volume.is_some(),
        volume.config_map.is_some(),
        volume.secret.is_some(),
        volume.downward_api.is_some(),
        volume.service_account.is_some(),
        volume.downward_metrics.is_some(),
        volume.memory_dump.is_some(),
        volume.container_path.is_some(),
    ];
    sources.into_iter().filter(|set| *set).count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::try_all;
    use crate::testing::World;

    #[test]
    fn every_source_is_enough_by_itself() {
        let sources = [
            ("hostDisk", json!({"path": "/a", "type": "Disk"})),
            ("persistentVolumeClaim", json!({"claimName": "c"})),
            ("cloudInitNoCloud", json!({"userData": "x"})),
            ("cloudInitConfigDrive", json!({"userData": "x"})),
            ("sysprep", json!({"secret": {"name": "s"}})),
            ("containerDisk", json!({"image": "i"})),
            ("ephemeral", json!({"persistentVolumeClaim": {"claimName": "c"}})),
            ("emptyDisk", json!({"capacity": "1Gi"})),
            ("dataVolume", json!({"name": "d"})),
            ("configMap", json!({"name": "c"})),
            ("secret", json!({"secretName": "s"})),
            ("downwardAPI", json!({})),
            ("serviceAccount", json!({"serviceAccountName": "s"})),
            ("downwardMetrics", json!({})),
            ("memoryDump", json!({"claimName": "c"})),
            ("containerPath", json!({"path": "/a"})),
        ];
        let world = World::default().with_gates(&["HostDisk", "DownwardMetrics"]);
        for (name, source) in sources {
            let one = json!([{"name": "v", (name): source}]);
            let two = json!([{"name": "v", (name): source, "notASource": 1}]);
            try_all(&world, vec![(name, json!([]), one, &[]), (name, json!([]), two, &[])]);
            if name != "emptyDisk" {
                let two = json!([{"name": "v", (name): source, "emptyDisk": {"capacity": "1Gi"}}]);
                try_all(&world, vec![(name, json!([]), two, &["spec.volumes[0]"])]);
            }
        }
    }

    #[test]
    fn a_volume_is_checked_field_by_field() {
        let one = |name: &str, source| json!([{"name": "v", (name): source}]);
        let two = |name: &str, source: serde_json::Value| json!([{"name": "a", (name): source}, {"name": "b", (name): source}]);
        let world = World::default();
        try_all(
            &world,
            vec![
                ("no source", json!([]), json!([{"name": "v"}]), &["spec.volumes[0]"]),
                (
                    "a name three times",
                    json!([]),
                    json!([
                        {"name": "v", "emptyDisk": {"capacity": "1"}},
                        {"name": "v", "emptyDisk": {"capacity": "1"}},
                        {"name": "v", "emptyDisk": {"capacity": "1"}},
                    ]),
                    &["spec.volumes[1].name", "spec.volumes[2].name"],
                ),
                (
                    "a nameless data volume",
                    json!([]),
                    one("dataVolume", json!({"name": ""})),
                    &["spec.volumes[0].name"],
                ),
                (
                    "a nameless config map",
                    json!([]),
                    one("configMap", json!({})),
                    &["spec.volumes[0].configMap.name"],
                ),
                (
                    "an empty name",
                    json!([]),
                    one("configMap", json!({"name": ""})),
                    &["spec.volumes[0].configMap.name"],
                ),
                (
                    "a nameless secret",
                    json!([]),
                    one("secret", json!({})),
                    &["spec.volumes[0].secret.secretName"],
                ),
                (
                    "a nameless account",
                    json!([]),
                    one("serviceAccount", json!({})),
                    &["spec.volumes[0].serviceAccount.serviceAccountName"],
                ),
                (
                    "metrics without the gate",
                    json!([]),
                    one("downwardMetrics", json!({})),
                    &["spec.volumes[0]"],
                ),
                (
                    "a file of an image",
                    json!([]),
                    one("containerDisk", json!({"image": "i", "path": "/disk/a.img"})),
                    &[],
                ),
                (
                    "an empty file of an image",
                    json!([]),
                    one("containerDisk", json!({"image": "i", "path": ""})),
                    &[],
                ),
                (
                    "a root of an image",
                    json!([]),
                    one("containerDisk", json!({"image": "i", "path": "/"})),
                    &["spec.volumes[0].containerDisk"],
                ),
                (
                    "a relative file of an image",
                    json!([]),
                    one("containerDisk", json!({"image": "i", "path": "disk/a.img"})),
                    &["spec.volumes[0].containerDisk"],
                ),
                (
                    "a malformed size",
                    json!([]),
                    one("emptyDisk", json!({"capacity": "much"})),
                    &["spec.volumes[0].emptyDisk.capacity"],
                ),
                ("an empty sysprep", json!([]), one("sysprep", json!({})), &[]),
                ("an empty ephemeral", json!([]), one("ephemeral", json!({})), &[]),
                (
                    "two accounts",
                    json!([]),
                    two("serviceAccount", json!({"serviceAccountName": "s"})),
                    &["spec.volumes"],
                ),
                ("two dumps", json!([]), two("memoryDump", json!({"claimName": "c"})), &["spec.volumes"]),
                (
                    "two metrics",
                    json!([]),
                    two("downwardMetrics", json!({})),
                    &["spec.volumes", "spec.volumes[0]", "spec.volumes[1]"],
                ),
            ],
        );
    }
}
