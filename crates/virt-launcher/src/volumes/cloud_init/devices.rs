//! Tagged devices: a config drive tells the guest which tag is at which address.

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::Domain;
use kubevirt_domain::domain::host_device::HostDeviceRole;
use kubevirt_domain::pci::Address;
use serde::Serialize;

/// A device that the user has given a tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Device {
    /// `nic` or `hostdev`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Bus it is on.
    pub bus: &'static str,
    /// Address on the bus.
    pub address: String,
    /// Hardware address of a network card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// The tag.
    pub tags: Vec<String>,
}

impl Device {
    fn new(kind: &'static str, address: &Address, mac: Option<&String>, tag: &str) -> Self {
        let bus = match address {
            Address::Pci { .. } | Address::Expander { .. } => "pci",
            Address::Ccw(_) => "ccw",
        };
        Self { kind, bus, address: address.to_string(), mac: mac.cloned(), tags: vec![tag.into()] }
    }
}

/// All devices of a domain that its VMI has given a tag.
pub fn tagged_devices(vmi: &VirtualMachineInstance, domain: &Domain) -> Vec<Device> {
    let spec = &vmi.spec.domain.devices;
    let interface = |name: &str| {
        let found = spec.interfaces.iter().flatten().find(|interface| interface.name == name)?;
        tag(&found.tag)
    };
    let mut devices: Vec<_> = domain
        .interfaces
        .iter()
        .filter_map(|card| Some(Device::new("nic", &card.address, Some(&card.mac), interface(&card.name)?)))
        .collect();
    devices.extend(domain.host_devices.iter().filter_map(|device| {
        let (kind, tag) = match device.role {
            HostDeviceRole::Sriov => ("nic", interface(&device.name)?),
            HostDeviceRole::Gpu => {
                let found = spec.gpus.iter().flatten().find(|gpu| gpu.name == device.name)?;
                ("hostdev", tag(&found.tag)?)
            }
            HostDeviceRole::Generic => {
                let found = spec.host_devices.iter().flatten().find(|other| other.name == device.name)?;
                ("hostdev", tag(&found.tag)?)
            }
        };
        Some(Device::new(kind, device.address.as_ref()?, None, tag))
    }));
    devices
}

fn tag(tag: &Option<String>) -> Option<&str> {
    tag.as_deref().filter(|tag| !tag.is_empty())
}
