//! Inputs, sound, video, panic devices, VSOCK and host metrics.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::devices::{Devices, InputBus, InputType, PanicDeviceModel};
use kubevirt_api::vmi::disks::IoThreadsPolicy;
use kubevirt_api::vmi::domain::DomainSpec;

use super::architecture_of;
use crate::{Context, Gate, Path, Problems};

const SOUND_CARDS: [&str; 3] = ["", "ich9", "ac97"];

/// Everything that is wrong.
pub(super) fn check(
    cx: &Context<'_>,
    path: &Path<'_>,
    spec: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    let devices = &spec.domain.devices;
    let field = path.at("domain.devices");
    check_inputs(&field.at("inputs"), devices, problems);
    check_io_threads(path, &spec.domain, problems);
    check_sound(&path.at("Sound"), devices, problems);
    check_panic_devices(cx, &field.at("panicDevices"), spec, problems);
    if devices.autoattach_vsock == Some(true) && !cx.config.enabled(Gate::Vsock) {
        problems.invalid(&field.at("autoattachVSOCK"), "needs the feature gate VSOCK, which is off");
    }
    if devices.downward_metrics.is_some() && !cx.config.enabled(Gate::DownwardMetrics) {
        problems
            .invalid(&field.at("downwardMetrics"), "needs the feature gate DownwardMetrics, which is off");
    }
    if devices.video.is_some() && devices.autoattach_graphics_device == Some(false) {
        let message =
            "a video device makes no sense while autoattachGraphicsDevice is false; remove one of them";
        problems.invalid(&path.at("video"), message);
    }
}

fn check_inputs(field: &Path<'_>, devices: &Devices, problems: &mut Problems) {
    for (index, input) in devices.inputs.iter().flatten().enumerate() {
        let field = field.index(index);
        if let Some(InputBus::Other(bus)) = input.bus.as_ref().filter(|bus| !bus.is_empty()) {
            let message = format!("an input device is on the bus virtio or usb, not {bus:?}");
            problems.invalid(&field.at("bus"), message);
        }
        if input.type_ != InputType::Tablet {
            let message = format!("an input device is a tablet, not {:?}", input.type_.as_str());
            problems.invalid(&field.at("type"), message);
        }
    }
}

/// A pool that is asked for by policy is checked with the disks that it serves.
fn check_io_threads(path: &Path<'_>, domain: &DomainSpec, problems: &mut Problems) {
    let pool = domain.io_threads_policy == Some(IoThreadsPolicy::SupplementalPool);
    let count = domain.io_threads.as_ref().and_then(|threads| threads.supplemental_pool_thread_count);
    if let Some(count) = count.filter(|count| *count < 0 && !pool) {
        let message = format!("there cannot be {count} threads");
        problems.invalid(&path.at("domain.ioThreads.supplementalPoolThreadCount"), message);
    }
}

fn check_sound(field: &Path<'_>, devices: &Devices, problems: &mut Problems) {
    let Some(sound) = &devices.sound else { return };
    let model = sound.model.as_deref().unwrap_or_default();
    if !SOUND_CARDS.contains(&model) {
        problems.invalid(field, format!("there is no sound card {model:?}; use ich9 or ac97"));
    }
    if sound.name.is_empty() {
        problems.invalid(field, "a sound card needs a name");
    }
}

fn check_panic_devices(
    cx: &Context<'_>,
    field: &Path<'_>,
    spec: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    let devices = spec.domain.devices.panic_devices.as_deref().unwrap_or_default();
    if !devices.is_empty() && architecture_of(cx, spec) == "s390x" {
        problems.invalid(field, "s390x has a panic device of its own and takes no other");
    }
    for (index, device) in devices.iter().enumerate() {
        if let Some(PanicDeviceModel::Other(model)) = &device.model {
            let message =
                format!("{model:?} is not known; use one of {}", PanicDeviceModel::KNOWN.join(", "));
            problems.invalid(&field.index(index).at("model"), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{run, run_devices, run_domain};
    use crate::testing::World;

    #[test]
    fn inputs_sound_and_video() {
        let input = |input: Value| json!({ "inputs": [input] });
        run_devices(
            &World::default(),
            &[
                ("tablet", input(json!({ "name": "a", "type": "tablet" })), &[]),
                ("virtio", input(json!({ "name": "a", "type": "tablet", "bus": "virtio" })), &[]),
                ("usb", input(json!({ "name": "a", "type": "tablet", "bus": "usb" })), &[]),
                ("no bus", input(json!({ "name": "a", "type": "tablet", "bus": "" })), &[]),
                (
                    "ps2",
                    input(json!({ "name": "a", "type": "tablet", "bus": "ps2" })),
                    &["spec.domain.devices.inputs[0].bus"],
                ),
                (
                    "keyboard",
                    input(json!({ "name": "a", "type": "keyboard" })),
                    &["spec.domain.devices.inputs[0].type"],
                ),
                (
                    "no type",
                    input(json!({ "name": "a", "type": "" })),
                    &["spec.domain.devices.inputs[0].type"],
                ),
                ("sound", json!({ "sound": { "name": "a" } }), &[]),
                ("ich9", json!({ "sound": { "name": "a", "model": "ich9" } }), &[]),
                ("ac97", json!({ "sound": { "name": "a", "model": "ac97" } }), &[]),
                ("other sound", json!({ "sound": { "name": "a", "model": "sb16" } }), &["spec.Sound"]),
                ("nameless sound", json!({ "sound": { "name": "" } }), &["spec.Sound"]),
                ("both", json!({ "sound": { "name": "", "model": "sb16" } }), &["spec.Sound", "spec.Sound"]),
                ("video", json!({ "video": { "type": "vga" } }), &[]),
                (
                    "video with graphics",
                    json!({ "video": { "type": "vga" }, "autoattachGraphicsDevice": true }),
                    &[],
                ),
                (
                    "video without graphics",
                    json!({ "video": { "type": "vga" }, "autoattachGraphicsDevice": false }),
                    &["spec.video"],
                ),
                ("no graphics", json!({ "autoattachGraphicsDevice": false }), &[]),
            ],
        );
    }

    #[test]
    fn gated_devices() {
        let (vsock, metrics) = (json!({ "autoattachVSOCK": true }), json!({ "downwardMetrics": {} }));
        run_devices(
            &World::default(),
            &[
                ("vsock", vsock.clone(), &["spec.domain.devices.autoattachVSOCK"]),
                ("no vsock", json!({ "autoattachVSOCK": false }), &[]),
                ("metrics", metrics.clone(), &["spec.domain.devices.downwardMetrics"]),
            ],
        );
        run_devices(
            &World::default().with_gates(&["VSOCK", "DownwardMetrics"]),
            &[("vsock", vsock, &[]), ("metrics", metrics, &[])],
        );
    }

    #[test]
    fn panic_devices() {
        let panic = |architecture: &str, model: Value| json!({ "architecture": architecture, "domain": { "devices": { "panicDevices": [{ "model": model }] } } });
        let model = "spec.domain.devices.panicDevices[0].model";
        run(
            &World::default(),
            &[
                ("default", panic("amd64", Value::Null), &[]),
                ("hyperv", panic("amd64", json!("hyperv")), &[]),
                ("isa", panic("amd64", json!("isa")), &[]),
                ("pvpanic", panic("arm64", json!("pvpanic")), &[]),
                ("unknown", panic("amd64", json!("red")), &[model]),
                ("empty", panic("amd64", json!("")), &[model]),
                ("s390x", panic("s390x", json!("isa")), &["spec.domain.devices.panicDevices"]),
                (
                    "none on s390x",
                    json!({ "architecture": "s390x", "domain": { "devices": { "panicDevices": [] } } }),
                    &[],
                ),
            ],
        );
        let s390x = World::default()
            .with_configuration(json!({ "architectureConfiguration": { "defaultArchitecture": "s390x" } }));
        run(&s390x, &[("default s390x", panic("", Value::Null), &["spec.domain.devices.panicDevices"])]);
    }

    #[test]
    fn threads_are_not_less_than_none() {
        let threads = |count: i32| json!({ "ioThreadsPolicy": "auto", "ioThreads": { "supplementalPoolThreadCount": count } });
        let at = "spec.domain.ioThreads.supplementalPoolThreadCount";
        run_domain(
            &World::default(),
            &[("some", threads(2), &[]), ("none", threads(0), &[]), ("negative", threads(-1), &[at])],
        );
    }
}
