//! Volumes that are a file on the node.

use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vmi::volumes::{HostDisk, HostDiskType};

use crate::{Context, Gate, Path, Problems};

/// What is wrong with a file on the node; `path` is that of the volume.
pub(super) fn check(cx: &Context<'_>, path: &Path<'_>, host_disk: &HostDisk, problems: &mut Problems) {
    if !cx.config.enabled(Gate::HostDisk) {
        let gate = Gate::HostDisk.name();
        problems.invalid(path, format!("files of the node as disks need the feature gate {gate}"));
    }
    let at = path.at("hostDisk");
    if host_disk.path.is_empty() {
        problems.not_found(&at.at("path"), "the path of the file is missing");
    }
    if !host_disk.type_.is_known() {
        let known = HostDiskType::KNOWN.join(", ");
        let message = format!("{:?} is none of {known}", host_disk.type_.as_str());
        problems.invalid(&at.at("type"), message);
    }
    match host_disk.capacity.as_ref().map(QuantityExt::amount) {
        Some(Err(why)) => problems.invalid(&at.at("capacity"), why.to_string()),
        Some(Ok(amount)) if host_disk.type_ == HostDiskType::Disk && !amount.is_zero() => {
            let message =
                "a file that exists has its own size: leave the capacity out, or use type DiskOrCreate";
            problems.invalid(&at.at("capacity"), message);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::try_all;
    use crate::testing::{World, patched};

    #[test]
    fn a_file_of_the_node_exists_or_is_made() {
        let volume = |patch: Value| {
            let base = json!({"path": "/data/disk.img", "type": "DiskOrCreate", "capacity": "1Gi"});
            json!([{"name": "h", "hostDisk": patched(&base, &patch)}])
        };
        let capacity: &[&str] = &["spec.volumes[0].hostDisk.capacity"];
        try_all(
            &World::default().with_gates(&["HostDisk"]),
            vec![
                ("made", json!([]), volume(json!({})), &[]),
                ("made, without a size", json!([]), volume(json!({"capacity": null})), &[]),
                ("existing", json!([]), volume(json!({"type": "Disk", "capacity": null})), &[]),
                ("existing, with size 0", json!([]), volume(json!({"type": "Disk", "capacity": "0"})), &[]),
                ("existing, with a size", json!([]), volume(json!({"type": "Disk"})), capacity),
                ("no path", json!([]), volume(json!({"path": ""})), &["spec.volumes[0].hostDisk.path"]),
                (
                    "an unknown type",
                    json!([]),
                    volume(json!({"type": "Block"})),
                    &["spec.volumes[0].hostDisk.type"],
                ),
                ("no type", json!([]), volume(json!({"type": ""})), &["spec.volumes[0].hostDisk.type"]),
                ("a malformed size", json!([]), volume(json!({"capacity": "big"})), capacity),
            ],
        );
        try_all(
            &World::default(),
            vec![("without the gate", json!([]), volume(json!({})), &["spec.volumes[0]"])],
        );
    }
}
