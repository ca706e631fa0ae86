//! What can be said from the volumes of a machine.

use kubevirt_api::names::reasons;
use kubevirt_api::vm::status::PrintableStatus;
use kubevirt_api::vmi::status::VmiPhase;

use super::super::evidence::{Evidence, Storage};
use super::super::explain::Explanation;

/// Whether volumes can be what a machine waits for: not once its guest has begun, nor while nobody wants it.
fn counts(e: &Evidence) -> bool {
    let begun = matches!(e.phase(), Some(VmiPhase::Scheduled | VmiPhase::Running));
    let wanted = e.vmi.is_some() || e.vm.as_ref().is_some_and(|vm| !crate::commands::pause::is_halted(vm));
    wanted && !begun
}

fn printable(e: &Evidence, status: PrintableStatus) -> bool {
    e.vm.as_ref().and_then(|vm| vm.status.as_ref()?.printable_status.as_ref()) == Some(&status)
}

/// A data volume could not be filled.
pub fn failed_volume(e: &Evidence) -> Option<Explanation> {
    if !counts(e) {
        return None;
    }
    let failed = e.data_volumes.iter().find_map(|(name, state)| match state {
        Storage::Failed(message) => Some((name, message)),
        _ => None,
    });
    if let Some((name, message)) = failed {
        return Some(
            Explanation::new("data-volume-failed", format!("waits for the DataVolume {name}, which failed"))
                .because(message.clone())
                .next(format!("Look at it: kubectl describe datavolume {name} -n {}", e.namespace)),
        );
    }
    if !printable(e, PrintableStatus::DataVolumeError) {
        return None;
    }
    Some(
        Explanation::new("data-volume-failed", "waits for a DataVolume that failed")
            .next(format!("Look at them: kubectl get datavolume -n {}", e.namespace)),
    )
}

/// A claim does not exist.
pub fn missing_claim(e: &Evidence) -> Option<Explanation> {
    if !counts(e) {
        return None;
    }
    let all = e.claims.iter().map(|(name, state)| ("PersistentVolumeClaim", name, state));
    let all = all.chain(e.data_volumes.iter().map(|(name, state)| ("DataVolume", name, state)));
    let missing: Vec<String> = all
        .filter(|(_, _, state)| **state == Storage::Missing)
        .map(|(kind, name, _)| format!("{kind} {name}"))
        .collect();
    let said = e.warning(&[reasons::vmi::FAILED_PVC_NOT_FOUND]).map(|event| event.message.clone());
    if missing.is_empty() && said.is_none() && !printable(e, PrintableStatus::ErrorPvcNotFound) {
        return None;
    }
    let which = if missing.is_empty() { "a volume".to_owned() } else { missing.join(" and ") };
    Some(
        Explanation::new("claim-missing", format!("waits for {which}, which does not exist"))
            .because(said.unwrap_or_default())
            .next("Create it, or name another volume in the machine: it starts by itself then."),
    )
}

/// A secret or a config map does not exist.
pub fn missing_object(e: &Evidence) -> Option<Explanation> {
    if !counts(e) {
        return None;
    }
    let said = e.warning(&["FailedMount"]).filter(|event| event.message.contains("not found"));
    if e.missing.is_empty() && said.is_none() {
        return None;
    }
    let which = if e.missing.is_empty() {
        "something that does not exist".to_owned()
    } else {
        format!("{}, which does not exist", e.missing.join(" and "))
    };
    Some(
        Explanation::new("object-missing", format!("waits for {which}"))
            .because(said.map(|event| event.message.clone()).unwrap_or_default())
            .next("Create it: the pod starts by itself within two minutes then."),
    )
}

/// A volume is being made or filled.
pub fn volume_under_way(e: &Evidence) -> Option<Explanation> {
    if !counts(e) {
        return None;
    }
    let waiting = |all: &std::collections::BTreeMap<String, Storage>| {
        all.iter().find_map(|(name, state)| match state {
            Storage::Waiting(phase, message) => Some((name.clone(), phase.clone(), message.clone())),
            _ => None,
        })
    };
    if let Some((name, phase, message)) = waiting(&e.data_volumes) {
        return Some(
            Explanation::new("data-volume", format!("waits for the DataVolume {name}, which is {phase}"))
                .because(message)
                .next(format!("Watch it: kubectl get datavolume {name} -n {} -w", e.namespace)),
        );
    }
    // A claim that waits for its pod is bound as soon as there is one.
    let (name, phase, message) = waiting(&e.claims)?;
    if message.contains("first consumer")
        || e.pod.is_some() && !message.contains("no persistent volumes available")
    {
        return None;
    }
    Some(
        Explanation::new(
            "claim-unbound",
            format!("waits for the PersistentVolumeClaim {name}, which is {phase}"),
        )
        .because(message)
        .next(format!("Look at it: kubectl describe pvc {name} -n {}", e.namespace)),
    )
}
