//! Which volumes are to be plugged, and which are no longer wanted: from the VMI and what was written down.

use kubevirt_api::vmi::VirtualMachineInstance;

use crate::permissions;
use crate::prepare::{Mounted, Plugged};
use crate::volumes::{HOTPLUG_DISKS, is_block, status, statuses};

/// A volume that is to be plugged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub volume: String,
    /// UID of the pod that brings it to the node, once there is one.
    pub pod: Option<String>,
    pub form: Form,
    /// Who is to use it.
    pub user: u32,
}

/// What the launcher gets of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A device.
    Block,
    /// An image in a file system.
    Image,
    /// The folder itself, to write files into.
    Folder,
}

/// The volumes that are to be plugged.
pub fn wanted(vmi: &VirtualMachineInstance) -> Vec<Wanted> {
    let user = permissions::user(vmi);
    let wanted = statuses(vmi).iter().filter(|status| is_in_spec(vmi, &status.name)).filter_map(|status| {
        let attachment = status.hotplug_volume.as_ref()?;
        let form = match (is_folder(vmi, &status.name), is_block(status)) {
            // Nobody can write files into a device.
            (true, true) => return None,
            (true, false) => Form::Folder,
            (false, true) => Form::Block,
            (false, false) => Form::Image,
        };
        let pod = attachment.attach_pod_uid.clone().filter(|uid| !uid.is_empty());
        Some(Wanted { volume: status.name.clone(), pod, form, user })
    });
    wanted.collect()
}

fn is_in_spec(vmi: &VirtualMachineInstance, volume: &str) -> bool {
    vmi.spec.volumes.iter().flatten().any(|known| known.name == volume) || is_utility(vmi, volume)
}

fn is_utility(vmi: &VirtualMachineInstance, volume: &str) -> bool {
    vmi.spec.utility_volumes.iter().flatten().any(|known| known.name == volume)
}

fn is_folder(vmi: &VirtualMachineInstance, volume: &str) -> bool {
    let mut volumes = vmi.spec.volumes.iter().flatten();
    is_utility(vmi, volume) || volumes.any(|known| known.name == volume && known.memory_dump.is_some())
}

/// The mounts of volumes that are no longer wanted.
pub fn unwanted_mounts(vmi: &VirtualMachineInstance, mounts: &[Mounted]) -> Vec<Mounted> {
    let of_hotplug = mounts.iter().filter(|mounted| mounted.volume == HOTPLUG_DISKS);
    let unwanted = |mounted: &&Mounted| {
        let volume = mounted.name.strip_suffix(".img");
        // A volume may itself be called so.
        is_let_go(vmi, &mounted.name) && volume.is_none_or(|volume| is_let_go(vmi, volume))
    };
    of_hotplug.filter(unwanted).cloned().collect()
}

/// The devices of volumes that are no longer wanted.
pub fn unwanted_devices(vmi: &VirtualMachineInstance, devices: &[Plugged]) -> Vec<Plugged> {
    devices.iter().filter(|plugged| is_let_go(vmi, &plugged.name)).cloned().collect()
}

/// Whether a volume is not wanted, and the guest does not have it any more.
fn is_let_go(vmi: &VirtualMachineInstance, volume: &str) -> bool {
    !is_in_spec(vmi, volume) && status(vmi, volume).is_none_or(|status| status.target.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn vmi(volumes: Value, statuses: Value) -> VirtualMachineInstance {
        serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"domain": {"devices": {}}, "volumes": volumes,
                "utilityVolumes": [{"name": "backup", "claimName": "b"}]},
            "status": {"volumeStatus": statuses},
        }))
        .unwrap()
    }

    fn status(name: &str, target: &str, mode: &str, pod: &str) -> Value {
        json!({"name": name, "target": target, "hotplugVolume": {"attachPodUID": pod},
            "persistentVolumeClaimInfo": {"volumeMode": mode}})
    }

    #[test]
    fn forms_follow_from_the_claim() {
        let claim = json!([{"name": "a", "persistentVolumeClaim": {"claimName": "c", "hotpluggable": true}}]);
        let dump = json!([{"name": "a", "memoryDump": {"claimName": "c", "hotpluggable": true}}]);
        let wanted_one = |volume: &str, pod: Option<&str>, form| {
            vec![Wanted { volume: volume.into(), pod: pod.map(Into::into), form, user: 107 }]
        };
        for (volumes, status, expected) in [
            (&claim, status("a", "", "Filesystem", "p"), wanted_one("a", Some("p"), Form::Image)),
            (&claim, status("a", "sda", "Block", "p"), wanted_one("a", Some("p"), Form::Block)),
            (&claim, status("a", "", "Filesystem", ""), wanted_one("a", None, Form::Image)),
            (&dump, status("a", "", "Filesystem", "p"), wanted_one("a", Some("p"), Form::Folder)),
            (&claim, status("backup", "", "Filesystem", "p"), wanted_one("backup", Some("p"), Form::Folder)),
            (&claim, status("backup", "", "Block", "p"), vec![]),
            (&claim, status("gone", "", "Block", "p"), vec![]),
            (&claim, json!({"name": "a", "target": "vda"}), vec![]),
        ] {
            assert_eq!(wanted(&vmi(volumes.clone(), json!([status]))), expected, "{status}");
        }
    }

    #[test]
    fn only_what_the_guest_let_go_of_is_taken_away() {
        let claim =
            json!([{"name": "kept", "persistentVolumeClaim": {"claimName": "c", "hotpluggable": true}}]);
        let vmi =
            vmi(claim, json!([status("held", "sdb", "Filesystem", "p"), status("left", "", "Block", "p")]));
        let mounted =
            |volume: &str, name: &str| Mounted { volume: volume.into(), folder: None, name: name.into() };
        let mounts = [
            mounted("container-disks", "disk_0.img"),
            mounted(HOTPLUG_DISKS, "kept.img"),
            mounted(HOTPLUG_DISKS, "held.img"),
            mounted(HOTPLUG_DISKS, "left.img"),
            mounted(HOTPLUG_DISKS, "backup"),
            mounted(HOTPLUG_DISKS, "unknown.img"),
        ];
        assert_eq!(unwanted_mounts(&vmi, &mounts), [mounts[3].clone(), mounts[5].clone()]);
        let plugged = |name: &str| Plugged { name: name.into(), device: 1 };
        let devices = [plugged("kept"), plugged("held"), plugged("left")];
        assert_eq!(unwanted_devices(&vmi, &devices), [devices[2].clone()]);
    }
}
