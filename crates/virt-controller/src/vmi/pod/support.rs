//! CPU and memory of the containers that run beside the machine or before it.

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_admission::ClusterConfig;
use kubevirt_api::kubevirt::configuration::SupportContainerType;

use super::quantities::{List, quantity};

/// What a container gets where the cluster says nothing.
pub(super) struct Usual {
    /// CPU requested, and its limit.
    pub cpu: [&'static str; 2],
    /// Memory requested, and its limit.
    pub memory: [&'static str; 2],
}

/// Holds the image of a container disk.
pub(super) const CONTAINER_DISK: Usual = Usual { cpu: ["1m", "10m"], memory: ["1M", "40M"] };
/// Copies a small program.
pub(super) const COPY: Usual = Usual { cpu: ["10m", "100m"], memory: ["1M", "40M"] };
/// Copies the guest's console: the same binary as the launcher, so no more than that needs.
pub(super) const CONSOLE_LOG: Usual = Usual { cpu: ["5m", "15m"], memory: ["8M", "60M"] };
/// Serves a shared directory.
pub(super) const VIRTIOFS: Usual = Usual { cpu: ["10m", "100m"], memory: ["1M", "80M"] };
/// Holds plugged volumes.
pub(super) const HOTPLUG: Usual = Usual { cpu: ["10m", "100m"], memory: ["2M", "80M"] };

/// Resources of a container of this kind: the cluster's word before ours. In a bounded pod it requests its limit.
pub(super) fn resources(
    config: &ClusterConfig,
    kind: &SupportContainerType,
    usual: &Usual,
    bounded: bool,
) -> ResourceRequirements {
    let own = config.configuration().support_container_resources.iter().flatten();
    let own = own.into_iter().find(|own| own.type_ == *kind).map(|own| &own.resources);
    let told = |list: Option<&List>, name: &str, usual: &str| -> Quantity {
        list.and_then(|list| list.get(name)).cloned().unwrap_or_else(|| quantity(usual))
    };
    let pick = |list: Option<&List>, at: usize| {
        List::from([
            ("cpu".to_owned(), told(list, "cpu", usual.cpu[at])),
            ("memory".to_owned(), told(list, "memory", usual.memory[at])),
        ])
    };
    let limits = pick(own.and_then(|own| own.limits.as_ref()), 1);
    let requests = if bounded { limits.clone() } else { pick(own.and_then(|own| own.requests.as_ref()), 0) };
    ResourceRequirements { requests: Some(requests), limits: Some(limits), claims: None }
}
