//! How far an exchange of a machine's volumes is, and when it needs the user's hand.

use jiff::Timestamp;
use kubevirt_api::condition::Condition;
use kubevirt_api::names::conditions::{vm as of_vm, vmi as of_vmi};
use kubevirt_api::names::reasons;
use kubevirt_api::vm::status::{VirtualMachineStatus, VolumeMigrationState};
use kubevirt_api::vm::{UpdateVolumesStrategy, VirtualMachine};
use kubevirt_api::vmi::VirtualMachineInstance;

use super::conditions;
use crate::vm::view;

/// Ends an exchange that was taken back, and notes one that was cut short. To be called before the conditions of the
/// instance are taken over: what the machine still says of it is compared with what the instance says.
pub fn follow(
    status: &mut VirtualMachineStatus,
    vm: &VirtualMachine,
    vmi: Option<&VirtualMachineInstance>,
    now: Timestamp,
) {
    let Some(state) = status.volume_update_state.as_ref().and_then(|all| all.volume_migration_state.as_ref())
    else {
        return;
    };
    let wanted = vm.spec.update_volumes_strategy == Some(UpdateVolumesStrategy::Migration);
    if !wanted || is_taken_back(vm, state) {
        forget(status);
        conditions::remove(status, of_vmi::VOLUMES_CHANGE);
        conditions::remove(status, of_vm::MANUAL_RECOVERY_REQUIRED);
        return;
    }
    let Some(vmi) = vmi.filter(|vmi| !view::is_final(vmi)) else {
        if conditions::holds(status, of_vmi::VOLUMES_CHANGE) {
            conditions::set(status, cut_short(now));
        }
        return;
    };
    let cancelled = view::condition(vmi, of_vmi::VOLUMES_CHANGE).is_some_and(|change| {
        change.status == "False"
            && change.reason.as_deref() == Some(reasons::vmi::VOLUMES_CHANGE_CANCELLATION)
    });
    if cancelled {
        forget(status);
    }
}

fn forget(status: &mut VirtualMachineStatus) {
    if let Some(state) = &mut status.volume_update_state {
        state.volume_migration_state = None;
    }
}

/// Whether each volume of the exchange has its old claim again.
fn is_taken_back(vm: &VirtualMachine, state: &VolumeMigrationState) -> bool {
    state.migrated_volumes.iter().flatten().all(|migrated| {
        let source = migrated.source_pvc_info.as_ref().and_then(|info| info.claim_name.as_deref());
        let volume = view::volumes(vm).iter().find(|volume| volume.name == migrated.volume_name);
        source.is_none() || volume.is_none_or(|volume| view::claim_name(volume) == source)
    })
}

fn cut_short(now: Timestamp) -> Condition {
    Condition {
        type_: of_vm::MANUAL_RECOVERY_REQUIRED.to_owned(),
        status: "True".to_owned(),
        reason: Some("VMI was removed or was final during the volume migration".to_owned()),
        last_transition_time: Some(view::second(now)),
        ..Condition::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::testing::{at, machine, read};
    use serde_json::{Value, json};

    #[test]
    fn an_exchange_ends_well_is_taken_back_or_needs_a_hand() {
        let status = json!({
            "volumeUpdateState": { "volumeMigrationState": { "migratedVolumes": [{
                "volumeName": "v", "sourcePVCInfo": { "claimName": "old" }, "destinationPVCInfo": { "claimName": "new" },
            }] } },
            "conditions": [{ "type": "VolumesChange", "status": "True" }],
        });
        let vm = |claim: &str, strategy: &str| {
            let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": claim } }]);
            machine(
                json!({ "spec": { "updateVolumesStrategy": strategy, "template": { "spec": { "volumes": volumes } } } }),
            )
        };
        let running = json!({ "status": { "phase": "Running" } });
        let cancelled = json!({ "status": { "phase": "Running", "conditions": [
            { "type": "VolumesChange", "status": "False", "reason": "VolumesChangeCancellation" }] } });
        let failed = json!({ "status": { "phase": "Failed" } });
        let cases = [
            ("under way", vm("new", "Migration"), Some(running.clone()), true, false),
            ("taken back", vm("old", "Migration"), Some(running.clone()), false, false),
            ("another strategy", vm("new", "Replacement"), Some(running), false, false),
            ("cancelled", vm("new", "Migration"), Some(cancelled), false, false),
            ("failed", vm("new", "Migration"), Some(failed), true, true),
            ("gone", vm("new", "Migration"), None, true, true),
        ];
        for (case, vm, vmi, still, hand) in cases {
            let mut status: VirtualMachineStatus = read(status.clone());
            let vmi: Option<VirtualMachineInstance> = vmi.map(|vmi: Value| read(vmi));
            follow(&mut status, &vm, vmi.as_ref(), at(0));
            assert_eq!(
                status.volume_update_state.clone().unwrap().volume_migration_state.is_some(),
                still,
                "{case}"
            );
            assert_eq!(conditions::holds(&status, of_vm::MANUAL_RECOVERY_REQUIRED), hand, "{case}");
        }
    }
}
