//! How far a memory dump is: its volume joins the machine, is written, leaves, and may be forgotten.

use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::{MemoryDumpPhase, MemoryDumpRequest};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{VolumePhase, VolumeStatus};

use crate::vm::view;

/// The dump after a look at the machine's volumes and at those of its instance.
pub fn after(
    dump: Option<MemoryDumpRequest>,
    vm: &VirtualMachine,
    vmi: Option<&VirtualMachineInstance>,
) -> Option<MemoryDumpRequest> {
    let mut dump = dump?;
    let volume = vmi.and_then(|vmi| volume_of(vmi, &dump.claim_name));
    let in_template = view::volumes(vm).iter().any(|volume| volume.name == dump.claim_name);
    let removed = dump.remove == Some(true);
    match dump.phase {
        MemoryDumpPhase::Dissociating => {
            return (volume.is_some() || in_template).then_some(dump);
        }
        _ if removed => dump.phase = MemoryDumpPhase::Dissociating,
        MemoryDumpPhase::Associating if in_template => dump.phase = MemoryDumpPhase::InProgress,
        MemoryDumpPhase::InProgress => progress(&mut dump, volume),
        MemoryDumpPhase::Unmounting if volume.is_none() => dump.phase = MemoryDumpPhase::Completed,
        _ => {}
    }
    Some(dump)
}

fn volume_of<'a>(vmi: &'a VirtualMachineInstance, name: &str) -> Option<&'a VolumeStatus> {
    vmi.status.as_ref()?.volume_status.iter().flatten().find(|volume| volume.name == name)
}

fn progress(dump: &mut MemoryDumpRequest, volume: Option<&VolumeStatus>) {
    let Some((volume, written)) =
        volume.and_then(|volume| Some((volume, volume.memory_dump_volume.as_ref()?)))
    else {
        return;
    };
    if written.start_timestamp.is_some() {
        dump.start_timestamp.clone_from(&written.start_timestamp);
    }
    match volume.phase {
        Some(VolumePhase::MemoryDumpCompleted) => {
            dump.phase = MemoryDumpPhase::Unmounting;
            dump.end_timestamp.clone_from(&written.end_timestamp);
            dump.file_name = Some(written.target_file_name.clone().unwrap_or_default());
        }
        Some(VolumePhase::MemoryDumpFailed) => {
            dump.phase = MemoryDumpPhase::Failed;
            dump.end_timestamp.clone_from(&written.end_timestamp);
            dump.message.clone_from(&volume.message);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::testing::{machine, read};
    use serde_json::{Value, json};

    #[test]
    fn a_dump_takes_its_course() {
        let on = |phase: &str| {
            json!({ "name": "c", "target": "", "phase": phase,
            "memoryDumpVolume": { "targetFileName": "f" } })
        };
        let dump = |phase: &str| json!({ "claimName": "c", "phase": phase });
        let removed = |phase: &str| json!({ "claimName": "c", "phase": phase, "remove": true });
        let none = Value::Null;
        let cases = [
            (dump("Associating"), false, none.clone(), json!("Associating")),
            (dump("Associating"), true, none.clone(), json!("InProgress")),
            (dump("InProgress"), true, none.clone(), json!("InProgress")),
            (dump("InProgress"), true, on("MemoryDumpInProgress"), json!("InProgress")),
            (dump("InProgress"), true, on("MemoryDumpCompleted"), json!("Unmounting")),
            (dump("InProgress"), true, on("MemoryDumpFailed"), json!("Failed")),
            (dump("Unmounting"), true, on("MemoryDumpCompleted"), json!("Unmounting")),
            (dump("Unmounting"), true, none.clone(), json!("Completed")),
            (dump("Completed"), true, none.clone(), json!("Completed")),
            (removed("Completed"), true, none.clone(), json!("Dissociating")),
            (removed("InProgress"), true, on("MemoryDumpInProgress"), json!("Dissociating")),
            (removed("Dissociating"), true, none.clone(), json!("Dissociating")),
            (removed("Dissociating"), false, on("Detaching"), json!("Dissociating")),
            (removed("Dissociating"), false, none, Value::Null),
        ];
        for (before, in_template, volume, expected) in cases {
            let volumes = if in_template { json!([{ "name": "c" }]) } else { json!([]) };
            let vm = machine(json!({ "spec": { "template": { "spec": { "volumes": volumes } } } }));
            let statuses = if volume.is_null() { json!([]) } else { json!([volume]) };
            let vmi = read(json!({ "status": { "volumeStatus": statuses } }));
            let after = after(read(before.clone()), &vm, Some(&vmi));
            assert_eq!(json!(after.map(|dump| dump.phase)), expected, "{before} {volume}");
        }
    }
}
