//! Machines that tests put together piece by piece.

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::facts::InterfaceFacts;
use kubevirt_domain::{Domain, HostFacts, Layout, QemuFacts, convert};
use serde_json::{Value, json};

/// Disks in a VMI.
pub const DISKS: &str = "/spec/domain/devices/disks";
/// Network cards.
pub const CARDS: &str = "/spec/domain/devices/interfaces";
/// Volumes.
pub const VOLUMES: &str = "/spec/volumes";

/// A machine under construction: its VMI as a tree, and facts.
#[derive(Clone)]
pub struct Draft {
    pub vmi: Value,
    pub host: HostFacts,
}

impl Draft {
    pub fn new() -> Self {
        let root = json!({ "name": "root", "disk": { "bus": "virtio" } });
        let mut draft = Self {
            vmi: json!({
                "metadata": { "name": "web", "namespace": "default", "uid": "u" },
                "spec": {
                    "domain": {
                        "memory": { "guest": "256Mi", "maxGuest": "1Gi" },
                        "cpu": { "sockets": 1, "maxSockets": 4 },
                        "devices": { "disks": [root], "interfaces": [] },
                    },
                    "volumes": [{ "name": "root", "persistentVolumeClaim": { "claimName": "root" } }],
                    "networks": [],
                },
                "status": { "volumeStatus": [], "memory": { "guestAtBoot": "256Mi" } },
            }),
            host: HostFacts { translation_buffer: 32, balloon_stats_period: 0, ..HostFacts::default() },
        };
        draft.card("default");
        draft
    }

    pub fn push(&mut self, pointer: &str, item: Value) {
        self.vmi.pointer_mut(pointer).unwrap().as_array_mut().unwrap().push(item);
    }

    pub fn set(&mut self, pointer: &str, key: &str, value: Value) {
        self.vmi.pointer_mut(pointer).unwrap().as_object_mut().unwrap().insert(key.into(), value);
    }

    pub fn named(&mut self, pointer: &str, name: &str) -> &mut Value {
        let list = self.vmi.pointer_mut(pointer).unwrap().as_array_mut().unwrap();
        list.iter_mut().find(|item| item["name"] == name).unwrap()
    }

    /// A network card on a tap device.
    pub fn card(&mut self, name: &str) {
        self.push("/spec/domain/devices/interfaces", json!({ "name": name, "masquerade": {} }));
        self.push("/spec/networks", json!({ "name": name, "pod": {} }));
        let facts = InterfaceFacts { tap: Some(format!("tap-{name}")), ..InterfaceFacts::default() };
        self.host.interfaces.insert(name.into(), facts);
    }

    /// A hotplugged volume with its disk.
    pub fn volume(&mut self, name: &str, bus: &str) {
        self.push("/spec/domain/devices/disks", json!({ "name": name, "disk": { "bus": bus } }));
        self.medium(name);
    }

    /// A hotplugged volume.
    pub fn medium(&mut self, name: &str) {
        let claim = json!({ "claimName": name, "hotpluggable": true });
        self.push("/spec/volumes", json!({ "name": name, "persistentVolumeClaim": claim }));
        let status = json!({ "name": name, "target": "", "phase": "Ready", "hotplugVolume": {} });
        self.push("/status/volumeStatus", status);
    }

    /// An empty CD-ROM drive.
    pub fn drive(&mut self, name: &str) {
        self.push(DISKS, json!({ "name": name, "cdrom": { "bus": "sata" } }));
    }

    /// More CPUs and memory.
    pub fn grow(&mut self, sockets: u32, memory: &str) {
        self.set("/spec/domain/cpu", "sockets", json!(sockets));
        self.set("/spec/domain/memory", "guest", json!(memory));
    }

    pub fn without(&self, pointer: &str, name: &str) -> Self {
        let mut draft = self.clone();
        let list = draft.vmi.pointer_mut(pointer).unwrap().as_array_mut().unwrap();
        list.retain(|item| item["name"] != name);
        draft
    }

    pub fn domain(&self) -> Domain {
        self.domain_in(&Layout::default())
    }

    pub fn domain_in(&self, layout: &Layout) -> Domain {
        let vmi: VirtualMachineInstance = serde_json::from_value(self.vmi.clone()).unwrap();
        convert(&vmi, &self.host, &QemuFacts::default(), layout).unwrap()
    }
}
