//! What becomes of objects: filled in, refused with every reason, accepted with a warning.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};

use crate::fixture::with_server;

fn vm(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": { "name": name }, "spec": spec })
}

fn instance_spec() -> Value {
    json!({
        "domain": { "memory": { "guest": "64Mi" }, "devices": { "disks": [{ "name": "a", "disk": {} }] } },
        "volumes": [{ "name": "a", "containerDisk": { "image": "x" } }],
    })
}

fn vmi(name: &str) -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": { "name": name },
        "spec": instance_spec(),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_are_filled_in_refused_and_warned_about() -> Result<()> {
    with_server("api-vm", async |server| {
        let example: Value = serde_saphyr::from_str(include_str!("../../../../examples/vm.yaml"))?;
        let stored = server.create(&example).await?.accepted()?;
        let domain = &stored["spec"]["template"]["spec"]["domain"];
        assert!(domain["firmware"]["uuid"].as_str().is_some_and(|uuid| uuid.len() == 36), "{stored}");
        assert_eq!(domain["machine"]["type"], "q35");
        assert_eq!(stored["spec"]["template"]["spec"]["architecture"], "amd64");

        let mut broken = instance_spec();
        broken["volumes"][0]["name"] = json!("b");
        broken["networks"] = json!([{ "name": "n", "pod": {} }]);
        let broken = vm("broken", json!({ "runStrategy": "Always", "template": { "spec": broken } }));
        let (fields, message) = server.create(&broken).await?.refused()?;
        assert!(fields.len() >= 2, "all that is wrong at once: {fields:?} {message}");
        assert!(
            fields.iter().any(|field| field.starts_with("spec.template.spec.domain.devices.disks[0]")),
            "{fields:?}"
        );
        let (fields, _) = server
            .create(&vm("idle", json!({ "template": { "spec": instance_spec() } })))
            .await?
            .refused()?;
        assert_eq!(fields, ["spec.running"]);

        let old = json!({ "running": false, "template": { "spec": instance_spec() } });
        let verdict = server.create(&vm("old", old)).await?;
        assert!(verdict.warnings.iter().any(|warning| warning.contains("running")), "{:?}", verdict.warnings);
        assert!(verdict.accepted()?["spec"]["runStrategy"].is_null());

        // A change of the status, which has its own webhook; one that asks for a volume twice is refused.
        let machines: Api<VirtualMachine> = server.test.api();
        let status = |names: &[&str]| {
            let request = |name: &&str| {
                json!({ "addVolumeOptions": {
                "name": name, "disk": { "name": name, "disk": { "bus": "scsi" } },
                "volumeSource": { "persistentVolumeClaim": { "claimName": "c" } },
            } })
            };
            Patch::Merge(
                json!({ "status": { "volumeRequests": names.iter().map(request).collect::<Value>() } }),
            )
        };
        machines.patch_status("old", &PatchParams::default(), &status(&["x"])).await?;
        let twice = machines.patch_status("old", &PatchParams::default(), &status(&["x", "x"])).await;
        assert!(matches!(twice, Err(kube::Error::Api(status)) if status.code == 422));
        let metrics = server.get("/metrics").await?.1;
        let line = format!("kubevirt_vm_created_by_pod_total{{namespace=\"{}\"", server.test.namespace());
        assert!(metrics.lines().any(|found| found.starts_with(&line) && found.ends_with(" 2")), "{metrics}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_and_what_is_made_of_them() -> Result<()> {
    with_server("api-vmi", async |server| {
        let preset = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstancePreset", "metadata": { "name": "p" },
            "spec": { "selector": { "matchLabels": { "a": "b" } }, "domain": { "cpu": { "cores": 3 }, "devices": {} } },
        });
        let verdict = server.create(&preset).await?.accepted()?;
        assert_eq!(verdict["kind"], "VirtualMachineInstancePreset");
        let mut labelled = vmi("preset");
        labelled["metadata"]["labels"] = json!({ "a": "b" });
        // Presets come from a store, which hears of them a moment later.
        let cores = async || {
            Ok(server.dry_run(&labelled).await?.accepted()?["spec"]["domain"]["cpu"]["cores"] == 3)
        };
        server.until("the preset applies", cores).await?;

        let stored = server.create(&vmi("one")).await?.accepted()?;
        assert_eq!(stored["status"]["phase"], "Pending");
        let instances: Api<VirtualMachineInstance> = server.test.api();
        let change = Patch::Merge(json!({ "spec": { "hostname": "other" } }));
        let changed = instances.patch("one", &PatchParams::default(), &change).await;
        assert!(matches!(&changed, Err(kube::Error::Api(status)) if status.code == 422), "{changed:?}");

        for (kind, group, spec) in [
            ("VirtualMachineInstanceReplicaSet", "kubevirt.io/v1", json!({
                "replicas": 1, "selector": { "matchLabels": { "a": "b" } },
                "template": { "metadata": { "labels": { "a": "c" } }, "spec": instance_spec() },
            })),
            ("VirtualMachinePool", "pool.kubevirt.io/v1beta1", json!({
                "replicas": 1, "selector": { "matchLabels": { "a": "b" } },
                "virtualMachineTemplate": {
                    "metadata": { "labels": { "a": "c" } },
                    "spec": { "runStrategy": "Always", "template": { "spec": instance_spec() } },
                },
            })),
        ] {
            let mut object = json!({ "apiVersion": group, "kind": kind, "metadata": { "name": "set" }, "spec": spec });
            let (fields, message) = server.create(&object).await?.refused()?;
            assert!(message.contains("selector"), "{kind}: {fields:?} {message}");
            let template = if kind == "VirtualMachinePool" { "virtualMachineTemplate" } else { "template" };
            object["spec"][template]["metadata"]["labels"]["a"] = json!("b");
            server.create(&object).await?.accepted().context(kind)?;
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_other_objects_is_judged_by_them() -> Result<()> {
    with_server("api-others", async |server| {
        let migration = |name: &str, vmi: &str| {
            json!({
                "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
                "metadata": { "name": name }, "spec": { "vmiName": vmi },
            })
        };
        let (_, message) = server.create(&migration("m", "one")).await?.refused()?;
        assert!(message.contains("one"), "{message}");
        server.create(&vmi("one")).await?.accepted()?;
        let stored = server.create(&migration("m", "one")).await?.accepted()?;
        assert_eq!(stored["metadata"]["labels"]["kubevirt.io/vmi-name"], "one");
        let (_, message) = server.create(&migration("n", "one")).await?.refused()?;
        assert!(message.contains("\"m\""), "{message}");

        // Made in one breath, so the stores cannot have heard of the instance type yet.
        for number in 0..3 {
            let name = format!("type{number}");
            let kind = json!({
                "apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineInstancetype",
                "metadata": { "name": name },
                "spec": { "cpu": { "guest": 2 }, "memory": { "guest": "128Mi" } },
            });
            server.create(&kind).await?.accepted()?;
            let small = json!({ "spec": { "domain": { "devices": {} } } });
            let machine = json!({
                "runStrategy": "Halted", "template": small,
                "instancetype": { "name": name, "kind": "VirtualMachineInstancetype" },
            });
            // A conflict with the instance type shows that it was found.
            let mut conflict = machine.clone();
            conflict["template"]["spec"]["domain"]["cpu"] = json!({ "cores": 1 });
            let (fields, message) = server.create(&vm("conflict", conflict)).await?.refused()?;
            assert!(fields.iter().any(|field| field.contains("cpu")), "{fields:?} {message}");
            let verdict = server.create(&vm(&name, machine.clone())).await?;
            assert_eq!(verdict.warnings, [""; 0]);
            verdict.accepted()?;
            // One that is missing may still come, before the machine starts.
            let mut early = machine;
            early["instancetype"]["name"] = json!("none");
            let verdict = server.dry_run(&vm("early", early)).await?;
            assert!(verdict.warnings.iter().any(|warning| warning.contains("none")), "{:?}", verdict.warnings);
            verdict.accepted()?;
        }
        let wrong = json!({
            "apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineClusterInstancetype",
            "metadata": { "name": server.test.namespace(), "labels": { "test": server.test.namespace() } },
            "spec": { "cpu": { "guest": 2, "maxSockets": 1 }, "memory": { "guest": "128Mi", "overcommitPercent": 200 } },
        });
        server.create(&wrong).await?.refused()?;
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn preferences_are_inferred_from_volumes_also_without_data_volumes() -> Result<()> {
    with_server("api-infer", async |server| {
        let preference = json!({
            "apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachinePreference",
            "metadata": { "name": "linux" }, "spec": {},
        });
        server.create(&preference).await?.accepted()?;
        let claims: Api<PersistentVolumeClaim> = server.test.api();
        let claim = serde_json::from_value(json!({
            "metadata": { "name": "disk", "labels": {
                "instancetype.kubevirt.io/default-preference": "linux",
                "instancetype.kubevirt.io/default-preference-kind": "VirtualMachinePreference",
            } },
            "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
        }))?;
        claims.create(&PostParams::default(), &claim).await?;
        let machine = |name: &str, volume: Value| {
            let mut spec = instance_spec();
            spec["volumes"] = json!([volume]);
            let inferred = json!({ "inferFromVolume": "a" });
            vm(name, json!({ "runStrategy": "Halted", "preference": inferred, "template": { "spec": spec } }))
        };
        // A data volume of the name of the claim: its kind is not served here, so the claim counts.
        for (name, volume) in [
            ("claim", json!({ "name": "a", "persistentVolumeClaim": { "claimName": "disk" } })),
            ("volume", json!({ "name": "a", "dataVolume": { "name": "disk" } })),
        ] {
            let stored = server.create(&machine(name, volume)).await?.accepted().context(name)?;
            assert_eq!(stored["spec"]["preference"]["name"], "linux", "{name}");
            assert_eq!(stored["spec"]["preference"]["kind"], "VirtualMachinePreference", "{name}");
        }
        let none = json!({ "name": "a", "dataVolume": { "name": "none" } });
        let verdict = server.create(&machine("none", none)).await?;
        assert!((400..500).contains(&verdict.status), "{verdict:?}");
        Ok(())
    })
    .await
}
