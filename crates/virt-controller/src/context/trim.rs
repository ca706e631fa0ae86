//! What stores leave out, since a pod or node is mostly text that no controller reads.

use k8s_openapi::api::core::v1::{Container, Node, Pod, Volume};
use kube::Resource;
use kubevirt_api::names::external::kubernetes;
use kubevirt_api::snapshot::{VirtualMachineSnapshot, VirtualMachineSnapshotStatus};
use kubevirt_component::Unread;

/// Leaves out what `kubectl apply` was given, which is the whole object once more. The annotations stay a map, even an
/// empty one, so that a difference adds to those that there are.
pub fn applied<K: Resource>(object: &mut K) {
    if let Some(annotations) = &mut object.meta_mut().annotations {
        annotations.remove(kubernetes::LAST_APPLIED);
    }
}

/// What of a pod is not even read, since [`pod`] leaves it out.
#[derive(Clone, Copy, Debug)]
pub struct Bulk;

impl Unread for Bulk {
    fn fields(text: &str) -> &'static [&'static str] {
        // A volume has room for each of its thirty kinds, and only claims are kept.
        let has_claims = text.contains("\"persistentVolumeClaim\"");
        if has_claims { &BULK[1..] } else { BULK }
    }
}

const BULK: &[&str] = &[
    "volumes",
    "managedFields",
    "affinity",
    "allocatedResources",
    "args",
    "command",
    "env",
    "hostIPs",
    "initContainers",
    "lifecycle",
    "livenessProbe",
    "nodeSelector",
    "ports",
    "readinessProbe",
    "resources",
    "securityContext",
    "startupProbe",
    "volumeMounts",
];

/// Leaves of a pod what controllers ask about: names and images of containers, volumes that are claims, where it runs,
/// what it tolerates and what its readiness waits for. What is left out is never written, since writes are differences.
pub fn pod(pod: &mut Pod) {
    let Some(spec) = pod.spec.take() else { return };
    let mut kept = k8s_openapi::api::core::v1::PodSpec {
        node_name: spec.node_name,
        tolerations: spec.tolerations,
        readiness_gates: spec.readiness_gates,
        containers: spec.containers.into_iter().map(container).collect(),
        volumes: spec.volumes.map(claims).filter(|claims| !claims.is_empty()),
        ..Default::default()
    };
    kept.containers.shrink_to_fit();
    pod.spec = Some(kept);
    if let Some(status) = &mut pod.status {
        status.host_ips = None;
        status.resource_claim_statuses = None;
        status.ephemeral_container_statuses = None;
    }
}

fn container(container: Container) -> Container {
    Container { name: container.name, image: container.image, ..Default::default() }
}

// Not `retain`, which would keep the room of the others.
fn claims(volumes: Vec<Volume>) -> Vec<Volume> {
    let mut claims: Vec<Volume> =
        volumes.into_iter().filter(|volume| volume.persistent_volume_claim.is_some()).collect();
    claims.shrink_to_fit();
    claims
}

/// Leaves of a node its labels and annotations, and what its pods may ask for.
pub fn node(node: &mut Node) {
    if let Some(status) = &mut node.status {
        status.images = None;
        status.volumes_in_use = None;
        status.volumes_attached = None;
        status.conditions = None;
    }
}

/// Leaves of a snapshot what it is of, and whether and when it was taken.
pub fn snapshot(snapshot: &mut VirtualMachineSnapshot) {
    snapshot.metadata.annotations = None;
    snapshot.status = snapshot.status.take().map(|status| VirtualMachineSnapshotStatus {
        phase: status.phase,
        creation_time: status.creation_time,
        ..Default::default()
    });
}

#[cfg(test)]
mod tests {
    use kubevirt_component::Readable;
    use serde_json::{Value, json};

    use super::*;

    /// A pod as an API server tells of it, with something in all that is not read.
    fn told(volumes: &Value) -> Value {
        let bulk = |value: Value| BULK.iter().map(move |name| ((*name).to_owned(), value.clone()));
        let mut container = json!({"name": "compute", "image": "launcher:1"});
        for name in ["args", "command", "env", "ports", "volumeMounts"] {
            container[name] = json!([]);
        }
        container["resources"] = json!({"limits": {"memory": "1Gi"}});
        let mut pod = json!({
            "metadata": {
                "name": "virt-launcher-web", "labels": {"kubevirt.io": "virt-launcher"},
                "annotations": bulk(json!("a text of that name")).collect::<Value>(),
                "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:spec": {}}}],
            },
            "spec": {
                "nodeName": "node01",
                "tolerations": [{"key": "a", "operator": "Exists"}],
                "containers": [container],
                "volumes": volumes,
            },
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [{
                    "name": "compute", "image": "launcher:1", "imageID": "", "ready": true, "restartCount": 0,
                    "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
                }],
            },
        });
        pod["spec"]["affinity"] = json!({"nodeAffinity": {}});
        pod["spec"]["nodeSelector"] = json!({"kubevirt.io/schedulable": "true"});
        pod["status"]["hostIPs"] = json!([{"ip": "10.0.0.1"}]);
        pod
    }

    #[test]
    fn what_is_not_read_would_not_be_kept() {
        let claim = json!({"name": "root", "persistentVolumeClaim": {"claimName": "data"}});
        let other = json!({"name": "run", "emptyDir": {}});
        for (volumes, kept) in [(json!([other, claim]), Some(1)), (json!([other]), None), (json!([]), None)] {
            let text = told(&volumes).to_string();
            let mut whole: Pod = serde_json::from_str(&text).unwrap();
            whole.metadata.managed_fields = None;
            let read: Readable<Pod, Bulk> = serde_json::from_str(&text).unwrap();
            let mut read = read.0.unwrap();
            assert_ne!(read, whole);
            let all_read = read.spec.as_ref().and_then(|spec| spec.volumes.as_ref()).map(Vec::len);
            assert_eq!(all_read, kept.map(|_| 2), "{volumes}");
            pod(&mut whole);
            pod(&mut read);
            assert_eq!(read, whole);
            let spec = read.spec.unwrap();
            assert_eq!((spec.containers.len(), spec.volumes.map(|volumes| volumes.len())), (1, kept));
        }
    }
}
