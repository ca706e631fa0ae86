//! Whether a change of networks takes effect only on another pod.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kubevirt_api::condition::{self, Condition};
use kubevirt_api::names::conditions::vmi::MIGRATION_REQUIRED;
use kubevirt_api::names::reasons::vmi as reasons;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::network::{Interface, InterfaceState};
use kubevirt_api::vmi::status::{InterfaceStatus, VirtualMachineInstanceStatus};

use super::interfaces::{DOMAIN, MULTUS, is_from};
use super::{Attached, secondary};
use crate::vmi::conditions;

/// When to look again while a change may still be made on the running pod.
pub const RECHECK: Duration = Duration::from_secs(10);
/// How long something in the cluster has to plug a network into the running pod, if it can.
const GRACE: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    No,
    Soon,
    Now,
}

/// Reports whether the guest should move. Whether to look again soon.
pub fn update(
    vmi: &VirtualMachineInstance,
    pod: &Pod,
    status: &mut VirtualMachineInstanceStatus,
    now: Timestamp,
) -> bool {
    let known = condition::find(status.conditions.as_deref(), MIGRATION_REQUIRED);
    let mut need = need(vmi, pod, status);
    if need == Need::Soon && known.is_some_and(|known| has_waited(known, now)) {
        need = Need::Now;
    }
    if known.is_some_and(Condition::is_true) && need != Need::No {
        return false;
    }
    match need {
        Need::No => condition::remove(&mut status.conditions, MIGRATION_REQUIRED),
        Need::Soon => conditions::set(
            &mut status.conditions,
            conditions::new(MIGRATION_REQUIRED, false, reasons::AUTO_MIGRATION_PENDING, ""),
            now,
        ),
        Need::Now => conditions::set(
            &mut status.conditions,
            conditions::new(MIGRATION_REQUIRED, true, reasons::AUTO_MIGRATION_DUE_TO_LIVE_UPDATE, ""),
            now,
        ),
    }
    need == Need::Soon
}

fn has_waited(known: &Condition, now: Timestamp) -> bool {
    let since = known.last_transition_time.as_ref().map_or(now, |time| time.0);
    !known.is_true() && now.duration_since(since).unsigned_abs() > GRACE && now > since
}

fn need(vmi: &VirtualMachineInstance, pod: &Pod, status: &VirtualMachineInstanceStatus) -> Need {
    let attached = Attached::to(pod);
    let networks = vmi.spec.networks.as_deref().unwrap_or_default();
    let interfaces = vmi.spec.domain.devices.interfaces.as_deref().unwrap_or_default();
    let statuses = status.interfaces.as_deref().unwrap_or_default();
    for (network, _) in secondary(networks, &attached) {
        let Some(interface) = interfaces.iter().find(|interface| interface.name == network.name) else {
            continue;
        };
        let known = statuses.iter().find(|status| status.name.as_deref() == Some(&network.name));
        let plug = need_for_plug(interface, known);
        if plug != Need::No {
            return plug;
        }
        let pod_name = known.and_then(|known| known.pod_interface_name.as_deref()).unwrap_or_default();
        let Some(there) = attached.iter().find(|it| !pod_name.is_empty() && it.interface == pod_name) else {
            continue;
        };
        let wanted = network.multus.as_ref().map(|multus| multus.network_name.as_str()).unwrap_or_default();
        let namespace = vmi.metadata.namespace.as_deref().unwrap_or_default();
        if there.name != wanted && (wanted.contains('/') || there.name != format!("{namespace}/{wanted}")) {
            return Need::Now;
        }
    }
    Need::No
}

fn need_for_plug(interface: &Interface, known: Option<&InterfaceStatus>) -> Need {
    let is_absent = interface.state == Some(InterfaceState::Absent);
    match known {
        None if !is_absent && interface.sriov.is_some() => Need::Now,
        None if !is_absent => Need::Soon,
        Some(known) if is_absent && is_from(known, MULTUS) && !is_from(known, DOMAIN) => Need::Soon,
        _ => Need::No,
    }
}
