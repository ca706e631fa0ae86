//! The networks of a pod as Multus reports them.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kubevirt_api::names::external::multus;
use serde::Deserialize;
use serde_json::Value;

/// A network that a pod is attached to.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Attached {
    /// Its definition, as `namespace/name`.
    pub name: String,
    /// What the pod calls the interface.
    pub interface: String,
    /// The interface's hardware address.
    pub mac: String,
    /// The largest packet that goes through.
    pub mtu: Option<i64>,
    /// Whether this is the pod's own network.
    pub default: bool,
    /// The device behind the interface.
    pub device_info: Option<Value>,
}

impl Attached {
    /// What Multus reports on a pod; nothing if it reports nothing that can be read.
    pub fn to(pod: &Pod) -> Vec<Self> {
        let text = pod.annotations().get(multus::NETWORK_STATUS).map(String::as_str).unwrap_or_default();
        serde_json::from_str(text).unwrap_or_default()
    }
}
