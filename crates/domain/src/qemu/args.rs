//! A list of arguments that grows, and objects whose fields keep their order.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::domain::{Domain, VirtioModel};
use crate::pci::Address;

/// Arguments so far.
#[derive(Debug, Default)]
pub(super) struct Args {
    pub(super) list: Vec<String>,
    pub(super) drivers: Vec<(String, String)>,
}

/// A JSON object whose fields keep their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Object(Vec<(&'static str, Value)>);

impl Args {
    pub(super) fn flag(&mut self, flag: &str) {
        self.list.push(flag.to_owned());
    }

    pub(super) fn option(&mut self, name: &str, value: impl Into<String>) {
        self.list.extend([name.to_owned(), value.into()]);
    }

    pub(super) fn object(&mut self, name: &str, object: &Object) {
        self.option(name, object.to_string());
    }

    /// A device, whose driver is noted.
    pub(super) fn device(&mut self, object: &Object) {
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        self.drivers.push((text("id"), text("driver")));
        self.object("-device", object);
    }
}

impl Object {
    pub(super) fn device(driver: impl Into<String>, id: impl Into<String>) -> Self {
        Self::default().with("driver", driver.into()).with("id", id.into())
    }

    pub(super) fn qom(kind: &str, id: impl Into<String>) -> Self {
        Self::default().with("qom-type", kind).with("id", id.into())
    }

    pub(super) fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.0.push((key, value.into()));
        self
    }

    pub(super) fn maybe(self, key: &'static str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Only if it differs from QEMU's default, which is off.
    pub(super) fn on(self, key: &'static str, on: bool) -> Self {
        self.maybe(key, on.then_some(true))
    }

    /// Puts a device in its place.
    pub(super) fn at(self, address: Address) -> Self {
        match address {
            Address::Pci { bus, slot, function } => {
                let bus = if bus == 0 { "pcie.0".to_owned() } else { format!("pci.{bus}") };
                let addr =
                    if function == 0 { format!("0x{slot:x}") } else { format!("0x{slot:x}.0x{function:x}") };
                self.with("bus", bus).with("addr", addr).on("multifunction", address.leads_slot())
            }
            Address::Expander { node, port } => {
                self.with("bus", format!("pxb{node}.{port}")).with("addr", "0x0")
            }
            Address::Ccw(_) => self.with("devno", address.to_string()),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = serde_json::to_string(self).map_err(|_| std::fmt::Error)?;
        f.write_str(&text)
    }
}

/// A value inside `a=b,c=d`, where a comma is written twice.
pub(super) fn escape(value: &str) -> String {
    value.replace(',', ",,")
}

pub(super) fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// A virtio device such as `blk`, in the way this machine's virtio devices present themselves.
pub(super) fn virtio(domain: &Domain, kind: &str, id: impl Into<String>) -> Object {
    let driver = match domain.machine.virtio {
        VirtioModel::Modern => format!("virtio-{kind}-pci-non-transitional"),
        VirtioModel::Transitional => format!("virtio-{kind}-pci-transitional"),
        VirtioModel::Ccw => format!("virtio-{kind}-ccw"),
    };
    Object::device(driver, id).on("iommu_platform", domain.machine.virtio_iommu)
}

/// A virtio device that has no transitional form.
pub(super) fn modern(domain: &Domain, kind: &str, id: impl Into<String>) -> Object {
    let bus = if domain.machine.virtio == VirtioModel::Ccw { "ccw" } else { "pci" };
    Object::device(format!("{kind}-{bus}"), id).on("iommu_platform", domain.machine.virtio_iommu)
}
