//! The smallest cluster, as other tests use it.

use xtask::cluster::processes;
use xtask::cluster::{Cluster, Options};

#[test]
#[ignore = "builds Kubernetes when it is not in the cache yet"]
fn serves_custom_resources_and_leaves_nothing_behind() {
    let options = Options::control_plane_only("test-control-plane");
    let cluster = Cluster::up(&options).unwrap();
    let again = Cluster::up(&options).unwrap();
    assert_eq!(cluster.kubeconfig(), again.kubeconfig());

    let folder = cluster.layout().root().to_owned();
    let definition = folder.join("crd.json");
    std::fs::write(&definition, CRD).unwrap();
    cluster.kubectl(&["apply", "--filename", &definition.to_string_lossy()]).unwrap();
    cluster.kubectl(&["wait", "--for=condition=Established", "crd/lamps.test.kubevirt.io"]).unwrap();
    assert_eq!(cluster.kubectl(&["get", "lamps", "--output=name"]).unwrap(), "");
    let refused = cluster.kubectl(&["get", "candles"]).unwrap_err().to_string();
    assert!(refused.contains("the server doesn't have a resource type"), "{refused}");

    assert!(cluster.down().unwrap());
    assert!(!folder.exists());
    assert!(processes::running(&folder).unwrap().is_empty());
    assert!(!again.down().unwrap());
}

const CRD: &str = r#"{
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "lamps.test.kubevirt.io"},
    "spec": {
        "group": "test.kubevirt.io",
        "scope": "Namespaced",
        "names": {"kind": "Lamp", "plural": "lamps"},
        "versions": [{
            "name": "v1",
            "served": true,
            "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object"}}
        }]
    }
}"#;
