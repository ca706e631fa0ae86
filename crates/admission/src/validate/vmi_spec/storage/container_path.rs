//! Volumes that are a directory of the launcher's container.

use kubevirt_api::vmi::volumes::ContainerPathVolumeSource;

use crate::{Path, Problems};

/// Directories that are ours.
const RESERVED: [&str; 2] = ["/var/run/kubevirt", "/var/run/libvirt"];

/// What is wrong with the directory; `path` is that of the source.
pub(super) fn check(path: &Path<'_>, source: &ContainerPathVolumeSource, problems: &mut Problems) {
    if !source.path.starts_with('/') {
        problems.invalid(&path.at("path"), format!("{:?} is not absolute: start it with /", source.path));
    }
    if source.path.contains("..") {
        problems.invalid(&path.at("path"), format!("{:?} must not contain ..", source.path));
    }
    if source.read_only == Some(false) {
        problems.invalid(&path.at("readOnly"), "directories can only be shared read-only: leave it out");
    }
}

/// What is wrong with the use of such a volume by an instance: a file system, and none of our directories.
pub(super) fn check_use(
    volume: &Path<'_>,
    source: &ContainerPathVolumeSource,
    on_disk: bool,
    on_filesystem: bool,
    problems: &mut Problems,
) {
    if on_disk {
        problems.invalid(volume, "a directory of the container cannot be a disk: use a file system");
    }
    if !on_filesystem {
        problems.invalid(volume, "a directory of the container needs a file system of its name");
    }
    if let Some(reserved) = RESERVED.iter().find(|prefix| source.path.starts_with(**prefix)) {
        let message = format!("directories below {reserved} are reserved");
        problems.invalid(&volume.at("containerPath.path"), message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::mapping::check_volumes;
    use super::super::testing::{spec, try_all};
    use super::*;
    use crate::testing::{World, assert_fields};

    #[test]
    fn a_directory_is_absolute_and_read_only() {
        let volume = |source| json!([{"name": "d", "containerPath": source}]);
        let path: &[&str] = &["spec.volumes[0].containerPath.path"];
        try_all(
            &World::default(),
            vec![
                ("absolute", json!([]), volume(json!({"path": "/data"})), &[]),
                ("read-only", json!([]), volume(json!({"path": "/data", "readOnly": true})), &[]),
                ("relative", json!([]), volume(json!({"path": "data"})), path),
                ("empty", json!([]), volume(json!({"path": ""})), path),
                ("upwards", json!([]), volume(json!({"path": "/data/../x"})), path),
                ("dots in a name", json!([]), volume(json!({"path": "/da..ta"})), path),
                (
                    "writable",
                    json!([]),
                    volume(json!({"path": "/data", "readOnly": false})),
                    &["spec.volumes[0].containerPath.readOnly"],
                ),
            ],
        );
    }

    #[test]
    fn a_directory_is_a_file_system() {
        let cases = [
            ("a file system", "/data", "", "d", &[][..]),
            ("nothing", "/data", "", "", &["spec.domain.volumes[0].name", "spec.domain.volumes[0]"]),
            ("a disk", "/data", "d", "", &["spec.domain.volumes[0]", "spec.domain.volumes[0]"]),
            ("both", "/data", "d", "d", &["spec.domain.volumes[0]"]),
            ("ours", "/var/run/kubevirt/x", "", "d", &["spec.domain.volumes[0].containerPath.path"]),
            ("libvirt's", "/var/run/libvirt", "", "d", &["spec.domain.volumes[0].containerPath.path"]),
            ("beside ours", "/var/run/kube", "", "d", &[]),
        ];
        for (case, path, disk, filesystem, expected) in cases {
            let mut spec =
                spec(&json!([{"name": disk}]), &json!([{"name": "d", "containerPath": {"path": path}}]));
            spec.domain.devices.filesystems =
                serde_json::from_value(json!([{"name": filesystem, "virtiofs": {}}])).unwrap();
            let mut problems = Problems::default();
            check_volumes(&Path::new("spec"), &spec, &mut problems);
            assert_fields(case, &problems, expected);
        }
    }
}
