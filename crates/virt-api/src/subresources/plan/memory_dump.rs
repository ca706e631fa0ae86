//! Dumping the memory of a machine to a claim, and letting the claim go.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kubevirt_api::quantity::{Amount, Format, QuantityExt, format_of};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::{MemoryDumpPhase, MemoryDumpRequest};
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};

use super::{VMI_NOT_RUNNING, is_running, name_of};
use crate::subresources::change::{Change, Target};
use crate::subresources::failure::{About, Failure};
use crate::subresources::seen::Seen;

const REQUEST: &str = "/status/memoryDumpRequest";
/// What a dump has beside the memory, in bytes.
const OVERHEAD: i64 = 100 << 20;
const MIB: i128 = 1 << 20;
/// The share of a file system that is not for files, where the importer says nothing else: 5.5 %.
const USUAL_SHARE: &str = "0.055";

/// The claim to dump to: the one that is asked for, or the one of the last dump.
pub fn claim(vm: &VirtualMachine, asked: &str) -> Result<String, Failure> {
    match (current(vm), asked) {
        (None, "") => Err(Failure::bad_request("Memory dump requires claim name to be set")),
        (None, asked) => Ok(asked.to_owned()),
        (Some(current), "") => Ok(current.claim_name.clone()),
        (Some(current), asked) if current.claim_name == asked => Ok(asked.to_owned()),
        (Some(current), asked) => Err(Failure::conflict(
            About::Machine,
            name_of(vm),
            format!(
                "can't request memory dump for pvc [{asked}] while pvc [{}] is still associated as the memory dump pvc",
                current.claim_name
            ),
        )),
    }
}

/// Whether a claim can hold the memory of an instance. `share` is that of its file system which is not for files.
pub fn check(
    vmi: &VirtualMachineInstance,
    claim: &PersistentVolumeClaim,
    share: Option<&str>,
) -> Result<(), Failure> {
    let conflict = |why: String| Failure::conflict(About::Claim, name_of(claim), why);
    if !is_running(vmi) {
        return Err(Failure::conflict(About::Instance, name_of(vmi), VMI_NOT_RUNNING));
    }
    let spec = claim.spec.clone().unwrap_or_default();
    if spec.volume_mode.as_deref() == Some("Block") {
        return Err(conflict("pvc should be filesystem pvc".into()));
    }
    let modes = spec.access_modes.unwrap_or_default();
    if !modes.is_empty() && modes.iter().all(|mode| mode == "ReadOnlyMany") {
        return Err(conflict("pvc access mode can't be read only".into()));
    }
    let asked = spec.resources.and_then(|resources| resources.requests?.remove("storage"));
    let size = asked.map(|size| size.amount()).transpose().map_err(Failure::internal)?.unwrap_or_default();
    let (needed, format) = needed(vmi, share.unwrap_or(USUAL_SHARE))?;
    if size < needed {
        return Err(conflict(format!(
            "pvc size [{}] should be bigger then [{}]",
            size.to_quantity(format).0,
            needed.to_quantity(format).0
        )));
    }
    Ok(())
}

/// How large a claim must be, and how the user writes sizes.
fn needed(vmi: &VirtualMachineInstance, share: &str) -> Result<(Amount, Format), Failure> {
    let domain = &vmi.spec.domain;
    let requests = domain.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let guest = domain.memory.as_ref().and_then(|memory| memory.guest.as_ref());
    let memory = requests.and_then(|requests| requests.get("memory")).or(guest);
    let format = memory.map_or(Format::BinarySi, |memory| format_of(&memory.0));
    let memory = memory.map(QuantityExt::amount).transpose().map_err(Failure::internal)?.unwrap_or_default();
    // Shares are written as decimals; exact to a millionth.
    let share: f64 = share.trim().parse().map_err(|error| {
        Failure::internal(format!("failed to parse filesystem overhead as float: {error}"))
    })?;
    let millionths = (share.clamp(0.0, 1.0) * 1e6).round() as i64;
    let whole = memory.checked_add(Amount::from_int(OVERHEAD));
    let whole = whole.and_then(|whole| whole.checked_mul_ratio(1_000_000 + millionths, 1_000_000));
    let bytes = whole.map(|whole| i128::from(whole.value())).unwrap_or(i128::from(i64::MAX));
    let aligned = (bytes + MIB - 1) / MIB * MIB;
    Ok((Amount::from_int(i64::try_from(aligned).unwrap_or(i64::MAX)), format))
}

/// The share of a claim's file system that is not for files, from the importer's configuration.
pub fn share(configuration: &Value, storage_class: Option<&str>) -> Result<String, Failure> {
    let overhead = &configuration["status"]["filesystemOverhead"];
    if overhead.is_null() {
        return Err(Failure::internal("CDI config not initialized"));
    }
    let own = storage_class.and_then(|class| overhead["storageClass"][class].as_str());
    Ok(own.or(overhead["global"].as_str()).unwrap_or(USUAL_SHARE).to_owned())
}

/// Asks for a dump.
pub fn dump(vm: &Seen<VirtualMachine>, claim: &str) -> Result<Change, Failure> {
    let conflict = |why: String| Failure::conflict(About::Machine, name_of(&**vm), why);
    match current(vm).map(|current| &current.phase) {
        Some(MemoryDumpPhase::Dissociating) => Err(conflict(format!(
            "can't dump memory for pvc [{claim}] a remove memory dump request is in progress"
        ))),
        None | Some(MemoryDumpPhase::Completed | MemoryDumpPhase::Failed) => {
            Ok(put(vm, json!({ "claimName": claim, "phase": MemoryDumpPhase::Associating })))
        }
        Some(_) => Err(conflict(format!("memory dump request for pvc [{claim}] already in progress"))),
    }
}

/// Lets the claim of a dump go.
pub fn remove(vm: &Seen<VirtualMachine>) -> Result<Change, Failure> {
    let name = name_of(&**vm);
    let conflict = |why: String| Failure::conflict(About::Machine, name, why);
    let current = current(vm).ok_or_else(|| {
        conflict(format!("can't remove memory dump association for vm {name}, no association found"))
    })?;
    if current.remove == Some(true) {
        return Err(conflict(format!(
            "memory dump remove request for pvc [{}] already exists",
            current.claim_name
        )));
    }
    let phase = MemoryDumpPhase::Dissociating;
    Ok(put(vm, json!({ "claimName": current.claim_name, "phase": phase, "remove": true })))
}

fn current(vm: &VirtualMachine) -> Option<&MemoryDumpRequest> {
    vm.status.as_ref()?.memory_dump_request.as_ref()
}

fn put(vm: &Seen<VirtualMachine>, request: Value) -> Change {
    let change = Change::of(Target::MachineStatus).asked_again();
    if vm.at("/status").is_null() {
        return change.first_status(vm, json!({ "memoryDumpRequest": request }));
    }
    change.unchanged(vm, REQUEST).put(vm, REQUEST, request)
}

#[cfg(test)]
mod tests {
    use super::super::testing::seen;
    use super::*;
    use crate::subresources::change::Race;

    fn vm(request: Value) -> Seen<VirtualMachine> {
        seen(
            json!({ "spec": { "template": {} }, "status": { "created": true, "memoryDumpRequest": request } }),
        )
    }

    fn in_phase(phase: &str) -> Seen<VirtualMachine> {
        vm(json!({ "claimName": "c", "phase": phase }))
    }

    fn words(failure: Failure) -> String {
        format!("{} {}", failure.code, failure.message.rsplit("\": ").next().unwrap())
    }

    #[test]
    fn the_claim_is_kept_until_it_is_let_go() {
        assert_eq!(claim(&vm(Value::Null), "c").unwrap(), "c");
        assert_eq!(claim(&in_phase("Completed"), "").unwrap(), "c");
        assert_eq!(claim(&in_phase("Completed"), "c").unwrap(), "c");
        assert_eq!(claim(&vm(Value::Null), "").unwrap_err().code, 400);
        let other = words(claim(&in_phase("Completed"), "d").unwrap_err());
        assert_eq!(
            other,
            "409 can't request memory dump for pvc [d] while pvc [c] is still associated as the memory dump pvc"
        );
    }

    #[test]
    fn one_dump_at_a_time() {
        let first = dump(&vm(Value::Null), "c").unwrap().operations;
        assert_eq!(first[0], json!({ "op": "test", "path": REQUEST, "value": null }));
        assert_eq!(
            first[1],
            json!({ "op": "add", "path": REQUEST, "value": { "claimName": "c", "phase": "Associating" } })
        );
        let no_status = seen(json!({ "spec": { "template": {} } }));
        let first = dump(&no_status, "c").unwrap().operations;
        assert_eq!(first[0], json!({ "op": "test", "path": "/status", "value": null }));
        for again in ["Completed", "Failed"] {
            assert_eq!(dump(&in_phase(again), "c").unwrap().operations[1]["op"], "replace");
        }
        for (phase, expected) in [
            ("InProgress", "409 memory dump request for pvc [c] already in progress"),
            ("Dissociating", "409 can't dump memory for pvc [c] a remove memory dump request is in progress"),
        ] {
            assert_eq!(words(dump(&in_phase(phase), "c").unwrap_err()), expected);
        }
    }

    #[test]
    fn a_claim_is_let_go_once() {
        let change = remove(&in_phase("Completed")).unwrap();
        let expected = json!({ "claimName": "c", "phase": "Dissociating", "remove": true });
        assert_eq!((&change.operations[1]["value"], change.race), (&expected, Race::Verbatim));
        let twice = vm(json!({ "claimName": "c", "phase": "Dissociating", "remove": true }));
        assert_eq!(
            words(remove(&twice).unwrap_err()),
            "409 memory dump remove request for pvc [c] already exists"
        );
        let none = words(remove(&vm(Value::Null)).unwrap_err());
        assert_eq!(none, "409 can't remove memory dump association for vm vm, no association found");
    }

    #[test]
    fn a_claim_must_hold_the_memory() {
        let vmi: VirtualMachineInstance = serde_json::from_value(json!({
            "metadata": { "name": "vm" },
            "spec": { "domain": { "devices": {}, "resources": { "requests": { "memory": "256Mi" } } } },
            "status": { "phase": "Running" },
        }))
        .unwrap();
        let claim = |mode: &str, access: &str, size: &str| -> PersistentVolumeClaim {
            serde_json::from_value(json!({ "metadata": { "name": "c" }, "spec": {
                "volumeMode": mode, "accessModes": [access], "resources": { "requests": { "storage": size } },
            } }))
            .unwrap()
        };
        // 356 MiB and 5.5 % of it.
        assert!(check(&vmi, &claim("Filesystem", "ReadWriteOnce", "376Mi"), None).is_ok());
        let cases = [
            (
                claim("Filesystem", "ReadWriteOnce", "375Mi"),
                "409 pvc size [375Mi] should be bigger then [376Mi]",
            ),
            (claim("Block", "ReadWriteOnce", "1Gi"), "409 pvc should be filesystem pvc"),
            (claim("Filesystem", "ReadOnlyMany", "1Gi"), "409 pvc access mode can't be read only"),
        ];
        for (claim, expected) in cases {
            assert_eq!(words(check(&vmi, &claim, None).unwrap_err()), expected);
        }
        assert!(check(&vmi, &claim("Filesystem", "ReadWriteOnce", "376Mi"), Some("0.5")).is_err());
        assert_eq!(
            check(&vmi, &claim("Filesystem", "ReadWriteOnce", "1Gi"), Some("x")).unwrap_err().code,
            500
        );
    }

    #[test]
    fn the_importer_knows_shares_by_storage_class() {
        let config = json!({ "status": { "filesystemOverhead": { "global": "0.06", "storageClass": { "fast": "0.1" } } } });
        assert_eq!(share(&config, Some("fast")).unwrap(), "0.1");
        assert_eq!(share(&config, Some("slow")).unwrap(), "0.06");
        assert_eq!(share(&config, None).unwrap(), "0.06");
        assert_eq!(share(&json!({}), None).unwrap_err().code, 500);
    }
}
