//! What is told of snapshots.

use kubevirt_api::snapshot::{SnapshotPhase, VirtualMachineSnapshot};
use kubevirt_component::metrics::Page;

use super::{list, seconds};

/// When a snapshot was taken, if it was.
pub fn tell(page: &mut Page, snapshot: &VirtualMachineSnapshot) {
    let Some(status) = &snapshot.status else { return };
    let (Some(SnapshotPhase::Succeeded), Some(time)) = (&status.phase, &status.creation_time) else { return };
    let name = snapshot.metadata.name.as_deref().unwrap_or_default();
    let namespace = snapshot.metadata.namespace.as_deref().unwrap_or_default();
    page.add(&list::SNAPSHOT_SUCCEEDED, &[&snapshot.spec.source.name, name, namespace], seconds(time));
}
