//! `kubevirt install-manifests` as people call it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::BINARY;

fn print(arguments: &[&str]) -> String {
    let output = Command::new(BINARY).arg("install-manifests").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn objects(text: &str) -> Vec<Value> {
    let documents = text.split("---\n").filter(|document| !document.is_empty());
    documents.map(|document| serde_saphyr::from_str(document).unwrap()).collect()
}

fn find<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap()
}

#[test]
fn arguments_reach_the_objects() {
    let folder = std::env::temp_dir().join(format!("kubevirt-install-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let config = folder.join("kubevirt.yaml");
    fs::write(
        &config,
        "apiVersion: kubevirt.io/v1\nkind: KubeVirt\nspec:\n  infra:\n    replicas: 3\n  \
         configuration:\n    developerConfiguration:\n      featureGates: [A, B]\n",
    )
    .unwrap();
    let text = print(&[
        "--namespace=virt",
        "--image=registry/kubevirt:7",
        "--use-emulation",
        "--feature-gate=B",
        "--feature-gate=C",
        "--no-definitions",
        "--no-api-services",
        "--config",
        config.to_str().unwrap(),
    ]);
    let objects = objects(&text);
    assert_eq!(find(&objects, "Namespace")["metadata"]["name"], "virt");
    let handler = find(&objects, "DaemonSet");
    assert_eq!(handler["spec"]["template"]["spec"]["containers"][0]["image"], "registry/kubevirt:7");
    assert_eq!(find(&objects, "Deployment")["spec"]["replicas"], 3);
    let developer = &find(&objects, "KubeVirt")["spec"]["configuration"]["developerConfiguration"];
    assert_eq!(developer["useEmulation"], true);
    assert_eq!(developer["featureGates"], serde_json::json!(["A", "B", "C"]));
    assert!(!text.contains("kind: CustomResourceDefinition") && !text.contains("kind: APIService"));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn definitions_can_come_first() {
    let objects = objects(&print(&["--definitions"]));
    assert!(objects.iter().all(|object| object["kind"] == "CustomResourceDefinition"));
    assert!(!objects.is_empty());
}

#[test]
fn kept_certificates_make_the_same_manifests() {
    let folder: PathBuf = std::env::temp_dir().join(format!("kubevirt-kept-{}", std::process::id()));
    let arguments = ["--no-definitions", "--certificates", folder.to_str().unwrap()];
    let first = print(&arguments);
    assert_eq!(print(&arguments), first);
    fs::remove_dir_all(folder.join("kubevirt-virt-api-certs")).unwrap();
    assert_ne!(print(&arguments), first);
    fs::remove_dir_all(folder).unwrap();
}
