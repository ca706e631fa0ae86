//! Lends a machine and its instance the volume that a memory dump is written to, and takes it back.

use kubevirt_api::names::{annotations, reasons};
use kubevirt_api::vm::status::{MemoryDumpPhase, MemoryDumpRequest};
use kubevirt_api::vmi::status::VmiPhase;
use kubevirt_api::vmi::volumes::{MemoryDumpVolumeSource, Volume};
use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec};

use crate::vm::observe::Observed;
use crate::vm::plan::{Failure, Plan, Step};
use crate::vm::view;

/// What a claim is marked with whose dump failed.
const FAILED: &str = "Memory dump failed";

/// Does what the phase of a requested dump asks for.
pub fn apply(seen: &Observed, plan: &mut Plan) -> Result<(), Failure> {
    let Some(dump) = plan.status().memory_dump_request.clone() else { return Ok(()) };
    let template = plan.machine.spec.template.spec.get_or_insert_default();
    let vmi = plan.instance.as_mut();
    match dump.phase {
        MemoryDumpPhase::Associating => {
            if let Some(vmi) = vmi.filter(|vmi| is_up(vmi)) {
                lend(template, &dump.claim_name);
                lend(&mut vmi.spec, &dump.claim_name);
            }
        }
        MemoryDumpPhase::Unmounting | MemoryDumpPhase::Failed => {
            take_back(vmi.map(|vmi| &mut vmi.spec), &dump.claim_name);
            plan.steps.extend(mark(seen, &dump)?);
        }
        MemoryDumpPhase::Dissociating => {
            take_back(Some(template), &dump.claim_name);
            take_back(vmi.map(|vmi| &mut vmi.spec), &dump.claim_name);
        }
        _ => {}
    }
    Ok(())
}

fn is_up(vmi: &VirtualMachineInstance) -> bool {
    view::is_in(vmi, VmiPhase::Running) && !view::is_deleting(&vmi.metadata)
}

fn lend(spec: &mut VirtualMachineInstanceSpec, claim: &str) {
    let volumes = spec.volumes.get_or_insert_default();
    if !volumes.iter().any(|volume| volume.name == claim) {
        let source = MemoryDumpVolumeSource {
            claim_name: claim.to_owned(),
            hotpluggable: Some(true),
            ..MemoryDumpVolumeSource::default()
        };
        volumes.push(Volume { name: claim.to_owned(), memory_dump: Some(source), ..Volume::default() });
    }
}

fn take_back(spec: Option<&mut VirtualMachineInstanceSpec>, claim: &str) {
    if let Some(volumes) = spec.and_then(|spec| spec.volumes.as_mut()) {
        volumes.retain(|volume| volume.name != claim);
    }
}

/// The claim tells which dump it holds, also when the machine no longer does.
fn mark(seen: &Observed, dump: &MemoryDumpRequest) -> Result<Option<Step>, Failure> {
    let Some(claim) = seen.claims.get(&dump.claim_name) else {
        return Err(Failure::new(
            reasons::vm::MEMORY_DUMP_ERROR,
            format!("the claim {:?} of the memory dump does not exist", dump.claim_name),
        ));
    };
    let outcome = match dump.phase {
        MemoryDumpPhase::Failed => Some(FAILED.to_owned()),
        _ => dump.file_name.clone(),
    };
    let marked = view::annotation(&claim.metadata, annotations::MEMORY_DUMP);
    let outcome = outcome.filter(|outcome| marked != Some(outcome));
    Ok(outcome.map(|outcome| Step::MarkDump { claim: dump.claim_name.clone(), outcome }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::vm::testing::{machine, read, seen, shared};

    #[test]
    fn the_volume_is_lent_and_taken_back() {
        let volume = json!({ "name": "c", "memoryDump": { "claimName": "c", "hotpluggable": true } });
        let list = |there: bool| if there { json!([volume]) } else { json!([]) };
        let cases = [
            ("Associating", "Running", false, true, true, 0),
            ("Associating", "Scheduled", false, false, false, 0),
            ("InProgress", "Running", true, true, true, 0),
            ("Unmounting", "Running", true, true, false, 1),
            ("Failed", "Running", true, true, false, 1),
            ("Completed", "Running", true, true, true, 0),
            ("Dissociating", "Running", true, false, false, 0),
        ];
        for (phase, of_instance, before, template, instance, steps) in cases {
            let spec = json!({ "domain": { "devices": {} }, "volumes": list(before) });
            let mut seen = seen(machine(json!({
                "spec": { "template": { "spec": spec } },
                "status": { "memoryDumpRequest": { "claimName": "c", "phase": phase, "fileName": "f" } },
            })));
            seen.claims.insert("c".to_owned(), shared(json!({})));
            let mut plan = Plan::keeping(&seen);
            plan.instance = Some(read(json!({ "spec": spec, "status": { "phase": of_instance } })));
            apply(&seen, &mut plan).unwrap();
            let case = format!("{phase} {of_instance}");
            assert_eq!(json!(plan.machine.spec.template.spec.unwrap().volumes), list(template), "{case}");
            assert_eq!(json!(plan.instance.unwrap().spec.volumes), list(instance), "{case}");
            assert_eq!(plan.steps.len(), steps, "{case}");
        }
    }
}
