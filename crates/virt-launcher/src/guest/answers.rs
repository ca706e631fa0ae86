//! From the agent's answers to what the API shows.

use kubevirt_api::vmi::guest_agent::{
    GuestAgentCommand, GuestFilesystem, GuestFilesystemDisk, GuestFilesystems, GuestUser,
};
use kubevirt_api::vmi::status::GuestOsInfo;
use kubevirt_launcher_rpc::report::GuestOs;
use kubevirt_qemu::agent::{Filesystem, FreezeStatus, OsInfo, SupportedCommand, TimeZone, User};

pub(super) fn commands(told: Vec<SupportedCommand>) -> Vec<GuestAgentCommand> {
    told.into_iter().map(|one| GuestAgentCommand { name: one.name, enabled: one.enabled }).collect()
}

pub(super) fn os(told: OsInfo) -> GuestOsInfo {
    GuestOsInfo {
        name: told.name,
        kernel_release: told.kernel_release,
        version: told.version,
        pretty_name: told.pretty_name,
        version_id: told.version_id,
        kernel_version: told.kernel_version,
        machine: told.machine,
        id: told.id,
    }
}

/// What the report has kept.
pub(super) fn known_os(known: GuestOs) -> GuestOsInfo {
    let some = |text: String| (!text.is_empty()).then_some(text);
    GuestOsInfo {
        name: some(known.name),
        kernel_release: some(known.kernel_release),
        version: some(known.version),
        pretty_name: some(known.pretty_name),
        version_id: some(known.version_id),
        kernel_version: some(known.kernel_version),
        machine: some(known.machine),
        id: some(known.id),
    }
}

pub(super) fn time_zone(told: &TimeZone) -> String {
    format!("{}, {}", told.zone.as_deref().unwrap_or(""), told.offset)
}

pub(super) fn freeze(told: FreezeStatus) -> &'static str {
    match told {
        FreezeStatus::Frozen => "frozen",
        FreezeStatus::Thawed => "thawed",
    }
}

pub(super) fn users(told: Vec<User>) -> impl Iterator<Item = GuestUser> {
    told.into_iter().map(|user| GuestUser {
        user_name: user.name,
        domain: user.domain.unwrap_or_default(),
        login_time: user.login_time,
    })
}

pub(super) fn filesystem(told: Filesystem) -> GuestFilesystem {
    let disk = told
        .disks
        .into_iter()
        .map(|disk| GuestFilesystemDisk { serial: disk.serial.unwrap_or_default(), bus_type: disk.bus_type });
    GuestFilesystem {
        disk_name: told.name,
        mount_point: told.mountpoint,
        file_system_type: told.kind,
        used_bytes: told.used_bytes.unwrap_or(0),
        total_bytes: told.total_bytes.unwrap_or(0),
        disk: disk.collect(),
    }
}

pub(super) fn filesystems_of_info(told: Vec<Filesystem>, first: usize) -> GuestFilesystems {
    GuestFilesystems { disks: told.into_iter().take(first).map(filesystem).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn file_systems_have_the_shape_of_the_api() {
        let told = json!({
            "name": "vda1", "mountpoint": "/", "type": "ext4", "total-bytes": 100, "used-bytes": 40,
            "disk": [
                { "serial": "S1", "bus-type": "virtio", "bus": 0, "unit": 0, "target": 0, "dev": "/dev/vda1",
                  "pci-controller": { "domain": 0, "bus": 1, "slot": 0, "function": 0 } },
                { "bus-type": "scsi" },
            ],
        });
        let shown = serde_json::to_value(filesystem(serde_json::from_value(told).unwrap())).unwrap();
        let expected = json!({
            "diskName": "vda1", "mountPoint": "/", "fileSystemType": "ext4", "usedBytes": 40, "totalBytes": 100,
            "disk": [{ "serial": "S1", "busType": "virtio" }, { "busType": "scsi" }],
        });
        assert_eq!(shown, expected);

        let bare = json!({ "name": "dm-0", "mountpoint": "/data", "type": "xfs" });
        let shown = serde_json::to_value(filesystem(serde_json::from_value(bare).unwrap())).unwrap();
        let expected = json!({
            "diskName": "dm-0", "mountPoint": "/data", "fileSystemType": "xfs", "usedBytes": 0, "totalBytes": 0,
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn users_and_commands_have_the_shape_of_the_api() {
        let told = json!([
            { "user": "root", "login-time": 1_700_000_000.5 },
            { "user": "ann", "domain": "OFFICE", "login-time": 1.0 },
        ]);
        let shown: Vec<_> = users(serde_json::from_value(told).unwrap()).collect();
        let expected = json!([
            { "userName": "root", "loginTime": 1_700_000_000.5 },
            { "userName": "ann", "domain": "OFFICE", "loginTime": 1.0 },
        ]);
        assert_eq!(serde_json::to_value(shown).unwrap(), expected);

        let told =
            json!([{ "name": "guest-ping", "enabled": true }, { "name": "guest-exec", "enabled": false }]);
        let shown = serde_json::to_value(commands(serde_json::from_value(told).unwrap())).unwrap();
        assert_eq!(shown, json!([{ "name": "guest-ping", "enabled": true }, { "name": "guest-exec" }]));
    }

    #[test]
    fn a_time_zone_may_have_no_name() {
        let zone = |name: Option<&str>| TimeZone { zone: name.map(str::to_owned), offset: 3600 };
        assert_eq!(time_zone(&zone(Some("CET"))), "CET, 3600");
        assert_eq!(time_zone(&zone(None)), ", 3600");
    }
}
