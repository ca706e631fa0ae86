//! Plugs and unplugs the volumes that the machine's template declares as pluggable.

use std::collections::BTreeSet;

use kubevirt_admission::validate::same::same;
use kubevirt_api::vm::{UpdateVolumesStrategy, VirtualMachine};
use kubevirt_api::vmi::disks::Disk;
use kubevirt_api::vmi::status::VmiPhase;
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec};

use crate::vm::view;

/// Brings the pluggable volumes of a running instance in line with the template. A volume that changed is taken out
/// first, and put in again once the guest has let go of it.
pub fn apply(vm: &VirtualMachine, vmi: &mut VirtualMachineInstance) {
    let migrates = vm.spec.update_volumes_strategy == Some(UpdateVolumesStrategy::Migration);
    let Some(template) = view::template(vm) else { return };
    if migrates || !view::is_in(vmi, VmiPhase::Running) {
        return;
    }
    let volumes = volumes_to_be(template, vmi);
    let disks = disks_to_be(template, &vmi.spec, &volumes);
    if vmi.spec.volumes.as_deref().unwrap_or_default() != volumes {
        vmi.spec.volumes = Some(volumes);
    }
    if vmi.spec.domain.devices.disks.as_deref().unwrap_or_default() != disks {
        vmi.spec.domain.devices.disks = Some(disks);
    }
}

fn named<'a>(spec: &'a VirtualMachineInstanceSpec, name: &str) -> Option<&'a Volume> {
    spec.volumes.iter().flatten().find(|volume| volume.name == name)
}

fn disk_named<'a>(spec: &'a VirtualMachineInstanceSpec, name: &str) -> Option<&'a Disk> {
    spec.domain.devices.disks.iter().flatten().find(|disk| disk.name == name)
}

fn volumes_to_be(template: &VirtualMachineInstanceSpec, vmi: &VirtualMachineInstance) -> Vec<Volume> {
    let stays = |volume: &&Volume| {
        let wanted = named(template, &volume.name);
        !view::is_hotpluggable(volume)
            || wanted.is_some_and(|wanted| !view::is_hotpluggable(wanted) || same(wanted, *volume))
    };
    // What is being unplugged still has a status.
    let statuses = vmi.status.as_ref().and_then(|status| status.volume_status.as_deref());
    let in_use: BTreeSet<&str> =
        statuses.unwrap_or_default().iter().map(|status| status.name.as_str()).collect();
    let comes = |volume: &&Volume| {
        view::is_hotpluggable(volume)
            && named(&vmi.spec, &volume.name).is_none()
            && !in_use.contains(volume.name.as_str())
    };
    let staying = vmi.spec.volumes.iter().flatten().filter(stays);
    staying.chain(template.volumes.iter().flatten().filter(comes)).cloned().collect()
}

fn disks_to_be(
    template: &VirtualMachineInstanceSpec,
    spec: &VirtualMachineInstanceSpec,
    volumes: &[Volume],
) -> Vec<Disk> {
    let volume = |name: &str| volumes.iter().find(|volume| volume.name == name);
    let stays = |disk: &&Disk| {
        if volume(&disk.name).is_some() {
            return true;
        }
        // A drive without a medium stays; any other disk goes with its volume.
        let Some(wanted) = disk_named(template, &disk.name) else { return false };
        named(template, &disk.name).is_none() || (wanted.cdrom.is_some() && disk.cdrom.is_some())
    };
    let comes = |disk: &&Disk| {
        volume(&disk.name).is_some_and(view::is_hotpluggable) && disk_named(spec, &disk.name).is_none()
    };
    let staying = spec.domain.devices.disks.iter().flatten().filter(stays);
    staying.chain(template.domain.devices.disks.iter().flatten().filter(comes)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::vm::testing::{machine, read};

    /// Volumes as `name:claim`, with a `+` before a claim that can be plugged; disks as names, `cd` is a drive.
    fn spec(volumes: &str, disks: &str) -> Value {
        let volume = |text: &str| {
            let (name, claim) = text.split_once(':').unwrap();
            let pluggable = claim.starts_with('+').then_some(true);
            json!({ "name": name, "persistentVolumeClaim": { "claimName": claim, "hotpluggable": pluggable } })
        };
        let disk = |name: &str| match name {
            "cd" => json!({ "name": name, "cdrom": { "bus": "sata" } }),
            _ => json!({ "name": name }),
        };
        let volumes: Vec<Value> = volumes.split_whitespace().map(volume).collect();
        let disks: Vec<Value> = disks.split_whitespace().map(disk).collect();
        json!({ "domain": { "devices": { "disks": disks } }, "volumes": volumes })
    }

    fn after(wanted: &Value, running: &Value, statuses: &str, phase: &str) -> (String, String) {
        let vm = machine(json!({ "spec": { "template": { "spec": wanted } } }));
        let statuses: Vec<Value> =
            statuses.split_whitespace().map(|name| json!({ "name": name, "target": "" })).collect();
        let status = json!({ "phase": phase, "volumeStatus": statuses });
        let mut vmi: VirtualMachineInstance = read(json!({ "spec": running, "status": status }));
        apply(&vm, &mut vmi);
        let claims: Vec<&str> = vmi.spec.volumes.iter().flatten().filter_map(view::claim_name).collect();
        let disks = vmi.spec.domain.devices.disks.iter().flatten();
        let disks: Vec<&str> = disks.map(|disk| disk.name.as_str()).collect();
        (claims.join(" "), disks.join(" "))
    }

    #[test]
    fn declared_volumes_come_go_and_are_exchanged() {
        let base = spec("root:r", "root");
        let with = |claim: &str| spec(&format!("root:r v:{claim}"), "root v");
        let before = ("r".to_owned(), "root".to_owned());
        let plugged = ("r +v".to_owned(), "root v".to_owned());
        let cases = [
            ("plugged", with("+v"), base.clone(), "root", "Running", &plugged),
            ("not yet running", with("+v"), base.clone(), "root", "Scheduled", &before),
            ("not declared", with("v"), base.clone(), "root", "Running", &before),
            ("still being unplugged", with("+v"), base.clone(), "root v", "Running", &before),
            ("unplugged", base.clone(), with("+v"), "root v", "Running", &before),
            ("exchanged, out first", with("+w"), with("+v"), "root v", "Running", &before),
            ("a fixed volume stays", spec("", "root"), base, "root", "Running", &before),
        ];
        for (case, wanted, running, statuses, phase, expected) in cases {
            assert_eq!(&after(&wanted, &running, statuses, phase), expected, "{case}");
        }
    }

    #[test]
    fn a_drive_keeps_its_place_when_its_medium_is_taken_out() {
        let full = spec("cd:+iso", "cd");
        let empty = spec("", "cd");
        let with = |claim: &str| (claim.to_owned(), "cd".to_owned());
        assert_eq!(after(&empty, &full, "cd", "Running"), with(""));
        assert_eq!(after(&full, &empty, "", "Running"), with("+iso"));
        assert_eq!(after(&spec("cd:+other", "cd"), &full, "cd", "Running"), with(""));
    }
}
