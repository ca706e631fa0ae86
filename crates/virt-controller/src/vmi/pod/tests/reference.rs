//! The pod of a VMI that KubeVirt v1.9 ran, next to the pod that KubeVirt made for it.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kubevirt_admission::ClusterConfig;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::json;

use super::super::{Surroundings, launcher};
use super::lines;

/// What is not the same, by how its line begins, and why.
const DIFFERENCES: [(&str, &str); 22] = [
    (
        "metadata.name:",
        "follows from the VMI and the attempt, so that a second one cannot be made by mistake",
    ),
    ("metadata.generateName:", "see metadata.name"),
    ("metadata.uid:", "is given by the API server"),
    ("metadata.creationTimestamp:", "is given by the API server"),
    ("metadata.generation:", "is given by the API server"),
    ("metadata.resourceVersion:", "is given by the API server"),
    ("metadata.labels.kubevirt.io/nodeName:", "comes with the node"),
    ("metadata.annotations.kubevirt.io/memory-overhead-bytes:", "our overhead is smaller"),
    ("spec.nodeName:", "is given by the scheduler"),
    ("spec.preemptionPolicy:", "is given by the API server"),
    ("spec.priority:", "is given by the API server"),
    ("spec.dnsPolicy:", "is given by the API server"),
    ("spec.schedulerName:", "is given by the API server"),
    ("spec.serviceAccount", "is given by the API server"),
    ("spec.tolerations", "are given by the API server"),
    ("spec.containers[compute].terminationMessagePath:", "is given by the API server"),
    ("spec.containers[volumeroot].terminationMessage", "is given by the API server"),
    ("spec.initContainers[volumeroot-init].terminationMessage", "is given by the API server"),
    ("spec.initContainers[container-disk-binary].terminationMessagePath:", "is given by the API server"),
    ("spec.containers[compute].resources.requests.memory:", "our overhead is smaller"),
    ("spec.containers[compute].command:", "compared word by word below"),
    ("spec.initContainers[guest-console-log]", "the launcher logs the console itself unless asked otherwise"),
];

fn reference() -> Pod {
    serde_json::from_str(include_str!("../../../../testdata/launcher-pod.json")).unwrap()
}

fn ours() -> Pod {
    let mut vmi: VirtualMachineInstance =
        serde_json::from_str(include_str!("../../../../testdata/vmi-running.json")).unwrap();
    // As it was when the pod was made.
    vmi.status.as_mut().unwrap().machine = None;
    vmi.metadata.labels.as_mut().unwrap().remove("kubevirt.io/nodeName");
    let config = json!({ "spec": { "configuration": {
        "imagePullPolicy": "Never",
        "developerConfiguration": { "useEmulation": true },
    } } });
    let config = ClusterConfig::of(&serde_json::from_value(config).unwrap());
    launcher(&vmi, &Surroundings::new(&config, "localhost/kubevirt/virt-launcher:v1.9.0")).unwrap()
}

#[test]
fn the_pod_differs_from_kubevirts_only_where_it_should() {
    let (reference, ours) = (lines::of(&reference()), lines::of(&ours()));
    let excused = |line: &&String| DIFFERENCES.iter().any(|(start, _)| line.starts_with(start));
    let differing: Vec<&String> = reference.symmetric_difference(&ours).collect();
    let wrong: Vec<_> = differing.iter().filter(|line| !excused(line)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let needless: Vec<_> = DIFFERENCES
        .iter()
        .filter(|(start, _)| !differing.iter().any(|line| line.starts_with(start)))
        .collect();
    assert!(needless.is_empty(), "are the same: {needless:?}");
}

#[test]
fn the_command_lacks_only_what_speaks_of_libvirt() {
    let words = |pod: &Pod| -> BTreeSet<String> {
        let command = pod.spec.as_ref().unwrap().containers[0].command.clone().unwrap();
        command.into_iter().collect()
    };
    let (reference, ours) = (words(&reference()), words(&ours()));
    let missing: Vec<_> = reference.difference(&ours).map(String::as_str).collect();
    let more: Vec<_> = ours.difference(&reference).map(String::as_str).collect();
    // The timeout follows from the UID here, and the toleration travels with each request there.
    assert_eq!(missing, ["--libvirt-hook-server-and-client", "--upgrade-ordinal-ifaces", "299s"]);
    assert_eq!(more.len(), 3, "{more:?}");
    assert_eq!(&more[..2], ["--less-pvc-space-toleration", "10"]);
}
