//! The life of a machine: the test plays admission, the kubelet and the node's handler.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PropagationPolicy};
use kubevirt_api::names::{conditions, finalizers};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};
use test_kit::Test;
use test_kit::conditions::has;

use crate::controllers::run;
use crate::instances::{hand_over, is_in};
use crate::kubelet;

/// What instances are made of, as admission would leave it.
pub fn template() -> Value {
    json!({
        // What admission adds to an instance.
        "metadata": {"labels": {"app": "web"}, "finalizers": [finalizers::FOREGROUND_DELETE]},
        "spec": {
            "architecture": "amd64",
            "domain": {
                "cpu": {"model": "host-passthrough"}, "machine": {"type": "q35"}, "memory": {"guest": "64Mi"},
                "firmware": {"uuid": "b8511fdf-37f2-40d8-af9b-aac3933f3d74"},
                "devices": {"autoattachPodInterface": false},
            },
        },
    })
}

pub fn manifest(spec: Value) -> Value {
    let mut spec = spec;
    spec["template"] = template();
    json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}, "spec": spec})
}

async fn change(test: &Test, patch: Value) -> Result<()> {
    test.api::<VirtualMachine>().patch("web", &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

async fn change_instance(test: &Test, patch: Value) -> Result<()> {
    test.api::<VirtualMachineInstance>().patch("web", &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Waits until `kubectl get` would show this word.
async fn shows(test: &Test, word: &str) -> Result<VirtualMachine> {
    let shown = |vm: &VirtualMachine| {
        let status = vm.status.as_ref().and_then(|status| status.printable_status.as_ref());
        status.is_some_and(|status| status.as_str() == word)
    };
    test.wait(&test.api::<VirtualMachine>(), "web", word, shown).await
}

/// The instance of the machine, once there is one that is not this.
async fn instance(test: &Test, not: Option<&str>) -> Result<VirtualMachineInstance> {
    let another = |vmi: &VirtualMachineInstance| vmi.metadata.uid.as_deref() != not;
    let vmi = test.wait(&test.api::<VirtualMachineInstance>(), "web", "is made", another).await?;
    change_instance(test, json!({"status": {"phase": "Pending", "runtimeUser": 107}})).await?;
    Ok(vmi)
}

/// Takes the instance to its node and has its guest run. Gives back its pod.
async fn boot(test: &Test, vmi: &VirtualMachineInstance) -> Result<String> {
    let (_, pod) = hand_over(test, vmi).await?;
    let times = json!([{"phase": "Running", "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}]);
    change_instance(test, json!({"status": {"phase": "Running", "phaseTransitionTimestamps": times}}))
        .await?;
    kubelet::run(&test.api::<Pod>(), &pod, true).await?;
    Ok(pod)
}

/// Ends the guest, and clears its pod away.
async fn end(test: &Test, pod: &str, phase: &str) -> Result<()> {
    change_instance(test, json!({"status": {"phase": phase}})).await?;
    let _ = kubelet::remove(&test.api::<Pod>(), pod).await;
    Ok(())
}

async fn wait_for_stop(test: &Test) -> Result<()> {
    let told = |vmi: &VirtualMachineInstance| vmi.metadata.deletion_timestamp.is_some();
    test.wait(&test.api::<VirtualMachineInstance>(), "web", "is told to stop", told).await?;
    Ok(())
}

async fn count(test: &Test, reason: &str) -> Result<usize> {
    let fields = format!("involvedObject.kind=VirtualMachine,involvedObject.name=web,reason={reason}");
    Ok(test.api::<Event>().list(&ListParams::default().fields(&fields)).await?.items.len())
}

#[tokio::test]
async fn a_machine_runs_restarts_stops_and_goes() -> Result<()> {
    run("vm-life", async |test| {
        test.apply(&manifest(json!({"runStrategy": "Always"}))).await?;
        let first = instance(test, None).await?;
        let vm = shows(test, "Starting").await?;
        let uid = vm.uid().context("no UID")?;
        let owner = &first.owner_references()[0];
        assert_eq!((owner.uid.as_str(), owner.controller), (uid.as_str(), Some(true)));
        assert_eq!(first.labels()["app"], "web");
        let revision = first.status.as_ref().and_then(|status| status.virtual_machine_revision_name.clone());
        let revision = revision.context("no revision")?;
        assert!(revision.starts_with(&format!("revision-start-vm-{uid}-")), "{revision}");
        test.api::<ControllerRevision>().get(&revision).await?;

        let pod = boot(test, &first).await?;
        shows(test, "Running").await?;
        let machines = test.api::<VirtualMachine>();
        let vm = test.wait(&machines, "web", "is ready", has(conditions::vm::READY)).await?;
        let status = vm.status.clone().context("no status")?;
        assert_eq!((status.created, status.ready), (Some(true), Some(true)));
        assert_eq!(status.observed_generation, status.desired_generation);
        assert_eq!(count(test, "SuccessfulCreate").await?, 1);

        let requests = json!([{"action": "Stop", "uid": first.uid()}, {"action": "Start"}]);
        let patch = Patch::Merge(json!({"status": {"stateChangeRequests": requests}}));
        machines.patch_status("web", &PatchParams::default(), &patch).await?;
        wait_for_stop(test).await?;
        shows(test, "Stopping").await?;
        end(test, &pod, "Succeeded").await?;
        let second = instance(test, first.metadata.uid.as_deref()).await?;
        let pod = boot(test, &second).await?;
        let vm = shows(test, "Running").await?;
        assert_eq!(vm.status.and_then(|status| status.state_change_requests), None);

        change(test, json!({"spec": {"runStrategy": "Halted"}})).await?;
        wait_for_stop(test).await?;
        end(test, &pod, "Succeeded").await?;
        test.wait_until_gone(&test.api::<VirtualMachineInstance>(), "web").await?;
        shows(test, "Stopped").await?;
        machines.delete("web", &DeleteParams::default()).await?;
        test.wait_until_gone(&machines, "web").await
    })
    .await
}

#[tokio::test]
async fn a_guest_that_never_comes_up_is_tried_again_later() -> Result<()> {
    run("vm-crash", async |test| {
        test.apply(&manifest(json!({"runStrategy": "RerunOnFailure"}))).await?;
        let first = instance(test, None).await?;
        let (_, pod) = hand_over(test, &first).await?;
        end(test, &pod, "Failed").await?;
        let vm = shows(test, "CrashLoopBackOff").await?;
        let failure = vm.status.and_then(|status| status.start_failure).context("no failure")?;
        assert_eq!(failure.consecutive_fail_count, Some(1));
        assert_eq!(failure.last_failed_vmiuid, first.uid());
        let second = instance(test, first.metadata.uid.as_deref()).await?;
        let pod = boot(test, &second).await?;
        let vm = shows(test, "Running").await?;
        assert_eq!(vm.status.and_then(|status| status.start_failure), None);
        // A guest that shuts down by itself stays down.
        end(test, &pod, "Succeeded").await?;
        test.wait_until_gone(&test.api::<VirtualMachineInstance>(), "web").await?;
        shows(test, "Stopped").await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_machine_of_an_old_manifest_keeps_saying_running() -> Result<()> {
    run("vm-old", async |test| {
        let mut old = manifest(json!({"running": false}));
        old["apiVersion"] = json!("kubevirt.io/v1alpha3");
        old["spec"]["template"]["spec"]["domain"]["firmware"] = json!({});
        test.apply(&old).await?;
        shows(test, "Stopped").await?;
        change(test, json!({"spec": {"running": true}})).await?;
        let vmi = instance(test, None).await?;
        boot(test, &vmi).await?;
        let vm = shows(test, "Running").await?;
        assert_eq!((vm.spec.running, vm.spec.run_strategy), (Some(true), None));
        // A machine from before UUIDs were stored has the one that its name stands for.
        let firmware = vmi.spec.domain.firmware.and_then(|firmware| firmware.uuid);
        let written = |vm: &VirtualMachine| {
            let spec = vm.spec.template.spec.as_ref();
            spec.and_then(|spec| spec.domain.firmware.as_ref()?.uuid.clone()) == firmware
        };
        test.wait(&test.api::<VirtualMachine>(), "web", "keeps its UUID", written).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_instance_can_outlive_its_machine_and_be_adopted_by_another() -> Result<()> {
    run("vm-orphan", async |test| {
        test.apply(&manifest(json!({"runStrategy": "Always"}))).await?;
        let vmi = instance(test, None).await?;
        boot(test, &vmi).await?;
        shows(test, "Running").await?;
        let machines = test.api::<VirtualMachine>();
        let orphan =
            DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
        machines.delete("web", &orphan).await?;
        let released = |vm: &VirtualMachine| vm.finalizers() == ["orphan"];
        test.wait(&machines, "web", "is released", released).await?;
        // What the garbage collector does.
        change_instance(test, json!({"metadata": {"ownerReferences": null}})).await?;
        change(test, json!({"metadata": {"finalizers": null}})).await?;
        test.wait_until_gone(&machines, "web").await?;
        let left = test.api::<VirtualMachineInstance>().get("web").await?;
        assert!(is_in("Running")(&left) && left.metadata.deletion_timestamp.is_none());

        let new = test.apply(&manifest(json!({"runStrategy": "Always"}))).await?;
        shows(test, "Running").await?;
        // What is told of the machine is written before its instance is.
        let is_owned = |vmi: &VirtualMachineInstance| !vmi.owner_references().is_empty();
        let adopted = test.wait(&test.api(), "web", "has an owner", is_owned).await?;
        assert_eq!(adopted.uid(), vmi.uid());
        assert_eq!(Some(&adopted.owner_references()[0].uid), new.metadata.uid.as_ref());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_machine_keeps_the_instance_type_that_it_was_made_with() -> Result<()> {
    run("vm-type", async |test| {
        test.apply(&json!({
            "apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineInstancetype",
            "metadata": {"name": "small"},
            "spec": {"cpu": {"guest": 2}, "memory": {"guest": "128Mi"}},
        }))
        .await?;
        let reference = json!({"name": "small", "kind": "VirtualMachineInstancetype"});
        let mut vm = manifest(json!({"runStrategy": "Always", "instancetype": reference}));
        vm["spec"]["template"]["spec"]["domain"] = json!({
            "machine": {"type": "q35"}, "devices": {"autoattachPodInterface": false},
        });
        test.apply(&vm).await?;
        let vmi = instance(test, None).await?;
        let memory = vmi.spec.domain.memory.clone().and_then(|memory| memory.guest);
        assert_eq!(memory.map(|guest| guest.0).as_deref(), Some("128Mi"));
        assert_eq!(vmi.annotations()["kubevirt.io/instancetype-name"], "small");
        let vm = shows(test, "Starting").await?;
        let kept = vm.status.and_then(|status| status.instancetype_ref?.controller_revision_ref?.name);
        let kept = test.api::<ControllerRevision>().get(&kept.context("no copy")?).await?;
        assert_eq!(kept.labels()["instancetype.kubevirt.io/object-name"], "small");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_cannot_be_changed_live_asks_for_a_restart_and_what_can_is_passed_on() -> Result<()> {
    run("vm-change", async |test| {
        test.apply(&manifest(json!({"runStrategy": "Always"}))).await?;
        let vmi = instance(test, None).await?;
        boot(test, &vmi).await?;
        shows(test, "Running").await?;
        let (machines, instances) = (test.api::<VirtualMachine>(), test.api::<VirtualMachineInstance>());
        let of_template = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
        change(test, of_template(json!({"nodeSelector": {"zone": "a"}}))).await?;
        let moved = |vmi: &VirtualMachineInstance| vmi.spec.node_selector.is_some();
        test.wait(&instances, "web", "has the node selector", moved).await?;
        change(test, of_template(json!({"hostname": "new"}))).await?;
        let needed = has(conditions::vm::RESTART_REQUIRED);
        test.wait(&machines, "web", "asks for a restart", &needed).await?;
        change(test, of_template(json!({"hostname": null}))).await?;
        let settled = |vm: &VirtualMachine| !needed(vm);
        test.wait(&machines, "web", "asks for nothing", settled).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn without_the_importer_a_machine_says_what_it_lacks() -> Result<()> {
    run("vm-disks", async |test| {
        let template = json!({"metadata": {"name": "disk"}, "spec": {"source": {"blank": {}}}});
        test.apply(&manifest(json!({"runStrategy": "Always", "dataVolumeTemplates": [template]}))).await?;
        let told = has(conditions::vm::FAILURE);
        let vm = test.wait(&test.api::<VirtualMachine>(), "web", "says what it lacks", told).await?;
        let all = vm.status.and_then(|status| status.conditions).unwrap_or_default();
        let failure = all.iter().find(|condition| condition.type_ == conditions::vm::FAILURE).unwrap();
        assert!(failure.message.as_ref().unwrap().contains("Containerized Data Importer"), "{failure:?}");
        assert_eq!(failure.reason.as_deref(), Some("FailedCreate"));
        Ok(())
    })
    .await
}
