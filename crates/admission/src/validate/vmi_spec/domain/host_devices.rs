//! Host devices and virtual GPUs.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::host_devices::Gpu;

use crate::{Context, Gate, Path, Problems};

/// Everything that is wrong.
pub(super) fn check(
    cx: &Context<'_>,
    path: &Path<'_>,
    spec: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    let devices = &spec.domain.devices;
    if devices.gpus.iter().flatten().filter(|gpu| shows_ramfb(gpu)).count() > 1 {
        let message = "only one virtual GPU can show a boot framebuffer; turn ramFB off for the others";
        problems.invalid(&path.at("GPUs"), message);
    }
    if devices.host_devices.as_ref().is_some_and(|devices| !devices.is_empty())
        && !cx.config.enabled(Gate::HostDevices)
    {
        problems.invalid(&path.at("HostDevices"), "needs the feature gate HostDevices, which is off");
    }
}

/// Whether a virtual GPU with a display shows a framebuffer before its driver runs.
fn shows_ramfb(gpu: &Gpu) -> bool {
    let display = gpu.virtual_gpu_options.as_ref().and_then(|options| options.display.as_ref());
    display.is_some_and(|display| {
        let ramfb = display.ram_fb.as_ref().is_none_or(|ramfb| ramfb.enabled == Some(true));
        display.enabled.unwrap_or(true) && ramfb
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::run_devices;
    use crate::testing::World;

    #[test]
    fn one_framebuffer_and_gated_host_devices() {
        let gpus = |displays: &[Value]| {
            let gpu = |display: &Value| json!({ "name": "g", "deviceName": "d", "virtualGPUOptions": { "display": display } });
            json!({ "gpus": displays.iter().map(gpu).collect::<Vec<_>>() })
        };
        let (on, off) = (json!({}), json!({ "enabled": false }));
        let no_ramfb = json!({ "ramFB": { "enabled": false } });
        let unset_ramfb = json!({ "ramFB": {} });
        let ramfb = json!({ "ramFB": { "enabled": true } });
        let host = json!({ "hostDevices": [{ "name": "h", "deviceName": "d" }] });
        run_devices(
            &World::default(),
            &[
                ("one", gpus(std::slice::from_ref(&on)), &[]),
                ("two", gpus(&[on.clone(), on.clone()]), &["spec.GPUs"]),
                ("two that say so", gpus(&[ramfb.clone(), ramfb]), &["spec.GPUs"]),
                ("one display off", gpus(&[on.clone(), off]), &[]),
                ("one framebuffer off", gpus(&[on.clone(), no_ramfb]), &[]),
                ("one framebuffer empty", gpus(&[on, unset_ramfb]), &[]),
                (
                    "no options",
                    json!({ "gpus": [{ "name": "a", "deviceName": "d" }, { "name": "b", "deviceName": "d" }] }),
                    &[],
                ),
                ("gate off", host.clone(), &["spec.HostDevices"]),
                ("gate off, empty list", json!({ "hostDevices": [] }), &[]),
            ],
        );
        run_devices(&World::default().with_gates(&["HostDevices"]), &[("gate on", host, &[])]);
    }
}
