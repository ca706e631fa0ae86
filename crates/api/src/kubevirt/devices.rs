//! Host devices that virtual machines may use.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Host devices the cluster lets VMs use; anything not listed is refused.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermittedHostDevices {
    /// PCI devices open to passthrough.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub pci_host_devices: Option<Vec<PciHostDevice>>,
    /// Mediated devices, such as vGPUs, open to VMs.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub mediated_devices: Option<Vec<MediatedHostDevice>>,
    /// USB devices open to passthrough.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub usb: Option<Vec<UsbHostDevice>>,
}

/// A PCI device model VMs may use and the resource it is requested by.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PciHostDevice {
    /// Vendor and product ID in hex joined by a colon, such as `10DE:1EB8`; case does not matter.
    pub pci_vendor_selector: String,
    /// Node resource VMs request as `deviceName`, such as `nvidia.com/TU104GL_Tesla_T4`.
    pub resource_name: String,
    /// True if another device plugin serves the resource, so KubeVirt starts none; false if unset.
    pub external_resource_provider: Option<bool>,
}

/// A mediated device type VMs may use and the resource it is requested by.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MediatedHostDevice {
    /// Type name as the host driver shows it, such as `GRID T4-1Q`.
    pub mdev_name_selector: String,
    /// Node resource VMs request as `deviceName`, such as `nvidia.com/GRID_T4-1Q`.
    pub resource_name: String,
    /// True if another device plugin serves the resource, so KubeVirt starts none; false if unset.
    pub external_resource_provider: Option<bool>,
}

/// A USB device, or a set handed out together, and the resource it is requested by.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsbHostDevice {
    /// Node resource VMs request as `deviceName`, such as `kubevirt.io/storage`.
    pub resource_name: String,
    /// Devices that make up one unit of the resource; all must be found on the node.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub selectors: Option<Vec<UsbSelector>>,
    /// True if another device plugin serves the resource, so KubeVirt starts none; false if unset.
    pub external_resource_provider: Option<bool>,
}

/// Matches a USB device by its IDs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsbSelector {
    /// USB vendor ID in hex, such as `46f4`.
    pub vendor: String,
    /// USB product ID in hex, such as `0001`.
    pub product: String,
}

/// Mediated device types that virt-handler creates on nodes.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MediatedDevicesConfiguration {
    /// Deprecated spelling; read only when `mediatedDeviceTypes` is empty.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub mediated_devices_types: Option<Vec<String>>,
    /// Types, such as `nvidia-222`, for nodes that no entry of `nodeMediatedDeviceTypes` matches.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub mediated_device_types: Option<Vec<String>>,
    /// Types per group of nodes; a matching node uses these instead of the general list.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub node_mediated_device_types: Option<Vec<NodeMediatedDeviceTypesConfig>>,
    /// Whether virt-handler creates and removes mediated devices at all; true if unset.
    pub enabled: Option<bool>,
}

/// Mediated device types for the nodes with certain labels.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeMediatedDeviceTypesConfig {
    /// Labels a node must all have for the entry to apply; several matching entries add up.
    pub node_selector: BTreeMap<String, String>,
    /// Deprecated spelling; read only when `mediatedDeviceTypes` is empty.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub mediated_devices_types: Option<Vec<String>>,
    /// Types to create on the selected nodes, such as `nvidia-222`.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub mediated_device_types: Option<Vec<String>>,
}
