//! The manifest that the project began with, as it is written there.

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::{Value, json};
use test_kit::KUBEVIRT;

use super::guest::{instances, machines, may_boot, wait_for_login, wait_for_phase};

const MANIFEST: &str = include_str!("seed.yaml");

#[tokio::test]
async fn the_first_manifest_applies_unchanged_and_starts() -> Result<()> {
    KUBEVIRT
        .run("machine-seed", async |test| {
            let manifest: Value = serde_saphyr::from_str(MANIFEST)?;
            test.apply(&manifest).await?;
            let vms = machines(test);
            let stopped = |vm: &kubevirt_api::vm::VirtualMachine| {
                vm.status
                    .as_ref()
                    .and_then(|it| it.printable_status.as_ref())
                    .is_some_and(|it| it.as_str() == "Stopped")
            };
            test.wait(&vms, "testvm", "is stopped", stopped).await?;
            assert!(instances(test).get_opt("testvm").await?.is_none());

            let _leave = may_boot().await?;
            // No registry is in reach of the nodes: its disk is the guest that they have, which needs more memory.
            let guest = &test_kit::system_images()?.guest.reference;
            let disk = json!([
                {"op": "replace", "path": "/spec/template/spec/volumes/0/containerDisk/image", "value": guest},
                {"op": "add", "path": "/spec/template/spec/volumes/0/containerDisk/imagePullPolicy", "value": "IfNotPresent"},
                {"op": "replace", "path": "/spec/template/spec/domain/resources/requests/memory", "value": "192M"},
            ]);
            let disk: json_patch::Patch = serde_json::from_value(disk)?;
            vms.patch("testvm", &PatchParams::default(), &Patch::Json::<()>(disk)).await?;
            let start = json!({"spec": {"running": true}});
            let vm = vms.patch("testvm", &PatchParams::default(), &Patch::Merge(start)).await?;
            assert_eq!(vm.spec.run_strategy, None);
            let vmi = wait_for_phase(test, "testvm", VmiPhase::Running).await?;
            wait_for_login(test, &vmi).await
        })
        .await
}
