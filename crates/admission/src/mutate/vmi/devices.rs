//! Watchdogs, pointers and GPUs.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::devices::{Input, InputBus, InputType, Watchdog, WatchdogAction};

use super::{architecture, features};

/// The pointer that is added where the user only asks for one.
const INPUT: &str = "default-0";

/// Says what every watchdog does, where pointers are, and that a named frame buffer is on.
pub fn set(spec: &mut VirtualMachineInstanceSpec) {
    let architecture = architecture::of(spec).to_owned();
    let devices = &mut spec.domain.devices;
    if let Some(watchdog) = &mut devices.watchdog {
        set_watchdog(&architecture, watchdog);
    }
    for input in devices.inputs.iter_mut().flatten() {
        if input.bus.as_ref().is_none_or(InputBus::is_empty) {
            input.bus = Some(InputBus::Usb);
        }
        if input.type_.is_empty() {
            input.type_ = InputType::Tablet;
        }
    }
    let options = devices.gpus.iter_mut().flatten().filter_map(|gpu| gpu.virtual_gpu_options.as_mut());
    for display in options.filter_map(|options| options.display.as_mut()) {
        features::switch_on(&mut display.ram_fb);
    }
}

fn set_watchdog(architecture: &str, watchdog: &mut Watchdog) {
    let action = match architecture {
        "arm64" => return,
        "s390x" => &mut watchdog.diag288.get_or_insert_default().action,
        _ => &mut watchdog.i6300esb.get_or_insert_default().action,
    };
    if action.as_ref().is_none_or(WatchdogAction::is_empty) {
        *action = Some(WatchdogAction::Reset);
    }
}

/// Adds the pointer that `autoattachInputDevice` asks for; its bus and kind are left to a preference and to [`set`].
pub fn attach_input(spec: &mut VirtualMachineInstanceSpec) {
    let devices = &mut spec.domain.devices;
    if devices.autoattach_input_device == Some(true)
        && devices.inputs.as_deref().unwrap_or_default().is_empty()
    {
        devices.inputs = Some(vec![Input { name: INPUT.to_owned(), ..Input::default() }]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::read;

    fn spec(architecture: &str, devices: &Value) -> VirtualMachineInstanceSpec {
        read(json!({ "architecture": architecture, "domain": { "devices": devices } }))
    }

    #[test]
    fn devices_are_completed() {
        let dog = |rest: Value| {
            let mut watchdog = rest;
            watchdog["name"] = "dog".into();
            json!({ "watchdog": watchdog })
        };
        let input = |bus: &str, kind: &str| json!({ "inputs": [{ "name": "x", "bus": bus, "type": kind }] });
        let gpu = |state: Value| json!({ "gpus": [{ "name": "g", "deviceName": "d", "virtualGPUOptions": { "display": { "ramFB": state } } }] });
        let cases = [
            ("amd64", dog(json!({})), dog(json!({ "i6300esb": { "action": "reset" } }))),
            ("amd64", dog(json!({ "i6300esb": {} })), dog(json!({ "i6300esb": { "action": "reset" } }))),
            (
                "amd64",
                dog(json!({ "i6300esb": { "action": "poweroff" } })),
                dog(json!({ "i6300esb": { "action": "poweroff" } })),
            ),
            ("s390x", dog(json!({})), dog(json!({ "diag288": { "action": "reset" } }))),
            (
                "s390x",
                dog(json!({ "diag288": { "action": "shutdown" } })),
                dog(json!({ "diag288": { "action": "shutdown" } })),
            ),
            ("arm64", dog(json!({})), dog(json!({}))),
            ("amd64", input("", ""), input("usb", "tablet")),
            ("amd64", input("virtio", "tablet"), input("virtio", "tablet")),
            ("amd64", input("ps2", "keyboard"), input("ps2", "keyboard")),
            ("amd64", gpu(json!({})), gpu(json!({ "enabled": true }))),
            ("amd64", gpu(json!({ "enabled": false })), gpu(json!({ "enabled": false }))),
        ];
        for (architecture, devices, expected) in cases {
            let mut spec = spec(architecture, &devices);
            set(&mut spec);
            assert_eq!(
                serde_json::to_value(spec.domain.devices).unwrap(),
                expected,
                "{architecture} {devices}"
            );
        }
    }

    #[test]
    fn a_pointer_is_attached_on_request() {
        let own = json!([{ "name": "own", "type": "tablet" }]);
        let cases = [
            (json!({}), None),
            (json!({ "autoattachInputDevice": false }), None),
            (json!({ "autoattachInputDevice": true }), Some("default-0")),
            (json!({ "autoattachInputDevice": true, "inputs": [] }), Some("default-0")),
            (json!({ "autoattachInputDevice": true, "inputs": own }), Some("own")),
        ];
        for (devices, expected) in cases {
            let mut spec = spec("amd64", &devices);
            attach_input(&mut spec);
            let inputs = spec.domain.devices.inputs.unwrap_or_default();
            let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
            assert_eq!(names, expected.into_iter().collect::<Vec<_>>(), "{devices}");
        }
    }
}
