//! GPUs of NVIDIA Grace machines, which need a machine built around them.

use std::collections::{BTreeMap, HashMap};

use kubevirt_api::kubevirt::devices::PermittedHostDevices;
use kubevirt_api::names::annotations::{DISABLE_PCI_HOLE_64, PLACE_PCI_DEVICES_ON_ROOT_COMPLEX};
use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use super::architecture_of;
use crate::{Context, Gate, Path, Problems};

const NVIDIA: &str = "10DE";
const GRACE_GPUS: [&str; 3] = ["2342", "2348", "2941"];

/// What a PCI vendor selector such as `10DE:2342` stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Selected {
    /// A GPU of a Grace machine.
    Grace,
    /// Any device of NVIDIA, which may be one.
    Ambiguous,
    /// Something else.
    Other,
}

fn selected(selector: &str) -> Selected {
    let id = |text: &str| {
        let text = text.trim().to_ascii_uppercase();
        text.strip_prefix("0X").map_or(text.clone(), str::to_owned)
    };
    match selector.split_once(':').map(|(vendor, device)| (id(vendor), id(device))) {
        Some((vendor, _)) if vendor != NVIDIA => Selected::Other,
        Some((_, device)) if device == "*" => Selected::Ambiguous,
        Some((_, device)) if GRACE_GPUS.contains(&device.as_str()) => Selected::Grace,
        _ => Selected::Other,
    }
}

/// A device of the instance that may be a GPU of a Grace machine.
struct Requested<'a> {
    list: &'static str,
    index: usize,
    resource: &'a str,
    selected: Selected,
}

fn requested<'a>(
    spec: &'a VirtualMachineInstanceSpec,
    permitted: Option<&PermittedHostDevices>,
) -> Vec<Requested<'a>> {
    let devices = &spec.domain.devices;
    let pci = permitted.and_then(|permitted| permitted.pci_host_devices.as_deref()).unwrap_or_default();
    if pci.is_empty() || (devices.gpus.is_none() && devices.host_devices.is_none()) {
        return Vec::new();
    }
    let selectors: HashMap<&str, Selected> = pci
        .iter()
        .filter(|device| !device.resource_name.is_empty() && !device.pci_vendor_selector.is_empty())
        .map(|device| (device.resource_name.as_str(), selected(&device.pci_vendor_selector)))
        .collect();
    let gpus = devices.gpus.iter().flatten().map(|gpu| gpu.device_name.as_deref());
    let hosts = devices.host_devices.iter().flatten().map(|device| device.device_name.as_deref());
    let gpus = gpus.enumerate().map(|(index, name)| ("gpus", index, name));
    let hosts = hosts.enumerate().map(|(index, name)| ("hostDevices", index, name));
    gpus.chain(hosts)
        .filter_map(|(list, index, name)| {
            let resource = name?;
            let selected = *selectors.get(resource)?;
            Some(Requested { list, index, resource, selected })
        })
        .filter(|requested| requested.selected != Selected::Other)
        .collect()
}

/// Everything that is wrong.
pub(super) fn check(
    cx: &Context<'_>,
    path: &Path<'_>,
    spec: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    let requested = requested(spec, cx.config.permitted_host_devices());
    let on = cx.config.enabled(Gate::GraceIoVirtualization);
    let devices = path.at("domain.devices");
    for device in &requested {
        let message = match device.selected {
            Selected::Grace if !on => format!(
                "{:?} is a GPU of an NVIDIA Grace machine, which needs the feature gate GraceIOVirtualization",
                device.resource
            ),
            Selected::Ambiguous if on => format!(
                "{:?} stands for any device of NVIDIA; permit it with the exact vendor and product",
                device.resource
            ),
            _ => continue,
        };
        problems.invalid(&devices.at(device.list).index(device.index).at("deviceName"), message);
    }
    if on && requested.iter().any(|device| device.selected == Selected::Grace) {
        check_machine(cx, path, spec, problems);
    }
}

/// What the rest of the machine must be.
fn check_machine(
    cx: &Context<'_>,
    path: &Path<'_>,
    spec: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    let architecture = architecture_of(cx, spec);
    if architecture != "arm64" {
        problems.invalid(&path.at("architecture"), "a GPU of an NVIDIA Grace machine needs arm64");
    }
    let machine = spec.domain.machine.as_ref().and_then(|machine| machine.type_.as_deref());
    let machine = machine.filter(|machine| !machine.is_empty());
    let machine = machine.unwrap_or_else(|| cx.config.machine_type(architecture));
    if !machine.starts_with("virt") {
        let message =
            format!("a GPU of an NVIDIA Grace machine needs the machine type virt, not {machine:?}");
        problems.invalid(&path.at("domain.machine.type"), message);
    }
    if spec.domain.cpu.as_ref().is_none_or(|cpu| cpu.dedicated_cpu_placement != Some(true)) {
        let message = "a GPU of an NVIDIA Grace machine needs dedicated CPUs";
        problems.required(&path.at("domain.cpu.dedicatedCpuPlacement"), message);
    }
    for gate in [Gate::PciNumaAwareTopology, Gate::Iommufd] {
        if !cx.config.enabled(gate) {
            let message = format!(
                "a GPU of an NVIDIA Grace machine needs the feature gate {}, which is off",
                gate.name()
            );
            problems.invalid(&path.at("domain.devices"), message);
        }
    }
}

/// Annotations, at `metadata`, that such GPUs do not work with.
pub fn check_annotations(
    cx: &Context<'_>,
    metadata: &Path<'_>,
    annotations: Option<&BTreeMap<String, String>>,
    spec: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    let is_set =
        |name: &&str| annotations.and_then(|all| all.get(*name)).is_some_and(|value| value == "true");
    let mut set =
        [PLACE_PCI_DEVICES_ON_ROOT_COMPLEX, DISABLE_PCI_HOLE_64].into_iter().filter(is_set).peekable();
    if set.peek().is_none() {
        return;
    }
    let requested = requested(spec, cx.config.permitted_host_devices());
    if requested.iter().any(|device| device.selected == Selected::Grace) {
        for name in set {
            let message = "does not work with a GPU of an NVIDIA Grace machine; remove it";
            problems.invalid(&metadata.at("annotations").key(name), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_api::vmi::VirtualMachineInstanceSpec;
    use serde_json::{Value, json};

    use super::super::testing::{base, run};
    use super::{Selected, selected};
    use crate::testing::{World, assert_fields, patched, read};
    use crate::{Path, Problems};

    fn world(gates: &[&str]) -> World {
        World::default().with_configuration(json!({
            "developerConfiguration": { "featureGates": gates },
            "permittedHostDevices": { "pciHostDevices": [
                { "pciVendorSelector": "10de:2342", "resourceName": "example.com/grace" },
                { "pciVendorSelector": "10DE:*", "resourceName": "example.com/any" },
                { "pciVendorSelector": "8086:1234", "resourceName": "example.com/other" },
            ] },
        }))
    }

    fn gpu(resource: &str, patch: Value) -> Value {
        let base = json!({ "domain": { "devices": { "gpus": [{ "name": "g", "deviceName": resource }] } } });
        patched(&base, &patch)
    }

    #[test]
    fn selectors_tell_grace_from_others() {
        for (selector, is_grace, is_ambiguous) in [
            ("10de:2342", true, false),
            ("0x10DE: 2348 ", true, false),
            ("10DE:2941", true, false),
            ("10DE:*", false, true),
            ("10DE:1EB8", false, false),
            ("8086:*", false, false),
            ("10DE", false, false),
            ("10DE:2342:1", false, false),
        ] {
            assert_eq!(selected(selector) == Selected::Grace, is_grace, "{selector}");
            assert_eq!(selected(selector) == Selected::Ambiguous, is_ambiguous, "{selector}");
        }
    }

    #[test]
    fn a_grace_gpu_needs_a_machine_built_around_it() {
        let fit = json!({
            "architecture": "arm64",
            "domain": { "cpu": { "cores": 1, "dedicatedCpuPlacement": true }, "machine": { "type": "virt" } },
        });
        let at = "spec.domain.devices.gpus[0].deviceName";
        let on = world(&["GraceIOVirtualization", "PCINUMAAwareTopology", "IOMMUFD", "HostDevices"]);
        run(
            &world(&["HostDevices"]),
            &[
                ("gate off", gpu("example.com/grace", fit.clone()), &[at]),
                ("ambiguous, gate off", gpu("example.com/any", json!({})), &[]),
                ("other", gpu("example.com/other", json!({})), &[]),
            ],
        );
        run(
            &on,
            &[
                ("fit", gpu("example.com/grace", fit.clone()), &[]),
                (
                    "default machine",
                    gpu("example.com/grace", patched(&fit, &json!({ "domain": { "machine": null } }))),
                    &[],
                ),
                ("ambiguous", gpu("example.com/any", fit.clone()), &[at]),
                ("unlisted", gpu("example.com/unlisted", json!({})), &[]),
                (
                    "unfit",
                    gpu("example.com/grace", json!({})),
                    &[
                        "spec.architecture",
                        "spec.domain.machine.type",
                        "spec.domain.cpu.dedicatedCpuPlacement",
                    ],
                ),
                (
                    "host device",
                    json!({ "domain": { "devices": { "hostDevices": [{ "name": "h", "deviceName": "example.com/any" }] } } }),
                    &["spec.domain.devices.hostDevices[0].deviceName"],
                ),
            ],
        );
        run(
            &world(&["GraceIOVirtualization"]),
            &[(
                "other gates off",
                gpu("example.com/grace", fit),
                &["spec.domain.devices", "spec.domain.devices"],
            )],
        );
    }

    #[test]
    fn annotations_that_do_not_fit() {
        let annotations = json!({
            "kubevirt.io/placePCIDevicesOnRootComplex": "true",
            "kubevirt.io/disablePCIHole64": "true",
        });
        let both = [
            "metadata.annotations[kubevirt.io/placePCIDevicesOnRootComplex]",
            "metadata.annotations[kubevirt.io/disablePCIHole64]",
        ];
        for (name, resource, annotations, expected) in [
            ("grace", "example.com/grace", annotations.clone(), &both[..]),
            ("other", "example.com/other", annotations, &[]),
            ("off", "example.com/grace", json!({ "kubevirt.io/disablePCIHole64": "false" }), &[]),
        ] {
            let spec: VirtualMachineInstanceSpec = read(patched(&base(), &gpu(resource, json!({}))));
            let mut problems = Problems::default();
            world(&[]).run(|cx| {
                let annotations = read(annotations);
                super::check_annotations(
                    cx,
                    &Path::new("metadata"),
                    Some(&annotations),
                    &spec,
                    &mut problems,
                );
            });
            assert_fields(name, &problems, expected);
        }
    }
}
