//! Disks that are plugged into a running guest and pulled again.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VolumePhase;
use serde_json::{Value, json};
use test_kit::{KUBEVIRT, Test};

use super::guest::{Guest, PATIENCE, instances, launcher, machines, may_boot, wait_for_event};
use super::leftovers::Traces;
use super::manifest::{guest, machine};
use super::storage;

const NAMES: [&str; 2] = ["files", "block"];

async fn change(test: &Test, patch: Value) -> Result<()> {
    let patch: json_patch::Patch = serde_json::from_value(patch)?;
    machines(test).patch("vm", &PatchParams::default(), &Patch::Json::<()>(patch)).await?;
    Ok(())
}

fn phase(vmi: &VirtualMachineInstance, volume: &str) -> Option<VolumePhase> {
    let all = vmi.status.as_ref()?.volume_status.as_deref()?;
    all.iter().find(|status| status.name == volume)?.phase.clone()
}

/// Pods that hold plugged volumes.
async fn holders(test: &Test) -> Result<Vec<Pod>> {
    let all = ListParams::default().labels("kubevirt.io=hotplug-disk");
    Ok(test.api::<Pod>().list(&all).await?.items)
}

#[tokio::test]
async fn disks_come_and_go_while_a_guest_runs() -> Result<()> {
    KUBEVIRT
        .run("hotplug", async |test| {
            let files = storage::claim_folder(test, "files", "on a folder").await?;
            let block = storage::claim_device(test, "block", "on a device").await?;
            let _leave = may_boot().await?;
            test.apply(&machine("vm", "Always", guest("vm")?)).await?;
            let shell = Guest::wait(test, "vm").await?;
            let before = shell.run("ls /sys/block")?;
            let traces = Traces::of_pod(test, &launcher(test, &instances(test).get("vm").await?).await?)?;
            let without = traces.now(test)?.len();

            plug(test).await?;
            ensure!(shell.begin_of("/dev/disk/by-id/virtio-files")?.contains("on a folder"));
            ensure!(shell.begin_of("/dev/sda")?.contains("on a device"));
            for (disk, file) in [("/dev/disk/by-id/virtio-files", &files), ("/dev/sda", &block.file)] {
                shell.run(&format!(
                    "printf written | dd of={disk} bs=4096 seek=1 conv=notrunc,fsync && sync"
                ))?;
                ensure!(storage::read(file, 4096, 7)? == "written", "{disk} is not {}", file.display());
            }
            ensure!(traces.now(test)?.len() > without, "the node shows nothing of the disks");
            let held = holders(test).await?;
            let held_on_node =
                held.iter().map(|holder| Traces::of_pod(test, holder)).collect::<Result<Vec<_>>>()?;

            pull(test).await?;
            ensure!(shell.run("ls /sys/block")? == before, "the guest still has disks");
            for (holder, on_node) in held.iter().zip(held_on_node) {
                test.wait_until_gone(&test.api::<Pod>(), &holder.name_any()).await?;
                on_node.vanish(test).await?;
            }
            traces.shrink_to(test, without).await?;
            storage::release(test, &NAMES)
        })
        .await
}

async fn plug(test: &Test) -> Result<()> {
    let volume = |name: &str| json!({"name": name, "persistentVolumeClaim": {"claimName": name, "hotpluggable": true}});
    let disk = |name: &str, bus: &str| json!({"name": name, "serial": name, "disk": {"bus": bus}});
    let (volumes, disks) = ("/spec/template/spec/volumes/-", "/spec/template/spec/domain/devices/disks/-");
    change(
        test,
        json!([
            {"op": "add", "path": volumes, "value": volume("files")},
            {"op": "add", "path": disks, "value": disk("files", "virtio")},
            {"op": "add", "path": volumes, "value": volume("block")},
            {"op": "add", "path": disks, "value": disk("block", "scsi")},
        ]),
    )
    .await?;
    for name in NAMES {
        let ready = |vmi: &VirtualMachineInstance| phase(vmi, name) == Some(VolumePhase::Ready);
        test.wait_within(PATIENCE, &instances(test), "vm", "has its disk", ready).await?;
        let step = |what: &str| format!("{what}{name}");
        wait_for_event(test, "vm", &step("for volume ")).await?;
        wait_for_event(test, "vm", &format!("Volume {name} is in the launcher's pod")).await?;
        wait_for_event(test, "vm", &format!("Volume {name} is attached to the guest")).await?;
    }
    Ok(())
}

async fn pull(test: &Test) -> Result<()> {
    let (volumes, disks) = ("/spec/template/spec/volumes/2", "/spec/template/spec/domain/devices/disks/2");
    let remove = |path: &str| json!({"op": "remove", "path": path});
    change(test, json!([remove(volumes), remove(disks), remove(volumes), remove(disks)])).await?;
    let gone = |vmi: &VirtualMachineInstance| NAMES.iter().all(|name| phase(vmi, name).is_none());
    test.wait_within(PATIENCE, &instances(test), "vm", "has no plugged disk", gone).await.map(drop)
}
