//! Devices of the host: which of the allocated ones is whose.

use std::collections::BTreeSet;

use kubevirt_api::vmi::host_devices::VgpuDisplayOptions;
use kubevirt_api::vmi::network::InterfaceState;

use super::{Conversion, text};
use crate::domain::Architecture;
use crate::domain::host_device::{HostDevice, HostDeviceRole, HostDeviceSource};
use crate::domain::memory::NumaNode;
use crate::pci::{Address, PciLayout, Role};

/// All host devices of the machine.
pub(super) fn convert(c: &mut Conversion<'_>, nodes: &[NumaNode], layout: &mut PciLayout) -> Vec<HostDevice> {
    let mut given = BTreeSet::new();
    let mut places = Places { nodes, layout };
    let mut devices = sriov(c, &mut places);
    given.extend(devices.iter().map(|device| device.source.clone()));
    let gpus = c.spec.devices.gpus.as_deref().unwrap_or_default();
    let generic = c.spec.devices.host_devices.as_deref().unwrap_or_default();
    let wishes_gpu = gpus.iter().enumerate().map(|(index, gpu)| Wish {
        field: format!("spec.domain.devices.gpus[{index}]"),
        name: &gpu.name,
        role: HostDeviceRole::Gpu,
        resource: text(&gpu.device_name),
        claim: claim(&gpu.claim_name, &gpu.request_name),
        display: gpu.virtual_gpu_options.as_ref().and_then(|options| options.display.as_ref()),
    });
    let wishes_generic = generic.iter().enumerate().map(|(index, device)| Wish {
        field: format!("spec.domain.devices.hostDevices[{index}]"),
        name: &device.name,
        role: HostDeviceRole::Generic,
        resource: text(&device.device_name),
        claim: claim(&device.claim_name, &device.request_name),
        display: None,
    });
    let any_display = gpus.iter().any(|gpu| gpu.virtual_gpu_options.is_some());
    let mut first_gpu = !any_display;
    for (place, wish) in (0..).zip(wishes_gpu.chain(wishes_generic).collect::<Vec<_>>()) {
        let Some(source) = allocated(c, &wish, &mut given) else { continue };
        let (mut display, mut ramfb) = display(&source, wish.display);
        if wish.role == HostDeviceRole::Gpu && matches!(source, HostDeviceSource::Mdev(_)) && first_gpu {
            (display, ramfb, first_gpu) = (true, true, false);
        }
        let on_pci = !matches!(source, HostDeviceSource::Usb { .. });
        devices.push(HostDevice {
            name: wish.name.to_owned(),
            role: wish.role,
            address: on_pci.then(|| places.take(c, &wish.field, Role::HostDevice(place), &source)),
            source,
            display,
            ramfb,
            boot_index: None,
            acpi_index: None,
        });
    }
    if !devices.is_empty() && c.architecture == Architecture::S390x {
        c.unsupported("spec.domain.devices", "host devices on s390x are not supported");
    }
    devices
}

/// A device that the VMI asks for.
struct Wish<'a> {
    field: String,
    name: &'a str,
    role: HostDeviceRole,
    resource: Option<String>,
    claim: Option<String>,
    display: Option<&'a VgpuDisplayOptions>,
}

/// Where host devices sit: near the CPUs and memory that they are near to on the host, if that is asked for.
struct Places<'a> {
    nodes: &'a [NumaNode],
    layout: &'a mut PciLayout,
}

impl Places<'_> {
    fn take(
        &mut self,
        c: &mut Conversion<'_>,
        field: &str,
        role: Role,
        source: &HostDeviceSource,
    ) -> Address {
        let aware = c.host.numa_aware_pci && !self.nodes.is_empty() && !c.wished.contains_key(field);
        let HostDeviceSource::Pci(host) = source else { return c.place(field, role) };
        if !aware {
            return c.place(field, role);
        }
        let on_host = c.host.devices.nodes.get(host);
        let node = self.nodes.iter().position(|node| node.host_node.as_ref() == on_host && on_host.is_some());
        let place = node.and_then(|node| self.layout.add_expander_port(node as u32));
        place.unwrap_or_else(|| {
            let reason = match (on_host, node) {
                (None, _) => "the NUMA node of its device is not known".to_owned(),
                (Some(node), None) => {
                    format!("its device is on NUMA node {node} of the host, where the machine has no CPUs")
                }
                _ => "there is no place left on its NUMA node".to_owned(),
            };
            c.unsupported(field, reason);
            Address::Ccw(0)
        })
    }
}

/// The virtual functions of interfaces.
fn sriov(c: &mut Conversion<'_>, places: &mut Places<'_>) -> Vec<HostDevice> {
    let all = c.spec.devices.interfaces.as_deref().unwrap_or_default();
    let functions = all.iter().enumerate().filter(|(_, interface)| interface.sriov.is_some());
    let mut devices = Vec::new();
    for (place, (index, interface)) in (0..).zip(functions.collect::<Vec<_>>()) {
        let pending = c.host.interfaces.get(&interface.name).is_some_and(|facts| facts.pending);
        if interface.state == Some(InterfaceState::Absent) || pending {
            continue;
        }
        let field = format!("spec.domain.devices.interfaces[{index}]");
        let host = c.host.interfaces.get(&interface.name).and_then(|facts| text(&facts.pci_address));
        let Some(host) = host else {
            c.unsupported(field, "no virtual function was allocated for it");
            continue;
        };
        if interface.state == Some(InterfaceState::Down) {
            c.unsupported(format!("{field}.state"), "the link of a virtual function cannot be taken down");
        }
        devices.push(HostDevice {
            name: interface.name.clone(),
            role: HostDeviceRole::Sriov,
            address: Some(places.take(c, &field, Role::Sriov(place), &HostDeviceSource::Pci(host.clone()))),
            source: HostDeviceSource::Pci(host),
            display: false,
            ramfb: false,
            boot_index: interface.boot_order.and_then(|order| u32::try_from(order).ok()),
            acpi_index: interface
                .acpi_index
                .and_then(|index| u32::try_from(index).ok())
                .filter(|index| *index > 0),
        });
    }
    devices
}

fn claim(claim: &Option<String>, request: &Option<String>) -> Option<String> {
    Some(format!("{}/{}", text(claim)?, text(request).unwrap_or_default()))
}

/// The next allocated device that nobody has; a device can belong to several resources.
fn allocated(
    c: &mut Conversion<'_>,
    wish: &Wish<'_>,
    given: &mut BTreeSet<HostDeviceSource>,
) -> Option<HostDeviceSource> {
    let source = match (&wish.claim, &wish.resource) {
        (Some(claim), _) => c.host.devices.claims.get(claim).cloned(),
        (None, Some(resource)) => {
            let devices = c.host.devices.resources.get(resource).map(Vec::as_slice).unwrap_or_default();
            devices.iter().find(|device| !given.contains(device)).cloned()
        }
        (None, None) => None,
    };
    let Some(source) = source else {
        let from = wish.claim.as_ref().or(wish.resource.as_ref()).map_or("", String::as_str);
        c.unsupported(&*wish.field, format_args!("no device of {from:?} was allocated for it"));
        return None;
    };
    given.insert(source.clone());
    Some(source)
}

/// Display and early frame buffer: for parts of a GPU unless switched off, for whole ones if switched on.
fn display(source: &HostDeviceSource, options: Option<&VgpuDisplayOptions>) -> (bool, bool) {
    let Some(options) = options else { return (false, false) };
    let is_part = matches!(source, HostDeviceSource::Mdev(_));
    let display = options.enabled.unwrap_or(is_part);
    let ramfb = options.ram_fb.as_ref().map_or(is_part, |ramfb| ramfb.enabled.unwrap_or(true));
    (display, display && ramfb)
}
