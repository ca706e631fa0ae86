//! An instance whose guest has ended, or never came.

use kubevirt_api::names::{finalizers, labels};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;

use crate::vmi::observe::Observed;
use crate::vmi::pods;

/// Lets go of an instance that has ended: of its own finalizer when no pod is left, and of the machine's when there is
/// no machine to do it.
pub fn let_go(observed: &Observed, vmi: &mut VirtualMachineInstance) {
    if observed.pods.is_empty() && observed.pods_confirmed {
        remove(vmi, &[finalizers::FOREGROUND_DELETE, finalizers::DEPRECATED_FOREGROUND_DELETE]);
        if let Some(labels) = &mut vmi.metadata.labels {
            labels.remove(labels::OUTDATED_LAUNCHER_IMAGE);
        }
        vmi.status.get_or_insert_default().launcher_container_image_version = None;
    }
    if !observed.has_owner {
        remove(vmi, &[finalizers::VM_CONTROLLER]);
    }
}

/// A receiver that waits for its sender: gone when it is deleted, under way when there is a pod.
pub fn update_waiting(observed: &Observed, vmi: &mut VirtualMachineInstance) {
    if observed.is_deleted() {
        if observed.pods.is_empty() && observed.pods_confirmed {
            remove(vmi, &[finalizers::FOREGROUND_DELETE, finalizers::DEPRECATED_FOREGROUND_DELETE]);
        }
        if !observed.has_owner {
            remove(vmi, &[finalizers::VM_CONTROLLER]);
        }
        return;
    }
    let status = vmi.status.get_or_insert_default();
    let has_failed = status.migration_state.as_ref().and_then(|state| state.failed) == Some(true);
    if observed.launcher().is_some_and(|pod| !pods::is_down(pod)) && !has_failed {
        status.phase = Some(VmiPhase::Scheduling);
    }
}

fn remove(vmi: &mut VirtualMachineInstance, names: &[&str]) {
    if let Some(all) = &mut vmi.metadata.finalizers {
        all.retain(|finalizer| !names.contains(&finalizer.as_str()));
    }
}
