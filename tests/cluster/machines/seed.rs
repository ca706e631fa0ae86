//! The manifest that the project began with, as it is written there.

use std::path::PathBuf;

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use kubevirt_api::vm::status::PrintableStatus;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::{Value, json};
use test_kit::{KUBEVIRT, Test};

use super::guest::{instances, machines, wait_for_phase, wait_for_status, wait_for_words};
use super::storage;

const MANIFEST: &str = include_str!("seed.yaml");
/// What the manifest calls the image of its disk, and what a registry calls it.
const IMAGE: &str = "kubevirt/cirros-registry-disk-demo";

/// An image of a disk that boots with the 64 MB that the manifest has.
fn demo(test: &Test) -> Result<PathBuf> {
    let folder = storage::folder(test, "demo")?;
    let (disk, archive) = (folder.join("disk.img"), folder.join("demo.tar"));
    std::fs::write(&disk, test_guest::tiny())?;
    xtask::guest::container_disk(IMAGE, &disk, &archive)?;
    Ok(archive)
}

#[tokio::test]
async fn the_first_manifest_applies_unchanged_and_starts() -> Result<()> {
    KUBEVIRT
        .run("machine-seed", async |test| {
            let archive = demo(test)?;
            let _registry = test.cluster().serve_images(&[(IMAGE, &archive)])?;
            let manifest: Value = serde_saphyr::from_str(MANIFEST)?;
            test.apply(&manifest).await?;
            wait_for_status(test, "testvm", PrintableStatus::Stopped).await?;
            assert!(instances(test).get_opt("testvm").await?.is_none());

            let start = json!({"spec": {"running": true}});
            let vm = machines(test).patch("testvm", &PatchParams::default(), &Patch::Merge(start)).await?;
            assert_eq!(vm.spec.run_strategy, None);
            let vmi = wait_for_phase(test, "testvm", VmiPhase::Running).await?;
            wait_for_words(test, &vmi, "tiny login:").await?;

            let stop = json!({"spec": {"running": false}});
            machines(test).patch("testvm", &PatchParams::default(), &Patch::Merge(stop)).await?;
            wait_for_status(test, "testvm", PrintableStatus::Stopped).await?;
            test.wait_until_gone(&instances(test), "testvm").await
        })
        .await
}
