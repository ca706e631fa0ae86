//! Exchanges the claims of a running instance for those of the template; a migration copies the data.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kubevirt_api::condition::Condition;
use kubevirt_api::data_volume::DataVolumePhase;
use kubevirt_api::names;
use kubevirt_api::names::reasons;
use kubevirt_api::vm::UpdateVolumesStrategy;
use kubevirt_api::vm::status::VolumeMigrationState;
use kubevirt_api::vmi::status::{PersistentVolumeClaimInfo, StorageMigratedVolumeInfo};
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec};

use crate::vm::observe::Observed;
use crate::vm::plan::{Failure, Plan};
use crate::vm::status::conditions;
use crate::vm::view;

const CHANGE: &str = names::conditions::vmi::VOLUMES_CHANGE;

/// Claims by the volumes that have another one in the template.
type Changed = BTreeMap<String, String>;

/// Begins an exchange, or takes one back.
pub fn apply(seen: &Observed, plan: &mut Plan, now: Timestamp) -> Result<(), Failure> {
    let Some(vmi) = &mut plan.instance else { return Ok(()) };
    let template = plan.machine.spec.template.spec.get_or_insert_default();
    let changed = changed(template, &vmi.spec);
    if view::condition_is(vmi, CHANGE, "True") && concerns_exchange(vmi, &changed) {
        return take_back(template, vmi, &changed, now);
    }
    if seen.vm.spec.update_volumes_strategy != Some(UpdateVolumesStrategy::Migration) || changed.is_empty() {
        return Ok(());
    }
    match obstacle(seen, template, vmi, &changed) {
        Some(Obstacle::Missing(what)) => {
            let why = format!("{what}, which the data is to be copied to, does not exist");
            set_change(vmi, "", &why, now);
            return Ok(());
        }
        Some(Obstacle::Fixed(why)) => {
            conditions::require_restart(plan.status(), &why, now);
            return Ok(());
        }
        None => remove_change(vmi),
    }
    let moved: Vec<StorageMigratedVolumeInfo> =
        changed.iter().map(|(volume, claim)| moved(seen, &vmi.spec, volume, claim)).collect();
    let status = vmi.status.get_or_insert_default();
    if status.migrated_volumes.as_ref().is_none_or(Vec::is_empty) {
        status.migrated_volumes = Some(moved.clone());
    }
    point(template, vmi);
    let state = plan.machine.status.get_or_insert_default().volume_update_state.get_or_insert_default();
    state.volume_migration_state = Some(VolumeMigrationState { migrated_volumes: Some(moved) });
    Ok(())
}

/// Tells an instance that waits as receiver which claims its guest's disks are to be written to.
pub fn receive(seen: &Observed, plan: &mut Plan) {
    let Some(vmi) = &mut plan.instance else { return };
    if view::has_migrated(vmi) {
        return;
    }
    let status = vmi.status.get_or_insert_default();
    if status.migrated_volumes.as_ref().is_some_and(|all| !all.is_empty()) {
        return;
    }
    let volumes = view::volumes(&plan.machine).iter().filter_map(|volume| {
        let claim = view::claim_name(volume)?;
        seen.claims.get(claim)?;
        Some(StorageMigratedVolumeInfo {
            volume_name: volume.name.clone(),
            destination_pvc_info: Some(info(seen, claim)),
            source_pvc_info: None,
        })
    });
    let volumes: Vec<StorageMigratedVolumeInfo> = volumes.collect();
    if !volumes.is_empty() {
        status.migrated_volumes = Some(volumes);
    }
}

fn changed(template: &VirtualMachineInstanceSpec, running: &VirtualMachineInstanceSpec) -> Changed {
    let running: BTreeMap<&str, &str> = claims(running).collect();
    let differs = |(name, claim): &(&str, &str)| running.get(name).is_some_and(|old| old != claim);
    claims(template).filter(differs).map(|(name, claim)| (name.to_owned(), claim.to_owned())).collect()
}

fn claims(spec: &VirtualMachineInstanceSpec) -> impl Iterator<Item = (&str, &str)> {
    let volumes = spec.volumes.iter().flatten();
    volumes.filter_map(|volume| Some((volume.name.as_str(), view::claim_name(volume)?)))
}

fn under_way(vmi: &VirtualMachineInstance) -> &[StorageMigratedVolumeInfo] {
    vmi.status.as_ref().and_then(|status| status.migrated_volumes.as_deref()).unwrap_or_default()
}

fn concerns_exchange(vmi: &VirtualMachineInstance, changed: &Changed) -> bool {
    under_way(vmi).iter().any(|volume| changed.contains_key(&volume.volume_name))
}

/// An exchange that is under way can only be taken back as a whole.
fn take_back(
    template: &VirtualMachineInstanceSpec,
    vmi: &mut VirtualMachineInstance,
    changed: &Changed,
    now: Timestamp,
) -> Result<(), Failure> {
    let is_back = |volume: &StorageMigratedVolumeInfo| {
        let source = volume.source_pvc_info.as_ref().and_then(|info| info.claim_name.as_ref());
        source.is_some() && changed.get(&volume.volume_name) == source
    };
    if !under_way(vmi).iter().all(is_back) || under_way(vmi).len() != changed.len() {
        return Err(Failure::new(
            reasons::vm::VOLUMES_UPDATE_ERROR,
            "volumes that are being exchanged can only be given their old claims back, all of them at once",
        ));
    }
    point(template, vmi);
    set_change(vmi, reasons::vmi::VOLUMES_CHANGE_CANCELLATION, "", now);
    vmi.status.get_or_insert_default().migrated_volumes = None;
    Ok(())
}

/// Points the volumes of an exchange to the claims of the template.
fn point(template: &VirtualMachineInstanceSpec, vmi: &mut VirtualMachineInstance) {
    let names: Vec<String> = under_way(vmi).iter().map(|volume| volume.volume_name.clone()).collect();
    for volume in vmi.spec.volumes.iter_mut().flatten().filter(|volume| names.contains(&volume.name)) {
        let wanted = template.volumes.iter().flatten().find(|wanted| wanted.name == volume.name);
        if let Some(wanted) = wanted {
            volume.clone_from(wanted);
        }
    }
}

fn set_change(vmi: &mut VirtualMachineInstance, reason: &str, message: &str, now: Timestamp) {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let new = Condition {
        type_: CHANGE.to_owned(),
        status: "False".to_owned(),
        reason: text(reason),
        message: text(message),
        last_transition_time: Some(view::second(now)),
        ..Condition::default()
    };
    let all = vmi.status.get_or_insert_default().conditions.get_or_insert_default();
    match all.iter_mut().find(|old| old.type_ == CHANGE) {
        Some(old) if old.status == new.status && old.reason == new.reason => {}
        Some(old) => *old = new,
        None => all.push(new),
    }
}

fn remove_change(vmi: &mut VirtualMachineInstance) {
    if let Some(all) = vmi.status.as_mut().and_then(|status| status.conditions.as_mut()) {
        all.retain(|condition| condition.type_ != CHANGE);
    }
}

/// What keeps volumes from being exchanged.
enum Obstacle {
    /// A claim or DataVolume is yet to come.
    Missing(String),
    /// It cannot be done while the guest runs.
    Fixed(String),
}

fn obstacle(
    seen: &Observed,
    template: &VirtualMachineInstanceSpec,
    vmi: &VirtualMachineInstance,
    changed: &Changed,
) -> Option<Obstacle> {
    let concerned = template.volumes.iter().flatten().filter(|volume| changed.contains_key(&volume.name));
    let of_volume = concerned.filter_map(|volume| obstacle_of(seen, &vmi.spec, volume)).next();
    of_volume.or_else(|| obstacle_to_migration(vmi, changed))
}

fn obstacle_of(seen: &Observed, running: &VirtualMachineInstanceSpec, volume: &Volume) -> Option<Obstacle> {
    let name = &volume.name;
    let devices = &running.domain.devices;
    let fixed =
        |why: &str| Some(Obstacle::Fixed(format!("the volume {name:?} cannot be exchanged live: {why}")));
    if devices.filesystems.iter().flatten().any(|filesystem| filesystem.name == *name) {
        return fixed("it is a file system");
    }
    let disk = devices.disks.iter().flatten().find(|disk| disk.name == *name)?;
    if disk.shareable == Some(true) {
        return fixed("it is shareable");
    }
    if disk.lun.is_some() {
        return fixed("it is a LUN");
    }
    let claim = view::claim_name(volume)?;
    let missing = |kind: &str| Some(Obstacle::Missing(format!("the {kind} {claim:?}")));
    let existing = seen.claims.get(claim);
    if volume.data_volume.is_none() {
        return if existing.is_none() { missing("PersistentVolumeClaim") } else { None };
    }
    let Some(data_volume) = seen.data_volumes.get(claim) else { return missing("DataVolume") };
    let phase = data_volume.status.as_ref().and_then(|status| status.phase.as_ref());
    if phase == Some(&DataVolumePhase::Succeeded) {
        return None;
    }
    match existing {
        None => missing("PersistentVolumeClaim"),
        Some(claim) if has_populator(claim) => None,
        Some(_) => fixed("its DataVolume is not filled by a volume populator"),
    }
}

fn has_populator(claim: &PersistentVolumeClaim) -> bool {
    claim.spec.as_ref().is_some_and(|spec| spec.data_source_ref.is_some())
}

fn obstacle_to_migration(vmi: &VirtualMachineInstance, changed: &Changed) -> Option<Obstacle> {
    let migratable = view::condition(vmi, names::conditions::vmi::STORAGE_LIVE_MIGRATABLE);
    if let Some(not) = migratable.filter(|condition| condition.status == "False") {
        let why = not.message.as_deref().unwrap_or_default();
        return Some(Obstacle::Fixed(format!("volumes cannot be exchanged live: {why}")));
    }
    let volumes = vmi.status.as_ref().and_then(|status| status.volume_status.as_deref()).unwrap_or_default();
    let left_behind = volumes.iter().find(|volume| {
        let claim = volume.persistent_volume_claim_info.as_ref();
        let modes = claim.and_then(|claim| claim.access_modes.as_deref()).unwrap_or_default();
        let shared = modes.iter().any(|mode| mode == "ReadWriteMany");
        // The state of firmware and TPM moves by itself.
        let state = volume.name.starts_with(STATE_VOLUME);
        claim.is_some() && !shared && !state && !changed.contains_key(&volume.name)
    });
    left_behind.map(|volume| {
        let name = &volume.name;
        Obstacle::Fixed(format!(
            "volumes cannot be exchanged live: {name:?} is for one node and not among them"
        ))
    })
}

/// How volumes with the state of a machine's firmware and TPM are called.
const STATE_VOLUME: &str = "persistent-state-for-";

fn moved(
    seen: &Observed,
    running: &VirtualMachineInstanceSpec,
    volume: &str,
    claim: &str,
) -> StorageMigratedVolumeInfo {
    let source = claims(running).find(|(name, _)| *name == volume).map(|(_, claim)| info(seen, claim));
    StorageMigratedVolumeInfo {
        volume_name: volume.to_owned(),
        source_pvc_info: source,
        destination_pvc_info: Some(info(seen, claim)),
    }
}

fn info(seen: &Observed, claim: &str) -> PersistentVolumeClaimInfo {
    let existing = seen.claims.get(claim);
    let spec = existing.and_then(|claim| claim.spec.as_ref());
    PersistentVolumeClaimInfo {
        claim_name: Some(claim.to_owned()),
        volume_mode: spec.and_then(|spec| spec.volume_mode.clone()),
        access_modes: spec.and_then(|spec| spec.access_modes.clone()),
        requests: spec.and_then(|spec| spec.resources.as_ref()?.requests.clone()),
        capacity: existing.and_then(|claim| claim.status.as_ref()?.capacity.clone()),
        ..PersistentVolumeClaimInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::vm::testing::{at, machine, patched, read, seen, shared};

    fn spec(claim: &str) -> Value {
        let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": claim } });
        json!({ "domain": { "devices": { "disks": [{ "name": "v" }] } }, "volumes": [volume] })
    }

    fn after(claim: &str, vmi: Value) -> (Result<(), Failure>, Plan) {
        let mut seen = seen(machine(json!({
            "spec": { "updateVolumesStrategy": "Migration", "template": { "spec": spec(claim) } },
        })));
        for name in ["old", "new"] {
            let claim = json!({ "spec": { "accessModes": ["ReadWriteOnce"] } });
            seen.claims.insert(name.to_owned(), shared(claim));
        }
        let mut plan = Plan::keeping(&seen);
        plan.instance = Some(read(patched(&json!({ "spec": spec("old") }), &vmi)));
        let result = apply(&seen, &mut plan, at(0));
        (result, plan)
    }

    fn claim_of(plan: &Plan) -> String {
        claims(&plan.instance.as_ref().unwrap().spec).next().unwrap().1.to_owned()
    }

    #[test]
    fn an_exchange_tells_the_instance_both_claims() {
        let (result, mut plan) = after("new", json!({}));
        assert_eq!(result, Ok(()));
        assert_eq!(claim_of(&plan), "new");
        let moved = json!(plan.instance.as_ref().unwrap().status.as_ref().unwrap().migrated_volumes);
        assert_eq!(moved[0]["sourcePVCInfo"]["claimName"], "old");
        assert_eq!(moved[0]["destinationPVCInfo"]["claimName"], "new");
        assert!(plan.status().volume_update_state.is_some());
        assert_eq!(claim_of(&after("old", json!({})).1), "old");
    }

    #[test]
    fn what_cannot_be_exchanged_waits_or_needs_a_restart() {
        let (result, mut plan) = after("missing", json!({}));
        assert_eq!((result, claim_of(&plan)), (Ok(()), "old".to_owned()));
        assert!(view::condition_is(plan.instance.as_ref().unwrap(), CHANGE, "False"));
        assert!(plan.status().conditions.is_none());
        let shareable =
            json!({ "spec": { "domain": { "devices": { "disks": [{ "name": "v", "shareable": true }] } } } });
        let (result, mut plan) = after("new", shareable);
        assert_eq!((result, claim_of(&plan)), (Ok(()), "old".to_owned()));
        assert!(conditions::holds(plan.status(), names::conditions::vm::RESTART_REQUIRED));
    }

    #[test]
    fn an_exchange_under_way_can_be_taken_back_but_not_redirected() {
        let under_way = json!({
            "spec": spec("new"),
            "status": {
                "conditions": [{ "type": "VolumesChange", "status": "True" }],
                "migratedVolumes": [{ "volumeName": "v", "sourcePVCInfo": { "claimName": "old" } }],
            },
        });
        let (result, plan) = after("old", under_way.clone());
        assert_eq!((result, claim_of(&plan)), (Ok(()), "old".to_owned()));
        assert!(view::condition_is(plan.instance.as_ref().unwrap(), CHANGE, "False"));
        let (result, plan) = after("third", under_way);
        assert!(result.is_err());
        assert_eq!(claim_of(&plan), "new");
    }
}
