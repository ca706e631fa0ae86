//! The devices that a preference adds, and the buses and models that it chooses.

use std::collections::BTreeMap;

use kubevirt_api::preference::{DevicePreferences, VirtualMachinePreferenceSpec};
use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::devices::{Devices, PanicDevice};
use kubevirt_api::vmi::disks::{Disk, DiskBus, DiskTarget};
use kubevirt_api::vmi::network::{Interface, Network};

use super::super::{fill, fill_word, overlay};

/// Decides which devices come by themselves; this has to be known before they are added.
pub fn attach_devices(preference: &VirtualMachinePreferenceSpec, spec: &mut VirtualMachineInstanceSpec) {
    if let Some(preferred) = &preference.devices {
        attach(preferred, &mut spec.domain.devices);
    }
}

/// Fills in everything about devices.
pub(super) fn apply(preference: &VirtualMachinePreferenceSpec, spec: &mut VirtualMachineInstanceSpec) {
    let Some(preferred) = &preference.devices else { return };
    let devices = &mut spec.domain.devices;
    attach(preferred, devices);
    fill(&mut devices.use_virtio_transitional, &preferred.preferred_use_virtio_transitional);
    fill(&mut devices.block_multi_queue, &preferred.preferred_block_multi_queue);
    fill(&mut devices.network_interface_multiqueue, &preferred.preferred_network_interface_multi_queue);
    // That hotplug is not disabled cannot be told from nothing being said.
    overlay(&mut devices.disable_hotplug, &preferred.preferred_disable_hotplug);
    if let Some(sound) = &mut devices.sound {
        fill_word(&mut sound.model, &preferred.preferred_sound_model);
    }
    fill(&mut devices.rng, &preferred.preferred_rng);
    fill(&mut devices.tpm, &preferred.preferred_tpm);
    if preferred.preferred_video_type.is_some() {
        fill_word(&mut devices.video.get_or_insert_default().type_, &preferred.preferred_video_type);
    }
    for disk in devices.disks.iter_mut().flatten() {
        self::disk(preferred, disk);
    }
    interfaces(preferred, spec.networks.as_deref().unwrap_or_default(), devices);
    inputs(preferred, devices);
    panic_devices(preferred, devices);
}

fn attach(preferred: &DevicePreferences, devices: &mut Devices) {
    fill(&mut devices.autoattach_graphics_device, &preferred.preferred_autoattach_graphics_device);
    fill(&mut devices.autoattach_mem_balloon, &preferred.preferred_autoattach_mem_balloon);
    fill(&mut devices.autoattach_pod_interface, &preferred.preferred_autoattach_pod_interface);
    fill(&mut devices.autoattach_serial_console, &preferred.preferred_autoattach_serial_console);
    fill(&mut devices.autoattach_input_device, &preferred.preferred_autoattach_input_device);
}

fn disk(preferred: &DevicePreferences, disk: &mut Disk) {
    if disk.disk.is_none() && disk.cdrom.is_none() && disk.lun.is_none() {
        disk.disk = Some(DiskTarget::default());
    }
    if let Some(target) = &mut disk.disk {
        fill_word(&mut target.bus, &preferred.preferred_disk_bus);
        fill(&mut disk.block_size, &preferred.preferred_disk_block_size);
        fill_word(&mut disk.cache, &preferred.preferred_disk_cache);
        fill_word(&mut disk.io, &preferred.preferred_disk_io);
        if target.bus == Some(DiskBus::Virtio) {
            fill(&mut disk.dedicated_io_thread, &preferred.preferred_disk_dedicated_io_thread);
        }
    } else if let Some(target) = &mut disk.cdrom {
        fill_word(&mut target.bus, &preferred.preferred_cdrom_bus);
    } else if let Some(target) = &mut disk.lun {
        fill_word(&mut target.bus, &preferred.preferred_lun_bus);
    }
}

fn interfaces(preferred: &DevicePreferences, networks: &[Network], devices: &mut Devices) {
    let mut on_pod_network = BTreeMap::new();
    for network in networks {
        on_pod_network.entry(network.name.as_str()).or_insert(network.pod.is_some());
    }
    for interface in devices.interfaces.iter_mut().flatten() {
        fill_word(&mut interface.model, &preferred.preferred_interface_model);
        if is_unbound(interface) && on_pod_network.get(interface.name.as_str()) == Some(&true) {
            interface.masquerade.clone_from(&preferred.preferred_interface_masquerade);
        }
    }
}

fn is_unbound(interface: &Interface) -> bool {
    interface.bridge.is_none()
        && interface.slirp.is_none()
        && interface.masquerade.is_none()
        && interface.sriov.is_none()
        && interface.macvtap.is_none()
        && interface.passt.is_none()
        && interface.passt_binding.is_none()
        && interface.binding.is_none()
}

fn inputs(preferred: &DevicePreferences, devices: &mut Devices) {
    for input in devices.inputs.iter_mut().flatten() {
        fill_word(&mut input.bus, &preferred.preferred_input_bus);
        if let Some(kind) = preferred.preferred_input_type.as_ref().filter(|_| input.type_.is_empty()) {
            input.type_ = kind.clone();
        }
    }
}

fn panic_devices(preferred: &DevicePreferences, devices: &mut Devices) {
    let model = &preferred.preferred_panic_device_model;
    if model.is_none() {
        return;
    }
    let own = devices.panic_devices.get_or_insert_default();
    if own.is_empty() {
        own.push(PanicDevice::default());
    }
    for device in own {
        fill(&mut device.model, model);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::assert_applied;
    use super::*;
    use crate::testing::read;

    fn devices(devices: Value) -> Value {
        json!({ "domain": { "devices": devices } })
    }

    #[test]
    fn a_switch_is_used_unless_the_instance_sets_it() {
        for (preferred, own) in [
            ("preferredAutoattachGraphicsDevice", "autoattachGraphicsDevice"),
            ("preferredAutoattachMemBalloon", "autoattachMemBalloon"),
            ("preferredAutoattachPodInterface", "autoattachPodInterface"),
            ("preferredAutoattachSerialConsole", "autoattachSerialConsole"),
            ("preferredAutoattachInputDevice", "autoattachInputDevice"),
            ("preferredUseVirtioTransitional", "useVirtioTransitional"),
            ("preferredBlockMultiQueue", "blockMultiQueue"),
            ("preferredNetworkInterfaceMultiQueue", "networkInterfaceMultiqueue"),
        ] {
            for value in [true, false] {
                let preference = json!({ "devices": { preferred: value } });
                assert_applied([
                    (own, preference.clone(), json!({}), devices(json!({ own: value }))),
                    (own, preference, devices(json!({ own: !value })), json!({})),
                ]);
            }
        }
        let hotplug = json!({ "devices": { "preferredDisableHotplug": true } });
        assert_applied([
            ("hotplug", hotplug.clone(), json!({}), devices(json!({ "disableHotplug": true }))),
            (
                "own hotplug",
                hotplug,
                devices(json!({ "disableHotplug": false })),
                devices(json!({ "disableHotplug": true })),
            ),
        ]);
    }

    #[test]
    fn only_what_comes_by_itself_is_decided_early() {
        let preference =
            json!({ "devices": { "preferredAutoattachPodInterface": false, "preferredRng": {} } });
        let mut spec = read(devices(json!({})));
        attach_devices(&read(preference), &mut spec);
        assert_eq!(json!(spec), devices(json!({ "autoattachPodInterface": false })));
    }

    #[test]
    fn single_devices_are_added_or_completed() {
        let preferred = |preferred: Value| json!({ "devices": preferred });
        let sound = |sound: Value| devices(json!({ "sound": sound }));
        assert_applied([
            ("no sound", preferred(json!({ "preferredSoundModel": "ac97" })), json!({}), json!({})),
            (
                "sound",
                preferred(json!({ "preferredSoundModel": "ac97" })),
                sound(json!({ "name": "s" })),
                sound(json!({ "model": "ac97" })),
            ),
            (
                "own sound",
                preferred(json!({ "preferredSoundModel": "ac97" })),
                sound(json!({ "name": "s", "model": "ich9" })),
                json!({}),
            ),
            ("rng", preferred(json!({ "preferredRng": {} })), json!({}), devices(json!({ "rng": {} }))),
            (
                "tpm",
                preferred(json!({ "preferredTPM": { "persistent": true } })),
                json!({}),
                devices(json!({ "tpm": { "persistent": true } })),
            ),
            (
                "own tpm",
                preferred(json!({ "preferredTPM": { "persistent": true } })),
                devices(json!({ "tpm": { "enabled": false } })),
                json!({}),
            ),
            (
                "video",
                preferred(json!({ "preferredVideoType": "bochs" })),
                json!({}),
                devices(json!({ "video": { "type": "bochs" } })),
            ),
            (
                "own video",
                preferred(json!({ "preferredVideoType": "bochs" })),
                devices(json!({ "video": { "type": "vga" } })),
                json!({}),
            ),
            (
                "panic device",
                preferred(json!({ "preferredPanicDeviceModel": "isa" })),
                json!({}),
                devices(json!({ "panicDevices": [{ "model": "isa" }] })),
            ),
            (
                "own panic devices",
                preferred(json!({ "preferredPanicDeviceModel": "isa" })),
                devices(json!({ "panicDevices": [{}, { "model": "hyperv" }] })),
                devices(json!({ "panicDevices": [{ "model": "isa" }, { "model": "hyperv" }] })),
            ),
            (
                "inputs",
                preferred(json!({ "preferredInputBus": "virtio", "preferredInputType": "tablet" })),
                devices(json!({ "inputs": [
                    { "name": "a", "type": "" }, { "name": "b", "bus": "usb", "type": "keyboard" },
                ] })),
                devices(json!({ "inputs": [
                    { "name": "a", "bus": "virtio", "type": "tablet" }, { "name": "b", "bus": "usb", "type": "keyboard" },
                ] })),
            ),
        ]);
    }

    #[test]
    fn a_disk_takes_what_suits_its_kind() {
        let preference = json!({ "devices": {
            "preferredDiskBus": "virtio", "preferredLunBus": "scsi", "preferredCdromBus": "sata",
            "preferredDiskCache": "none", "preferredDiskIO": "native", "preferredDiskDedicatedIoThread": true,
            "preferredDiskBlockSize": { "matchVolume": {} },
        } });
        let full = json!({
            "name": "d", "disk": { "bus": "virtio" }, "cache": "none", "io": "native", "dedicatedIOThread": true,
            "blockSize": { "matchVolume": {} },
        });
        let own = json!({
            "name": "d", "disk": { "bus": "sata" }, "cache": "writeback", "io": "threads",
            "blockSize": { "custom": {} },
        });
        let cases = [
            ("of no kind", json!({ "name": "d" }), full.clone()),
            ("disk", json!({ "name": "d", "disk": {} }), full.clone()),
            ("empty words", json!({ "name": "d", "disk": { "bus": "" }, "cache": "", "io": "" }), full),
            ("own settings", own.clone(), own),
            (
                "cdrom",
                json!({ "name": "d", "cdrom": {} }),
                json!({ "name": "d", "cdrom": { "bus": "sata" } }),
            ),
            (
                "own cdrom",
                json!({ "name": "d", "cdrom": { "bus": "usb" } }),
                json!({ "name": "d", "cdrom": { "bus": "usb" } }),
            ),
            ("lun", json!({ "name": "d", "lun": {} }), json!({ "name": "d", "lun": { "bus": "scsi" } })),
            (
                "own lun",
                json!({ "name": "d", "lun": { "bus": "sata" } }),
                json!({ "name": "d", "lun": { "bus": "sata" } }),
            ),
        ];
        for (name, before, after) in cases {
            assert_applied([(
                name,
                preference.clone(),
                devices(json!({ "disks": [before] })),
                devices(json!({ "disks": [after] })),
            )]);
        }
        assert_applied([(
            "a disk without a bus has no thread of its own",
            json!({ "devices": { "preferredDiskDedicatedIoThread": true } }),
            devices(json!({ "disks": [{ "name": "d" }] })),
            devices(json!({ "disks": [{ "name": "d", "disk": {} }] })),
        )]);
    }

    #[test]
    fn an_interface_takes_a_model_and_on_the_pod_network_a_binding() {
        let preference = json!({ "devices": {
            "preferredInterfaceModel": "e1000", "preferredInterfaceMasquerade": {},
        } });
        let spec = |interface: Value, network: Value| json!({ "domain": { "devices": { "interfaces": [interface] } }, "networks": [network] });
        let pod = json!({ "name": "n", "pod": {} });
        let multus = json!({ "name": "n", "multus": { "networkName": "x" } });
        let cases = [
            (
                "unbound",
                json!({ "name": "n" }),
                &pod,
                json!({ "name": "n", "model": "e1000", "masquerade": {} }),
            ),
            ("secondary", json!({ "name": "n" }), &multus, json!({ "name": "n", "model": "e1000" })),
            ("no network", json!({ "name": "m" }), &pod, json!({ "name": "m", "model": "e1000" })),
            (
                "bridge",
                json!({ "name": "n", "bridge": {} }),
                &pod,
                json!({ "name": "n", "model": "e1000", "bridge": {} }),
            ),
            (
                "plugin",
                json!({ "name": "n", "binding": { "name": "p" } }),
                &pod,
                json!({ "name": "n", "model": "e1000", "binding": { "name": "p" } }),
            ),
            (
                "passt",
                json!({ "name": "n", "passtBinding": {} }),
                &pod,
                json!({ "name": "n", "model": "e1000", "passtBinding": {} }),
            ),
            (
                "model",
                json!({ "name": "n", "model": "virtio" }),
                &pod,
                json!({ "name": "n", "model": "virtio", "masquerade": {} }),
            ),
        ];
        for (name, before, network, after) in cases {
            assert_applied([(
                name,
                preference.clone(),
                spec(before, network.clone()),
                spec(after, network.clone()),
            )]);
        }
    }
}
