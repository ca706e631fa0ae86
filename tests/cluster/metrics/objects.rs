//! Objects that give every metric something to tell of.

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use kubevirt_api::migration::VirtualMachineInstanceMigration;
use kubevirt_api::snapshot::VirtualMachineSnapshot;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::{Value, json};
use test_kit::Test;

use crate::machines::guest::wait_for_phase;
use crate::machines::manifest::{guest, idle, machine};

/// A machine with a guest.
pub const RUNNING: &str = "running";
/// A machine that is to be deleted.
pub const ENDED: &str = "ended";

/// Makes them.
pub async fn make(test: &Test) -> Result<()> {
    let mut running = machine(RUNNING, "Always", guest(RUNNING)?);
    running["metadata"]["labels"] = json!({"team": "red"});
    let resources = &mut running["spec"]["template"]["spec"]["domain"]["resources"];
    *resources = json!({"limits": {"memory": "512Mi", "cpu": "1"}});
    test.apply(&running).await?;
    // Without an interface nothing keeps it from being moved.
    let mut movable = idle();
    movable["domain"]["devices"]["autoattachPodInterface"] = json!(false);
    test.apply(&machine(ENDED, "Always", movable)).await?;
    test.apply(&json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "disk"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }))
    .await?;
    let mut stopped = machine("stopped", "Halted", idle());
    let spec = &mut stopped["spec"]["template"]["spec"];
    spec["domain"]["devices"]["disks"] = json!([{"name": "disk", "disk": {}}]);
    spec["volumes"] = json!([{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]);
    test.apply(&stopped).await?;
    wait_for_phase(test, ENDED, VmiPhase::Running).await?;
    migrations(test).await?;
    snapshot(test).await
}

/// Nobody acts on migrations yet, so what becomes of them is written here.
async fn migrations(test: &Test) -> Result<()> {
    let api = test.api::<VirtualMachineInstanceMigration>();
    // One at a time may be under way.
    for (name, phase) in [("good", "Succeeded"), ("bad", "Failed")] {
        test.apply(&json!({
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstanceMigration",
            "metadata": {"name": name},
            "spec": {"vmiName": ENDED},
        }))
        .await?;
        let now = "2030-01-01T00:00:00Z";
        for phase in ["Pending", phase] {
            let times = json!([{"phase": phase, "phaseTransitionTimestamp": now}]);
            let status = json!({"status": {"phase": phase, "phaseTransitionTimestamps": times}});
            let patch: Patch<Value> = Patch::Merge(status);
            api.patch_status(name, &PatchParams::default(), &patch).await?;
        }
    }
    Ok(())
}

async fn snapshot(test: &Test) -> Result<()> {
    test.apply(&json!({
        "apiVersion": "snapshot.kubevirt.io/v1beta1",
        "kind": "VirtualMachineSnapshot",
        "metadata": {"name": "snapshot"},
        "spec": {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "stopped"}},
    }))
    .await?;
    let status = json!({"status": {"phase": "Succeeded", "creationTime": "2026-01-01T00:00:00Z"}});
    let api = test.api::<VirtualMachineSnapshot>();
    api.patch_status("snapshot", &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}
