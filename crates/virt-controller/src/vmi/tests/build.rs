//! Instances, pods and what is known of them, for tests.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kubevirt_admission::ClusterConfig;
use kubevirt_api::data_volume::DataVolume;
use kubevirt_api::names::{finalizers, labels};
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};

use crate::context::Settings;
use crate::vmi::state_claim::Storage;
use crate::vmi::{Observed, Step};

pub const IMAGE: &str = "registry/launcher:1";

pub fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

/// Lays one JSON object over another.
pub fn over(mut base: Value, more: Value) -> Value {
    fn merge(base: &mut Value, more: Value) {
        match (base, more) {
            (Value::Object(base), Value::Object(more)) => {
                for (name, value) in more {
                    merge(base.entry(name).or_insert(Value::Null), value);
                }
            }
            (base, more) => *base = more,
        }
    }
    merge(&mut base, more);
    base
}

pub fn vmi(phase: &str, more: Value) -> VirtualMachineInstance {
    let base = json!({
        "metadata": {
            "name": "web", "namespace": "ns", "uid": "vmi-uid", "resourceVersion": "1",
            "finalizers": [finalizers::FOREGROUND_DELETE],
        },
        "spec": { "domain": { "devices": {} } },
        "status": { "phase": phase },
    });
    serde_json::from_value(over(base, more)).unwrap()
}

/// A launcher pod in some state of its life.
pub fn pod(state: &str) -> Pod {
    let container = |state: Value, ready: bool| {
        json!([{
            "name": "compute", "image": IMAGE, "imageID": "", "restartCount": 0, "ready": ready, "state": state,
        }])
    };
    let waiting = |reason: &str| json!({"waiting": {"reason": reason, "message": format!("{reason} it is")}});
    let (phase, containers) = match state {
        "new" | "unschedulable" => ("Pending", json!([])),
        "creating" => ("Pending", container(waiting("ContainerCreating"), false)),
        "no-image" => ("Pending", container(waiting("ImagePullBackOff"), false)),
        "running" | "leaving" => ("Running", container(json!({"running": {}}), false)),
        "ready" => ("Running", container(json!({"running": {}}), true)),
        "succeeded" => ("Succeeded", container(json!({"terminated": {"exitCode": 0}}), false)),
        "failed" => ("Failed", container(json!({"terminated": {"exitCode": 1}}), false)),
        other => panic!("no such state: {other}"),
    };
    let mut conditions = vec![];
    if state == "unschedulable" {
        conditions.push(json!({
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes fit",
        }));
    }
    if state == "ready" {
        conditions.push(json!({"type": "Ready", "status": "True"}));
    }
    let node = if matches!(state, "new" | "unschedulable") { Value::Null } else { json!("node1") };
    let mut base = json!({
        "metadata": {
            "name": "virt-launcher-web-x", "namespace": "ns", "uid": "pod-uid",
            "creationTimestamp": "2026-01-01T11:00:00Z",
            "labels": { labels::APP: "virt-launcher", labels::CREATED_BY: "vmi-uid" },
            "ownerReferences": [{
                "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "web", "uid": "vmi-uid",
                "controller": true,
            }],
        },
        "spec": { "nodeName": node, "containers": [{ "name": "compute", "image": IMAGE }] },
        "status": {
            "phase": phase, "qosClass": "Burstable", "containerStatuses": containers, "conditions": conditions,
        },
    });
    if state == "leaving" {
        base = over(base, json!({"metadata": {"deletionTimestamp": "2026-01-01T11:30:00Z"}}));
    }
    serde_json::from_value(base).unwrap()
}

/// A pod that has volumes provisioned.
pub fn temporary(state: &str) -> Pod {
    let mut pod = pod(state);
    pod.metadata.name = Some("virt-launcher-web-t".into());
    pod.metadata.uid = Some("temporary-uid".into());
    let mark = kubevirt_api::names::annotations::EPHEMERAL_PROVISIONING.to_owned();
    pod.metadata.annotations = Some([(mark, "true".to_owned())].into());
    pod
}

pub fn observed(vmi: VirtualMachineInstance, pods: impl IntoIterator<Item = Pod>) -> Observed {
    Observed {
        vmi: Arc::new(vmi),
        has_owner: false,
        pods: pods.into_iter().map(Arc::new).collect(),
        attachments: vec![],
        pods_confirmed: true,
        claims: Default::default(),
        data_volumes: Default::default(),
        storage: Storage::default(),
        migrates: false,
        tsc_frequency: 0,
        vsock_id: 42,
        config: Arc::new(ClusterConfig::default()),
        settings: Arc::new(Settings { launcher_image: IMAGE.into(), ..Settings::default() }),
        trouble: None,
    }
}

pub fn claim(name: &str, phase: &str, data_volume: Option<&str>) -> PersistentVolumeClaim {
    let owners = data_volume.map(|name| {
        json!([{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "name": name, "uid": "d", "controller": true}])
    });
    let claim = json!({
        "metadata": { "name": name, "namespace": "ns", "uid": format!("claim-{name}"), "ownerReferences": owners },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
            "resources": { "requests": { "storage": "1Gi" } },
        },
        "status": { "phase": phase, "capacity": { "storage": "2Gi" } },
    });
    serde_json::from_value(claim).unwrap()
}

pub fn data_volume(name: &str, phase: &str) -> DataVolume {
    let ready = if phase == "Succeeded" { "True" } else { "False" };
    let object = json!({
        "metadata": { "name": name, "namespace": "ns" },
        "status": { "phase": phase, "conditions": [{ "type": "Ready", "status": ready }] },
    });
    serde_json::from_value(object).unwrap()
}

/// A step in short.
pub fn short(step: &Step) -> String {
    use crate::vmi::NewPod;
    let name = |meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
        meta.name.clone().unwrap_or_default()
    };
    match step {
        Step::LookForPods => "look".into(),
        Step::CreateStateClaim(_) => "make state claim".into(),
        Step::AdoptStateClaim(_) => "adopt state claim".into(),
        Step::DeleteStateClaim(_) => "delete state claim".into(),
        Step::CreatePod(NewPod::Launcher(_)) => "make launcher".into(),
        Step::CreatePod(NewPod::Provisioner(_)) => "make provisioner".into(),
        Step::CreatePod(NewPod::Attachment { volumes, .. }) => {
            let names: Vec<_> = volumes.iter().map(|volume| volume.name.as_str()).collect();
            format!("hold {}", names.join(","))
        }
        Step::CreatePod(NewPod::Trigger { volume, .. }) => format!("trigger {}", volume.name),
        Step::DeletePod { pod, .. } => format!("delete {}", name(&pod.metadata)),
        Step::MarkPod { labels, annotations, condition, .. } => {
            let marks = (!labels.is_empty() || !annotations.is_empty()).then(|| "mark pod".to_owned());
            let condition = condition.as_ref().map(|condition| format!("unpaused {}", condition.status));
            marks.into_iter().chain(condition).collect::<Vec<_>>().join(", ")
        }
    }
}

pub fn all_short(steps: &[Step]) -> Vec<String> {
    steps.iter().map(short).collect()
}
