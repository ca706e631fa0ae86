//! Images that disks are in, as volumes of the pod.

use kubevirt_admission::ClusterConfig;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};

use super::super::{Surroundings, launcher};

/// Names of the containers that run before the machine, and of the pod's volumes with images.
fn made(annotations: Value) -> (Vec<String>, Vec<String>) {
    let config = ClusterConfig::default();
    let around = Surroundings { image_volumes: true, ..Surroundings::new(&config, "image") };
    let vmi: VirtualMachineInstance = serde_json::from_value(json!({
        "metadata": { "name": "a", "uid": "u", "annotations": annotations },
        "spec": {
            "domain": { "devices": { "disks": [{ "name": "root" }] } },
            "volumes": [{ "name": "root", "containerDisk": { "image": "registry/disk" } }],
        },
    }))
    .unwrap();
    let spec = launcher(&vmi, &around).unwrap().spec.unwrap();
    let before = spec.init_containers.unwrap_or_default().into_iter().map(|container| container.name);
    let volumes = spec.volumes.unwrap_or_default().into_iter().filter(|volume| volume.image.is_some());
    (before.collect(), volumes.map(|volume| volume.name).collect())
}

#[test]
fn a_container_tells_the_digest_unless_the_user_wants_none() {
    let skip = |value: &str| json!({ "kubevirt.io/image-volume-skip-digest-resolution": value });
    let asked = (vec!["volumeroot".to_owned()], vec!["root".to_owned(), "launcher-volume".to_owned()]);
    assert_eq!(made(json!({})), asked);
    assert_eq!(made(skip("false")), asked);
    assert_eq!(made(skip("true")), (Vec::new(), vec!["root".to_owned()]));
}
