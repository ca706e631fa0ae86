//! What guests see of their volumes, whatever they come from.

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use kube::api::DeleteParams;
use kubevirt_api::vm::status::PrintableStatus;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::{Value, json};
use test_kit::{KUBEVIRT, Test};

use super::guest::{Guest, apply_in_spite, instances, launcher, may_boot, wait_for_phase, wait_for_status};
use super::manifest::{guest, idle, instance, machine, user_data};
use super::{gates, storage};

/// A disk that the guest finds by the name of its volume.
fn disk(name: &str) -> Value {
    json!({"name": name, "serial": name, "disk": {"bus": "virtio"}})
}

/// An object that holds texts.
fn words(kind: &str, name: &str, field: &str, texts: Value) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, field: texts})
}

fn path(volume: &str) -> String {
    format!("/dev/disk/by-id/virtio-{volume}")
}

/// A machine with a volume of each kind, but for the second kind of cloud-init: only one can be there.
fn with_all(test: &Test) -> Result<Value> {
    let volumes = [
        ("files", json!({"persistentVolumeClaim": {"claimName": "files"}})),
        ("block", json!({"persistentVolumeClaim": {"claimName": "block"}})),
        ("layer", json!({"ephemeral": {"persistentVolumeClaim": {"claimName": "layer"}}})),
        ("empty", json!({"emptyDisk": {"capacity": "4Mi"}})),
        (
            "host",
            json!({"hostDisk": {
                "path": format!("{}/disk.img", storage::on_nodes(test, "host")),
                "type": "DiskOrCreate",
                "capacity": "8Mi",
            }}),
        ),
        ("config", json!({"configMap": {"name": "config"}})),
        ("secret", json!({"secret": {"secretName": "secret"}})),
        ("account", json!({"serviceAccount": {"serviceAccountName": "default"}})),
        (
            "downward",
            json!({"downwardAPI": {"fields": [
                {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
            ]}}),
        ),
        ("metrics", json!({"downwardMetrics": {}})),
        ("sysprep", json!({"sysprep": {"configMap": {"name": "sysprep"}}})),
    ];
    let mut spec = guest("all")?;
    spec["volumes"][1] =
        json!({"name": "cloud-init", "cloudInitNoCloud": {"secretRef": {"name": "user-data"}}});
    for (name, mut volume) in volumes {
        volume["name"] = json!(name);
        spec["volumes"].as_array_mut().context("no volumes")?.push(volume);
        spec["domain"]["devices"]["disks"].as_array_mut().context("no disks")?.push(disk(name));
    }
    Ok(spec)
}

/// Commands for the guest, and a part of what they print.
fn checks() -> Vec<(String, &'static str)> {
    let start = |volume: &str| format!("head -c 64 {}", path(volume));
    let file = |volume: &str, name: &str| {
        format!(
            "mkdir -p /mnt/{volume} && mount -o ro {} /mnt/{volume} && cat /mnt/{volume}/{name}",
            path(volume)
        )
    };
    vec![
        (start("files"), "on a folder"),
        (start("block"), "on a device"),
        (start("layer"), "below a layer"),
        (start("metrics"), "mvbd"),
        (format!("blockdev --getsize64 {}", path("empty")), "4194304"),
        (format!("blockdev --getsize64 {}", path("host")), "8388608"),
        (file("config", "word"), "from a ConfigMap"),
        (file("secret", "word"), "from a Secret"),
        (file("account", "namespace"), "volumes-"),
        ("cat /mnt/account/token".into(), "."),
        (file("downward", "labels"), r#"app="all""#),
        (file("sysprep", "autounattend.xml"), "<unattend/>"),
    ]
}

#[tokio::test]
async fn a_guest_sees_volumes_of_every_kind() -> Result<()> {
    KUBEVIRT
        .run("volumes", async |test| {
            let files = storage::claim_folder(test, "files", "on a folder").await?;
            let layer = storage::claim_folder(test, "layer", "below a layer").await?;
            let block = storage::claim_device(test, "block", "on a device").await?;
            test.apply(&words("ConfigMap", "config", "data", json!({"word": "from a ConfigMap"}))).await?;
            test.apply(&words("ConfigMap", "sysprep", "data", json!({"autounattend.xml": "<unattend/>"})))
                .await?;
            test.apply(&words("Secret", "secret", "stringData", json!({"word": "from a Secret"}))).await?;
            test.apply(&words("Secret", "user-data", "stringData", json!({"userdata": user_data("all")?})))
                .await?;

            let _leave = may_boot().await?;
            in_containers(test, &instance("all", with_all(test)?)).await?;
            let shell = Guest::wait(test, "all").await?;
            for (command, expected) in checks() {
                let said = shell.run(&command)?;
                ensure!(said.contains(expected), "{command}: {said:?}, not {expected:?}");
            }
            for volume in ["files", "block", "layer", "empty", "host"] {
                let (text, path) = ("printf written", path(volume));
                shell.run(&format!("{text} | dd of={path} bs=4096 seek=1 conv=notrunc,fsync && sync"))?;
                ensure!(shell.run(&format!("dd if={path} bs=4096 skip=1 count=1 | head -c 7"))? == "written");
            }
            let host = storage::folder(test, "host")?.join("disk.img");
            for (file, kept) in [(&files, true), (&block.file, true), (&host, true), (&layer, false)] {
                let found = storage::read(file, 4096, 7)? == "written";
                ensure!(found == kept, "{}: written to is {found}", file.display());
            }
            instances(test).delete("all", &DeleteParams::default()).await?;
            test.wait_until_gone(&instances(test), "all").await?;
            storage::release(test, &["files", "layer", "block"])
        })
        .await
}

/// Applies an instance whose container disks run as containers, as they do where nodes cannot mount images.
async fn in_containers(test: &Test, manifest: &Value) -> Result<()> {
    let _closed = gates::USUAL.write().await;
    gates::close(test, &["ImageVolume"])?;
    let applied = until_in_containers(test, manifest).await;
    gates::open(test)?;
    applied
}

/// It takes a moment until all have heard of a gate.
async fn until_in_containers(test: &Test, manifest: &Value) -> Result<()> {
    let name = manifest["metadata"]["name"].as_str().context("no name")?;
    for _ in 0..10 {
        apply_in_spite(test, manifest).await?;
        let has_pod = |vmi: &kubevirt_api::vmi::VirtualMachineInstance| {
            vmi.status.as_ref().is_some_and(|status| status.active_pods.is_some())
        };
        let vmi = test.wait(&instances(test), name, "has a pod", has_pod).await?;
        let pod = launcher(test, &vmi).await?;
        if pod.spec.iter().flat_map(|spec| &spec.containers).any(|it| it.name == "volumeroot") {
            return Ok(());
        }
        instances(test).delete(name, &DeleteParams::default()).await?;
        test.wait_until_gone(&instances(test), name).await?;
    }
    anyhow::bail!("container disks are mounted although the gate is closed")
}

/// Everything but its disk is as with any guest, so this need not be one.
#[tokio::test]
async fn container_disks_are_mounted_by_nodes_that_can() -> Result<()> {
    KUBEVIRT
        .run("image-volume", async |test| {
            let _usual = gates::USUAL.read().await;
            let mut spec = idle();
            let image = &test_kit::system_images()?.guest.reference;
            spec["domain"]["devices"]["disks"] = json!([disk("root")]);
            spec["volumes"] = json!([{"name": "root", "containerDisk": {"image": image, "imagePullPolicy": "IfNotPresent"}}]);
            let _leave = may_boot().await?;
            test.apply(&instance("vmi", spec)).await?;
            let vmi = wait_for_phase(test, "vmi", VmiPhase::Running).await?;
            let pod = launcher(test, &vmi).await?;
            let spec = pod.spec.clone().context("a pod without spec")?;
            let mounted = spec.volumes.iter().flatten().any(|volume| volume.image.is_some());
            let containers: Vec<_> = spec.containers.iter().map(|it| it.name.as_str()).collect();
            ensure!(mounted && !containers.contains(&"volumeroot"), "{}: {containers:?}", pod.name_any());
            Ok(())
        })
        .await
}

#[tokio::test]
async fn a_machine_waits_for_its_data_volume() -> Result<()> {
    KUBEVIRT
        .run("data-volume", async |test| {
            let mut spec = idle();
            spec["domain"]["devices"]["disks"] = json!([disk("data")]);
            spec["volumes"] = json!([{"name": "data", "dataVolume": {"name": "data"}}]);
            test.apply(&machine("vm", "Always", spec)).await?;
            wait_for_status(test, "vm", PrintableStatus::ErrorPvcNotFound).await?;
            let told = |vmi: &kubevirt_api::vmi::VirtualMachineInstance| {
                let conditions = vmi.status.iter().flat_map(|status| status.conditions.iter().flatten());
                let messages = conditions.filter_map(|it| it.message.as_deref());
                messages.into_iter().any(|it| it.ends_with("/data does not exist, waiting for it to appear"))
            };
            test.wait(&instances(test), "vm", "says what it waits for", told).await?;
            // Filled by whoever fills data volumes here.
            storage::claim_folder(test, "data", "").await?;
            wait_for_phase(test, "vm", VmiPhase::Running).await?;
            storage::release(test, &["data"])
        })
        .await
}
