//! Moving the machine from one launcher to another.
//!
//! The target is prepared and waits ([`arrival`]). The source calls it, has it start a QEMU, moves disks and memory
//! and at last hands the machine over ([`departure`]). Until the source has sent that last call the machine belongs
//! to it, whatever becomes of the target, so the guest never runs twice: a target runs nothing that it was not handed,
//! and a source that does not know whether its call arrived asks again and keeps the guest still meanwhile.

mod admit;
mod arrival;
mod carry;
mod departure;
mod finish;
mod leave;
mod link;
mod mirror;
mod pace;
mod receive;
mod service;
mod stall;
mod take_over;
mod terms;
mod volumes;

use std::sync::Mutex;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::migration_state::MigrationState;
use tokio::sync::watch;

use crate::launcher::Launcher;
use arrival::Arrival;

/// Where the machine comes from or goes to.
#[derive(Default)]
pub(crate) struct Migrations {
    /// Switch that cancels the migration that was begun last.
    cancel: Mutex<Option<watch::Sender<bool>>>,
    /// What comes.
    arrival: tokio::sync::Mutex<Arrival>,
}

impl Launcher {
    /// Whether this launcher was prepared to receive a machine.
    pub(crate) async fn is_target(&self) -> bool {
        !matches!(*self.migrations.arrival.lock().await, Arrival::Nothing)
    }

    /// Whether the machine is on its way, from here or to here.
    pub(crate) fn is_moving(&self) -> bool {
        let intent = self.intent();
        intent.migrating || intent.migrated || intent.arriving
    }
}

fn state(vmi: &VirtualMachineInstance) -> Option<&MigrationState> {
    vmi.status.as_ref()?.migration_state.as_ref()
}

/// UID of the migration that the VMI tells of; between clusters, the source's.
fn migration_uid(vmi: &VirtualMachineInstance) -> Option<&str> {
    let state = state(vmi)?;
    let uid = match &state.source_state {
        Some(source) => source.migration_uid.as_deref(),
        None => state.migration_uid.as_deref(),
    };
    uid.filter(|uid| !uid.is_empty())
}

/// What names the sockets: the UID of the VMI on the source, which between clusters is another than the target's.
fn socket_key(vmi: &VirtualMachineInstance) -> &str {
    let source = state(vmi).and_then(|state| state.source_state.as_ref());
    let elsewhere = source.and_then(|source| source.virtual_machine_instance_uid.as_deref());
    elsewhere.filter(|uid| !uid.is_empty()).or(vmi.metadata.uid.as_deref()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn between_clusters_the_source_gives_the_names() {
        let vmi = |state: serde_json::Value| -> VirtualMachineInstance {
            let vmi = json!({
                "metadata": { "name": "a", "uid": "here" },
                "spec": { "domain": { "devices": {} } },
                "status": { "migrationState": state },
            });
            serde_json::from_value(vmi).unwrap()
        };
        let cases = [
            (json!(null), None, "here"),
            (json!({}), None, "here"),
            (json!({ "migrationUid": "" }), None, "here"),
            (json!({ "migrationUid": "m" }), Some("m"), "here"),
            (
                json!({
                    "migrationUid": "m",
                    "sourceState": { "migrationUID": "s", "virtualMachineInstanceUID": "there" },
                }),
                Some("s"),
                "there",
            ),
        ];
        for (state, uid, key) in cases {
            let vmi = vmi(state);
            assert_eq!((migration_uid(&vmi), socket_key(&vmi)), (uid, key), "{vmi:?}");
        }
    }
}
