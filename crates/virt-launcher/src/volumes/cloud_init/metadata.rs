//! What a seed tells about its machine.

use std::collections::BTreeMap;

use kubevirt_api::names::annotations;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde::Serialize;

use super::{DataSource, Device};

/// Who a machine is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Namespace of the VMI.
    pub namespace: String,
    /// Name of the VMI.
    pub name: String,
    /// Name the guest should give itself.
    pub hostname: String,
    /// UUID of the firmware, or of the VMI.
    pub uuid: String,
    /// Instance type it was made from.
    pub instance_type: Option<String>,
}

impl Machine {
    /// Who the machine of a VMI is.
    pub fn of(vmi: &VirtualMachineInstance) -> Self {
        let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let metadata = &vmi.metadata;
        let firmware = vmi.spec.domain.firmware.as_ref().and_then(|firmware| text(&firmware.uuid));
        let name = text(&metadata.name).unwrap_or_default();
        let annotation =
            |key: &str| metadata.annotations.as_ref()?.get(key).cloned().filter(|it| !it.is_empty());
        Self {
            namespace: text(&metadata.namespace).unwrap_or_default(),
            hostname: vmi.hostname(),
            name,
            // A guest takes a new one for a new machine, so without firmware it is the one that lasts.
            uuid: firmware.or_else(|| text(&metadata.uid)).unwrap_or_default(),
            instance_type: annotation(annotations::CLUSTER_INSTANCETYPE)
                .or_else(|| annotation(annotations::INSTANCETYPE)),
        }
    }

    /// The file with facts about the machine.
    pub fn json(&self, source: DataSource, keys: &BTreeMap<String, String>, devices: &[Device]) -> Vec<u8> {
        let json = match source {
            DataSource::NoCloud => serde_json::to_vec(&NoCloud {
                instance_type: self.instance_type.as_deref(),
                instance_id: &self.uuid,
                local_hostname: &self.hostname,
                public_keys: keys,
            }),
            DataSource::ConfigDrive => serde_json::to_vec(&ConfigDrive {
                instance_type: self.instance_type.as_deref(),
                instance_id: format!("{}.{}", self.name, self.namespace),
                hostname: &self.hostname,
                uuid: &self.uuid,
                devices,
                public_keys: keys,
            }),
        };
        // Text and maps of text always have a JSON form.
        json.unwrap_or_default()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct NoCloud<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_type: Option<&'a str>,
    instance_id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    local_hostname: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    public_keys: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct ConfigDrive<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_type: Option<&'a str>,
    instance_id: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    hostname: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uuid: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    devices: &'a [Device],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    public_keys: &'a BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use kubevirt_api::vmi::VirtualMachineInstance;

    use super::*;

    fn vmi(json: serde_json::Value) -> VirtualMachineInstance {
        serde_json::from_value(json).unwrap()
    }

    fn plain() -> VirtualMachineInstance {
        vmi(serde_json::json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
            "metadata": {"name": "web.example", "namespace": "shop", "uid": "u-1"},
            "spec": {"domain": {"devices": {}}},
        }))
    }

    fn text(machine: &Machine, source: DataSource, keys: &[&str], devices: &[Device]) -> String {
        let keys = keys.iter().enumerate().map(|(n, key)| (n.to_string(), (*key).to_owned())).collect();
        String::from_utf8(machine.json(source, &keys, devices)).unwrap()
    }

    #[test]
    fn a_machine_is_called_as_its_vmi_says() {
        let mut vmi = plain();
        assert_eq!(Machine::of(&vmi).hostname, "web");
        assert_eq!(Machine::of(&vmi).uuid, "u-1");
        vmi.spec.hostname = Some("own".into());
        vmi.spec.domain.firmware = Some(serde_json::from_str(r#"{"uuid":"f-1"}"#).unwrap());
        let of = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        vmi.metadata.annotations = Some([of(annotations::INSTANCETYPE, "small")].into());
        let machine = Machine::of(&vmi);
        assert_eq!((machine.hostname.as_str(), machine.uuid.as_str()), ("own", "f-1"));
        assert_eq!(machine.instance_type.as_deref(), Some("small"));
        let both = [of(annotations::INSTANCETYPE, "small"), of(annotations::CLUSTER_INSTANCETYPE, "large")];
        vmi.metadata.annotations = Some(both.into());
        assert_eq!(Machine::of(&vmi).instance_type.as_deref(), Some("large"));
    }

    #[test]
    fn no_cloud_tells_who_the_machine_is() {
        let mut machine = Machine::of(&plain());
        assert_eq!(
            text(&machine, DataSource::NoCloud, &[], &[]),
            r#"{"instance-id":"u-1","local-hostname":"web"}"#
        );
        machine.instance_type = Some("small".into());
        assert_eq!(
            text(&machine, DataSource::NoCloud, &["ssh-rsa a", "ssh-rsa b"], &[]),
            r#"{"instance-type":"small","instance-id":"u-1","local-hostname":"web","public-keys":{"0":"ssh-rsa a","1":"ssh-rsa b"}}"#
        );
    }

    #[test]
    fn config_drives_tell_about_devices_too() {
        let mut machine = Machine::of(&plain());
        assert_eq!(
            text(&machine, DataSource::ConfigDrive, &[], &[]),
            r#"{"instance_id":"web.example.shop","hostname":"web","uuid":"u-1"}"#
        );
        machine.instance_type = Some("small".into());
        let device = Device {
            kind: "nic",
            bus: "pci",
            address: "0000:01:00.0".into(),
            mac: Some("02:00:00:00:00:01".into()),
            tags: vec!["data".into()],
        };
        assert_eq!(
            text(&machine, DataSource::ConfigDrive, &["ssh-rsa a"], &[device]),
            r#"{"instance_type":"small","instance_id":"web.example.shop","hostname":"web","uuid":"u-1","devices":[{"type":"nic","bus":"pci","address":"0000:01:00.0","mac":"02:00:00:00:00:01","tags":["data"]}],"public_keys":{"0":"ssh-rsa a"}}"#
        );
    }
}
