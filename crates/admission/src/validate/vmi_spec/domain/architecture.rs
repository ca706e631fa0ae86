//! What an architecture can do: its boot firmware, buses, video, sound and watchdogs.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::devices::Watchdog;
use kubevirt_api::vmi::disks::DiskBus;

use crate::{Path, Problems};

/// A watchdog device.
#[derive(Clone, Copy)]
enum Timer {
    I6300Esb,
    Diag288,
}

/// What an architecture has to offer.
struct Abilities {
    name: &'static str,
    video: &'static [&'static str],
    watchdog: Option<Timer>,
}

const ARCHITECTURES: [Abilities; 3] = [
    Abilities {
        name: "amd64",
        video: &["vga", "cirrus", "virtio", "ramfb", "bochs"],
        watchdog: Some(Timer::I6300Esb),
    },
    Abilities { name: "arm64", video: &["virtio", "ramfb"], watchdog: None },
    Abilities { name: "s390x", video: &["virtio"], watchdog: Some(Timer::Diag288) },
];

/// Everything of an instance that its architecture cannot do, after defaults have been filled in.
pub fn check(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let own = spec.architecture.as_deref().unwrap_or_default();
    let Some(abilities) = ARCHITECTURES.iter().find(|abilities| abilities.name == own) else {
        problems.invalid(&path.at("architecture"), format!("{own:?} is not amd64, arm64 or s390x"));
        return;
    };
    let field = path.at("domain.devices");
    if let Some(watchdog) = &spec.domain.devices.watchdog
        && !fits(watchdog, abilities.watchdog)
    {
        let message = match abilities.watchdog {
            Some(Timer::I6300Esb) => "a watchdog of amd64 is an i6300esb",
            Some(Timer::Diag288) => "a watchdog of s390x is a diag288",
            None => "arm64 has no watchdog; remove it",
        };
        problems.not_supported(&field.at("watchdog"), message);
    }
    if let Some(video) = &spec.domain.devices.video {
        let model = video.type_.as_deref().unwrap_or_default();
        if !abilities.video.contains(&model) {
            let message =
                format!("{own} has no video device {model:?}; use one of {}", abilities.video.join(", "));
            problems.not_supported(&field.at("video.type"), message);
        }
    }
    if own == "arm64" {
        check_arm64(path, spec, problems);
    }
}

/// Whether the watchdog is the one of the architecture and no other.
fn fits(watchdog: &Watchdog, timer: Option<Timer>) -> bool {
    let (esb, diag) = (watchdog.i6300esb.is_some(), watchdog.diag288.is_some());
    match timer {
        Some(Timer::I6300Esb) => esb && !diag,
        Some(Timer::Diag288) => diag && !esb,
        None => false,
    }
}

fn check_arm64(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let bootloader = spec.domain.firmware.as_ref().and_then(|firmware| firmware.bootloader.as_ref());
    if bootloader.is_some_and(|bootloader| bootloader.bios.is_some()) {
        problems.not_supported(&path.at("domain.firmware.bootloader.bios"), "arm64 boots with EFI, not BIOS");
    }
    let model = spec.domain.cpu.as_ref().and_then(|cpu| cpu.model.as_deref()).unwrap_or_default();
    if !matches!(model, "" | "host-passthrough") {
        let message = format!("arm64 has the CPU model host-passthrough only, not {model:?}");
        problems.not_supported(&path.at("domain.cpu.model"), message);
    }
    if spec.domain.devices.sound.is_some() {
        problems.not_supported(&path.at("domain.devices.sound"), "arm64 has no sound card; remove it");
    }
    let field = path.at("domain.devices.disks");
    for (index, disk) in spec.domain.devices.disks.iter().flatten().enumerate() {
        let buses = [
            ("disk.bus", disk.disk.as_ref().and_then(|target| target.bus.as_ref())),
            ("cdrom.bus", disk.cdrom.as_ref().and_then(|target| target.bus.as_ref())),
            ("lun.bus", disk.lun.as_ref().and_then(|target| target.bus.as_ref())),
        ];
        for (at, bus) in buses {
            let bus = bus.filter(|bus| !bus.is_empty() && !matches!(bus, DiskBus::Virtio | DiskBus::Scsi));
            if let Some(bus) = bus {
                let message = format!("disks of arm64 are on the bus virtio or scsi, not {bus}");
                problems.not_supported(&field.index(index).at(at), message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_api::vmi::VirtualMachineInstanceSpec;
    use serde_json::{Value, json};

    use super::super::testing::base;
    use crate::testing::{assert_fields, patched, read};
    use crate::{Path, Problems, Reason};

    fn problems(architecture: &str, domain: &Value) -> Problems {
        let patch = json!({ "architecture": architecture, "domain": domain });
        let spec: VirtualMachineInstanceSpec = read(patched(&base(), &patch));
        let mut problems = Problems::default();
        super::check(&Path::new("spec"), &spec, &mut problems);
        problems
    }

    #[test]
    fn video_and_watchdogs_of_each_architecture() {
        let esb = json!({ "name": "w", "i6300esb": {} });
        let diag = json!({ "name": "w", "diag288": {} });
        let both = json!({ "name": "w", "i6300esb": {}, "diag288": {} });
        let neither = json!({ "name": "w" });
        for (architecture, watchdogs, video) in [
            ("amd64", &[&esb][..], &["vga", "cirrus", "virtio", "ramfb", "bochs"][..]),
            ("arm64", &[], &["virtio", "ramfb"]),
            ("s390x", &[&diag], &["virtio"]),
        ] {
            for watchdog in [&esb, &diag, &both, &neither] {
                let expected =
                    if watchdogs.contains(&watchdog) { &[][..] } else { &["spec.domain.devices.watchdog"] };
                let found = problems(architecture, &json!({ "devices": { "watchdog": watchdog } }));
                assert_fields(&format!("{architecture} {watchdog}"), &found, expected);
            }
            for model in ["vga", "cirrus", "virtio", "ramfb", "bochs", "qxl", ""] {
                let expected =
                    if video.contains(&model) { &[][..] } else { &["spec.domain.devices.video.type"] };
                let found = problems(architecture, &json!({ "devices": { "video": { "type": model } } }));
                assert_fields(&format!("{architecture} {model}"), &found, expected);
                assert!(found.iter().all(|problem| problem.reason == Reason::NotSupported));
            }
        }
        for architecture in ["", "riscv64", "x86_64"] {
            assert_fields(architecture, &problems(architecture, &json!({})), &["spec.architecture"]);
        }
    }

    #[test]
    fn arm64_boots_with_efi_from_virtio_or_scsi() {
        for (name, domain, expected) in [
            ("plain", json!({}), &[][..]),
            (
                "bios",
                json!({ "firmware": { "bootloader": { "bios": {} } } }),
                &["spec.domain.firmware.bootloader.bios"],
            ),
            ("efi", json!({ "firmware": { "bootloader": { "efi": {} } } }), &[]),
            ("host", json!({ "cpu": { "model": "host-passthrough" } }), &[]),
            ("no model", json!({ "cpu": { "model": "" } }), &[]),
            ("model", json!({ "cpu": { "model": "host-model" } }), &["spec.domain.cpu.model"]),
            ("sound", json!({ "devices": { "sound": { "name": "s" } } }), &["spec.domain.devices.sound"]),
            (
                "good buses",
                json!({ "devices": { "disks": [
                    { "name": "a", "disk": { "bus": "virtio" } },
                    { "name": "b", "cdrom": { "bus": "scsi" } },
                    { "name": "c", "lun": {} },
                    { "name": "d", "disk": { "bus": "" } },
                ] } }),
                &[],
            ),
            (
                "bad buses",
                json!({ "devices": { "disks": [
                    { "name": "a", "disk": { "bus": "sata" } },
                    { "name": "b", "cdrom": { "bus": "usb" } },
                    { "name": "c", "lun": { "bus": "ide" } },
                ] } }),
                &[
                    "spec.domain.devices.disks[0].disk.bus",
                    "spec.domain.devices.disks[1].cdrom.bus",
                    "spec.domain.devices.disks[2].lun.bus",
                ],
            ),
        ] {
            assert_fields(name, &problems("arm64", &domain), expected);
            let elsewhere = problems("amd64", &domain);
            assert_fields(&format!("{name} on amd64"), &elsewhere, &[]);
        }
    }
}
