//! GPUs, host devices and the claims that back them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::vmi::features::FeatureState;

/// A physical or virtual GPU given to the guest, from a device plugin or a resource claim.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gpu {
    /// Name of this entry, unique within the VM.
    pub name: String,
    /// Device plugin resource to take the GPU from, such as `nvidia.com/GRID_T4-1Q`.
    pub device_name: Option<String>,
    /// Entry of the VM's `resourceClaims` to take the GPU from, instead of `deviceName`.
    pub claim_name: Option<String>,
    /// Device request within the claim that yields this GPU.
    pub request_name: Option<String>,
    /// Display options; only meaningful for vGPUs.
    #[serde(rename = "virtualGPUOptions")]
    pub virtual_gpu_options: Option<VgpuOptions>,
    /// Label passed with the device's address in the config drive, so the guest can recognise it.
    pub tag: Option<String>,
}

/// Options for a virtual GPU.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VgpuOptions {
    /// Whether and how the vGPU drives the VM's display.
    pub display: Option<VgpuDisplayOptions>,
}

/// Display role of a vGPU.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VgpuDisplayOptions {
    /// Whether the vGPU output is shown on the VM's console; true if unset.
    pub enabled: Option<bool>,
    /// Framebuffer for early boot, before the guest's GPU driver loads; on if unset.
    #[serde(rename = "ramFB")]
    pub ram_fb: Option<FeatureState>,
}

/// A host device passed through to the guest, from a device plugin or a resource claim.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostDevice {
    /// Name of this entry, unique within the VM.
    pub name: String,
    /// Device plugin resource to take the device from; the cluster must permit it.
    pub device_name: Option<String>,
    /// Entry of the VM's `resourceClaims` to take the device from, instead of `deviceName`.
    pub claim_name: Option<String>,
    /// Device request within the claim that yields this device.
    pub request_name: Option<String>,
    /// Label passed with the device's address in the config drive, so the guest can recognise it.
    pub tag: Option<String>,
}

/// Selects one device request of a resource claim the VM holds (alpha, feature-gated).
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimRequest {
    /// Name of an entry in the VM's `resourceClaims`.
    pub claim_name: Option<String>,
    /// Name of a device request inside that claim.
    pub request_name: Option<String>,
}

/// A dynamically allocated resource (DRA) that must be reserved before the VM can start.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceClaim {
    /// Name devices and networks use to refer to this claim; a DNS label, unique within the VM.
    pub name: String,
    /// Existing ResourceClaim in the VM's namespace; set this or `resourceClaimTemplateName`.
    pub resource_claim_name: Option<String>,
    /// Template for a claim made per launcher pod and deleted with it; set this or `resourceClaimName`.
    pub resource_claim_template_name: Option<String>,
}
