//! Whether an instance is ready for what is asked of its node.

use kubevirt_admission::{ClusterConfig, Gate};
use kubevirt_api::condition::Condition;
use kubevirt_api::names::conditions::vmi::{AGENT_CONNECTED, PAUSED};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{ChangedBlockTrackingState, VmiPhase};

use super::{VM_NOT_RUNNING, VMI_NOT_RUNNING, condition, is_running, name_of, phase};
use crate::subresources::failure::{About, Failure};
use crate::subresources::routes::{Line, Order, Question};

type Verdict = Result<(), Failure>;

const NO_ATTESTATION: &str = "Attestation not requested for VMI";

fn conflict(vmi: &VirtualMachineInstance, why: &str) -> Failure {
    Failure::conflict(About::Instance, name_of(vmi), why)
}

fn unless(wrong: bool, failure: impl FnOnce() -> Failure) -> Verdict {
    if wrong { Err(failure()) } else { Ok(()) }
}

/// Whether an order can be given.
pub fn order(order: Order, vmi: &VirtualMachineInstance) -> Verdict {
    let running = |why| unless(!is_running(vmi), || conflict(vmi, why));
    match order {
        Order::Pause => {
            running(VM_NOT_RUNNING)?;
            let probe = vmi.spec.liveness_probe.as_ref();
            unless(probe.is_some_and(|probe| probe.guest_agent_ping.is_none()), || {
                let why = "Pausing VMIs with a non-GuestAgentPing LivenessProbe is not supported";
                Failure::forbidden(About::Instance, name_of(vmi), why)
            })?;
            unless(condition(vmi, PAUSED).is_some(), || conflict(vmi, "VMI is already paused"))
        }
        Order::Unpause => {
            running(VMI_NOT_RUNNING)?;
            unless(condition(vmi, PAUSED).is_none(), || conflict(vmi, "VMI is not paused"))
        }
        Order::Freeze | Order::Backup => running(VM_NOT_RUNNING),
        Order::Unfreeze => running(VMI_NOT_RUNNING),
        Order::Reset => Ok(()),
        Order::SoftReboot => {
            running(VM_NOT_RUNNING)?;
            let paused = condition(vmi, PAUSED).is_some_and(Condition::is_true);
            unless(paused, || conflict(vmi, "VMI is paused"))?;
            let acpi = vmi.spec.domain.features.as_ref().and_then(|features| features.acpi.as_ref());
            let without = acpi.is_some_and(|acpi| acpi.enabled == Some(false));
            unless(without && condition(vmi, AGENT_CONNECTED).is_none(), || {
                conflict(vmi, "VMI neither have the agent connected nor the ACPI feature enabled")
            })
        }
        Order::RedefineCheckpoint => {
            let tracking = vmi.status.as_ref().and_then(|status| status.changed_block_tracking.as_ref());
            let enabled = tracking.is_some_and(|it| it.state == ChangedBlockTrackingState::Enabled);
            unless(!enabled, || conflict(vmi, "ChangedBlockTracking is not enabled"))
        }
        Order::InjectLaunchSecret => attested(vmi),
    }
}

/// Whether a machine lets its instance go on: not while a snapshot is taken of it.
pub fn unpause(vm: Option<&VirtualMachine>) -> Verdict {
    let snapshot = vm.and_then(|vm| vm.status.as_ref()?.snapshot_in_progress.as_ref());
    unless(snapshot.is_some(), || {
        let name = vm.map(name_of).unwrap_or_default();
        Failure::conflict(About::Machine, name, "VM snapshot is in progress")
    })
}

/// Whether a question has an answer.
pub fn question(question: Question, vmi: &VirtualMachineInstance) -> Verdict {
    match question {
        Question::GuestOsInfo | Question::UserList | Question::FilesystemList => {
            unless(!is_running(vmi), || conflict(vmi, VMI_NOT_RUNNING))?;
            unless(condition(vmi, AGENT_CONNECTED).is_none(), || {
                conflict(vmi, "VMI does not have guest agent connected")
            })
        }
        Question::Screenshot => screen(vmi),
        Question::FetchCertChain => {
            let placed = matches!(phase(vmi), Some(VmiPhase::Scheduled | VmiPhase::Running));
            unless(!placed, || conflict(vmi, "VMI is not assigned to a node yet"))?;
            unless(!wants_attestation(vmi), || conflict(vmi, NO_ATTESTATION))
        }
        Question::QueryLaunchMeasurement => attested(vmi),
    }
}

/// Whether a stream can be opened.
pub fn line(line: Line, vmi: &VirtualMachineInstance) -> Verdict {
    let devices = &vmi.spec.domain.devices;
    let running = || unless(!is_running(vmi), || Failure::bad_request(VMI_NOT_RUNNING));
    match line {
        Line::Console => {
            let none = devices.autoattach_serial_console == Some(false);
            unless(none, || Failure::bad_request("No serial consoles are present."))?;
            let failed = phase(vmi) == Some(&VmiPhase::Failed);
            unless(failed, || conflict(vmi, "VMI is in failed status"))?;
            running()
        }
        Line::Vnc => screen(vmi),
        Line::UsbRedir => {
            let architecture = vmi.spec.architecture.as_deref();
            unless(architecture == Some("s390x"), || conflict(vmi, "No USB support on s390x"))?;
            let none = devices.client_passthrough.is_none();
            unless(none, || conflict(vmi, "Not configured with USB Redirection"))?;
            running()
        }
        Line::Vsock => {
            let none = devices.autoattach_vsock != Some(true);
            unless(none, || Failure::bad_request("VSOCK is not attached."))
        }
    }
}

/// Whether a port can be forwarded.
pub fn port_forward(vmi: &VirtualMachineInstance) -> Verdict {
    unless(condition(vmi, PAUSED).is_some(), || conflict(vmi, "VMI is paused"))?;
    // The address of one that is gone may be somebody else's by now.
    unless(!is_running(vmi), || Failure::bad_request(VMI_NOT_RUNNING))
}

/// Whether the handler of its node knows an instance.
pub fn on_a_node(vmi: &VirtualMachineInstance) -> Result<&str, Failure> {
    let node = vmi.status.as_ref().and_then(|status| status.node_name.as_deref()).unwrap_or_default();
    let placed = matches!(phase(vmi), Some(VmiPhase::Scheduled | VmiPhase::Running));
    unless(!placed, || {
        Failure::bad_request(format!(
            "Unable to connect to VirtualMachineInstance because phase is {} instead of Running or Scheduled",
            phase(vmi).map(VmiPhase::as_str).unwrap_or_default(),
        ))
    })?;
    Ok(node)
}

/// Whether the cluster lets guests be attested.
pub fn sev_gate(config: &ClusterConfig) -> Verdict {
    let gate = Gate::WorkloadEncryptionSev;
    unless(!config.enabled(gate), || {
        Failure::bad_request(format!("'{}' feature gate is not enabled", gate.name()))
    })
}

fn screen(vmi: &VirtualMachineInstance) -> Verdict {
    let none = vmi.spec.domain.devices.autoattach_graphics_device == Some(false);
    unless(none, || Failure::bad_request("No graphics devices are present."))?;
    unless(!is_running(vmi), || Failure::bad_request(VMI_NOT_RUNNING))
}

/// Whether the owner asked to have the guest attested.
pub(super) fn wants_attestation(vmi: &VirtualMachineInstance) -> bool {
    let sev = vmi.spec.domain.launch_security.as_ref().and_then(|security| security.sev.as_ref());
    sev.is_some_and(|sev| sev.attestation.is_some())
}

pub(super) fn no_attestation(vmi: &VirtualMachineInstance) -> Failure {
    conflict(vmi, NO_ATTESTATION)
}

fn attested(vmi: &VirtualMachineInstance) -> Verdict {
    unless(!is_running(vmi), || conflict(vmi, VMI_NOT_RUNNING))?;
    unless(!wants_attestation(vmi), || no_attestation(vmi))?;
    unless(condition(vmi, PAUSED).is_none(), || conflict(vmi, "VMI is not paused"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn vmi(patch: Value) -> VirtualMachineInstance {
        let mut vmi = json!({
            "metadata": { "name": "vm", "namespace": "default" },
            "spec": { "domain": { "devices": {} } },
            "status": { "phase": "Running", "nodeName": "node01" },
        });
        json_patch_merge(&mut vmi, patch);
        serde_json::from_value(vmi).unwrap()
    }

    fn json_patch_merge(into: &mut Value, patch: Value) {
        match (into, patch) {
            (Value::Object(into), Value::Object(patch)) => {
                for (key, value) in patch {
                    json_patch_merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
            (into, patch) => *into = patch,
        }
    }

    fn with(conditions: &[&str]) -> Value {
        let all: Vec<_> = conditions.iter().map(|kind| json!({ "type": kind, "status": "True" })).collect();
        json!({ "status": { "conditions": all } })
    }

    fn short(verdict: Verdict) -> String {
        match verdict {
            Ok(()) => "ok".into(),
            Err(failure) => {
                let words = failure.message.rsplit("\": ").next().unwrap_or_default();
                format!("{} {}", failure.code, words.rsplit("forbidden: ").next().unwrap_or_default())
            }
        }
    }

    #[test]
    fn orders() {
        let off = json!({ "status": { "phase": "Scheduled" } });
        let probe = |kind: &str| json!({ "spec": { "livenessProbe": { kind: {} } } });
        let no_acpi = json!({ "spec": { "domain": { "features": { "acpi": { "enabled": false } } } } });
        let mut agent_no_acpi = no_acpi.clone();
        json_patch_merge(&mut agent_no_acpi, with(&["AgentConnected"]));
        let tracked = json!({ "status": { "changedBlockTracking": { "state": "Enabled" } } });
        let mut sev = json!({ "spec": { "domain": { "launchSecurity": { "sev": { "attestation": {} } } } } });
        json_patch_merge(&mut sev, with(&["Paused"]));
        let cases = [
            (Order::Pause, json!({}), "ok"),
            (Order::Pause, off.clone(), "409 VM is not running"),
            (Order::Pause, with(&["Paused"]), "409 VMI is already paused"),
            (Order::Pause, probe("guestAgentPing"), "ok"),
            (
                Order::Pause,
                probe("tcpSocket"),
                "403 Pausing VMIs with a non-GuestAgentPing LivenessProbe is not supported",
            ),
            (Order::Unpause, json!({}), "409 VMI is not paused"),
            (Order::Unpause, with(&["Paused"]), "ok"),
            (Order::Unpause, off.clone(), "409 VMI is not running"),
            (Order::Freeze, json!({}), "ok"),
            (Order::Freeze, off.clone(), "409 VM is not running"),
            (Order::Unfreeze, off.clone(), "409 VMI is not running"),
            (Order::Reset, off.clone(), "ok"),
            (Order::SoftReboot, json!({}), "ok"),
            (Order::SoftReboot, with(&["Paused"]), "409 VMI is paused"),
            (
                Order::SoftReboot,
                no_acpi,
                "409 VMI neither have the agent connected nor the ACPI feature enabled",
            ),
            (Order::SoftReboot, agent_no_acpi, "ok"),
            (Order::Backup, off, "409 VM is not running"),
            (Order::RedefineCheckpoint, json!({}), "409 ChangedBlockTracking is not enabled"),
            (Order::RedefineCheckpoint, tracked, "ok"),
            (Order::InjectLaunchSecret, json!({}), "409 Attestation not requested for VMI"),
            (Order::InjectLaunchSecret, sev, "ok"),
        ];
        for (wanted, patch, expected) in cases {
            assert_eq!(short(order(wanted, &vmi(patch.clone()))), expected, "{wanted:?} {patch}");
        }
    }

    #[test]
    fn questions_and_lines() {
        let devices = |devices: Value| json!({ "spec": { "domain": { "devices": devices } } });
        let phase = |phase: &str| json!({ "status": { "phase": phase } });
        let cases = [
            (
                short(question(Question::UserList, &vmi(json!({})))),
                "409 VMI does not have guest agent connected",
            ),
            (short(question(Question::UserList, &vmi(with(&["AgentConnected"])))), "ok"),
            (short(question(Question::GuestOsInfo, &vmi(phase("Pending")))), "409 VMI is not running"),
            (
                short(question(
                    Question::Screenshot,
                    &vmi(devices(json!({ "autoattachGraphicsDevice": false }))),
                )),
                "400 No graphics devices are present.",
            ),
            (
                short(question(Question::FetchCertChain, &vmi(phase("Pending")))),
                "409 VMI is not assigned to a node yet",
            ),
            (
                short(question(Question::FetchCertChain, &vmi(phase("Scheduled")))),
                "409 Attestation not requested for VMI",
            ),
            (short(line(Line::Console, &vmi(json!({})))), "ok"),
            (short(line(Line::Console, &vmi(phase("Failed")))), "409 VMI is in failed status"),
            (short(line(Line::Console, &vmi(phase("Scheduled")))), "400 VMI is not running"),
            (
                short(line(Line::Console, &vmi(devices(json!({ "autoattachSerialConsole": false }))))),
                "400 No serial consoles are present.",
            ),
            (short(line(Line::Vnc, &vmi(phase("Succeeded")))), "400 VMI is not running"),
            (short(line(Line::UsbRedir, &vmi(json!({})))), "409 Not configured with USB Redirection"),
            (short(line(Line::UsbRedir, &vmi(devices(json!({ "clientPassthrough": {} }))))), "ok"),
            (
                short(line(Line::UsbRedir, &vmi(json!({ "spec": { "architecture": "s390x" } })))),
                "409 No USB support on s390x",
            ),
            (short(line(Line::Vsock, &vmi(json!({})))), "400 VSOCK is not attached."),
            (short(line(Line::Vsock, &vmi(devices(json!({ "autoattachVSOCK": true }))))), "ok"),
            (short(port_forward(&vmi(with(&["Paused"])))), "409 VMI is paused"),
            (short(port_forward(&vmi(phase("Failed")))), "400 VMI is not running"),
            (short(port_forward(&vmi(json!({})))), "ok"),
        ];
        for (index, (found, expected)) in cases.into_iter().enumerate() {
            assert_eq!(found, expected, "case {index}");
        }
        assert_eq!(on_a_node(&vmi(json!({}))).unwrap(), "node01");
        assert_eq!(on_a_node(&vmi(phase("Failed"))).unwrap_err().code, 400);
    }

    #[test]
    fn a_snapshot_holds_a_paused_machine() {
        let vm = |status: Value| -> VirtualMachine {
            serde_json::from_value(
                json!({ "metadata": { "name": "vm" }, "spec": { "template": {} }, "status": status }),
            )
            .unwrap()
        };
        assert_eq!(unpause(None), Ok(()));
        assert_eq!(unpause(Some(&vm(json!({})))), Ok(()));
        let taken = unpause(Some(&vm(json!({ "snapshotInProgress": "s" }))));
        assert_eq!(taken.unwrap_err().code, 409);
    }

    #[test]
    fn sev_needs_its_gate() {
        let off = json!({ "spec": { "configuration": { "developerConfiguration": { "disabledFeatureGates": ["WorkloadEncryptionSEV"] } } } });
        let off = ClusterConfig::of(&serde_json::from_value(off).unwrap());
        assert_eq!(short(sev_gate(&off)), "400 'WorkloadEncryptionSEV' feature gate is not enabled");
        assert_eq!(sev_gate(&ClusterConfig::default()), Ok(()));
    }
}
