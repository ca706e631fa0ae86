//! Seeds for cloud-init.

use std::fs;

use kubevirt_domain::{HostFacts, QemuFacts, convert};
use serde_json::{Value, json};

use super::pod::{Pod, iso, label, vmi};
use crate::volumes::{DataSource, Note, tagged_devices};

fn seed(kind: &str, source: Value) -> kubevirt_api::vmi::VirtualMachineInstance {
    vmi(json!([{"name": "seed", kind: source}]))
}

#[test]
fn no_cloud_has_its_files_at_the_root() {
    let cases = [
        (json!({"userData": "#cloud-config\n"}), "#cloud-config\n", None),
        (json!({"userDataBase64": "aGVs\nbG8="}), "hello", None),
        (json!({"userData": "u", "networkData": "version: 2"}), "u", Some("version: 2")),
        (json!({"networkDataBase64": "bmV0"}), "", Some("net")),
    ];
    for (source, user, network) in cases {
        let pod = Pod::new();
        let prepared = pod.prepare(&seed("cloudInitNoCloud", source)).unwrap();
        assert_eq!(prepared.seeds[0].source(), DataSource::NoCloud);
        assert!(prepared.facts.contains_key("seed"));
        let path = pod.layout.cloud_init("shop", "web", false);
        for windows in [false, true] {
            let files = iso(&path, windows);
            assert_eq!(files["user-data"], user);
            assert_eq!(files["meta-data"], r#"{"instance-id":"u-1","local-hostname":"web"}"#);
            assert_eq!(files.get("network-config").map(String::as_str), network);
            assert_eq!(files.len(), 2 + usize::from(network.is_some()));
        }
        assert_eq!(label(&path), "cidata");
    }
}

#[test]
fn config_drives_have_the_files_of_openstack() {
    let pod = Pod::new();
    let source = json!({"userData": "u", "networkData": "{}"});
    pod.prepare(&seed("cloudInitConfigDrive", source)).unwrap();
    let path = pod.layout.cloud_init("shop", "web", true);
    for windows in [false, true] {
        let files = iso(&path, windows);
        assert_eq!(files["openstack/latest/user_data"], "u");
        assert_eq!(files["openstack/latest/network_data.json"], "{}");
        assert_eq!(
            files["openstack/latest/meta_data.json"],
            r#"{"instance_id":"web.shop","hostname":"web","uuid":"u-1"}"#
        );
        assert_eq!(files.len(), 3);
    }
    assert_eq!(label(&path), "config-2");
}

#[test]
fn data_comes_from_secrets_too() {
    for (kind, config_drive, names) in [
        ("cloudInitNoCloud", false, ["user-data", "network-config"]),
        ("cloudInitConfigDrive", true, ["openstack/latest/user_data", "openstack/latest/network_data.json"]),
    ] {
        for keys in [["userdata", "networkdata"], ["userData", "networkData"]] {
            let pod = Pod::new();
            let source = json!({"secretRef": {"name": "s"}, "networkDataSecretRef": {"name": "s"}});
            for (key, text) in keys.into_iter().zip(["from u", "from n"]) {
                pod.file(format!("private/secret/seed/{key}"), text);
            }
            // A kubelet makes a folder for a key that is not there.
            for other in ["userdata", "userData", "networkdata", "networkData"] {
                let _ = fs::create_dir(pod.path("private/secret/seed").join(other));
            }
            let prepared = pod.prepare(&seed(kind, source)).unwrap();
            assert!(prepared.notes.is_empty());
            let files = iso(pod.layout.cloud_init("shop", "web", config_drive), false);
            assert_eq!((files[names[0]].as_str(), files[names[1]].as_str()), ("from u", "from n"));
        }
    }
}

#[test]
fn what_is_missing_is_told() {
    let both = json!({"secretRef": {"name": "s"}, "networkDataSecretRef": {"name": "s"}});
    let cases = [
        (json!({}), "needs user data or network data"),
        (json!({"userData": ""}), "needs user data or network data"),
        (json!({"userDataBase64": "?"}), "userDataBase64 is not base64"),
        (json!({"networkDataBase64": "?"}), "networkDataBase64 is not base64"),
        (json!({"secretRef": {"name": "s"}}), "the secret of secretRef has no key \"userdata\""),
        (json!({"networkDataSecretRef": {"name": "s"}}), "has no key \"networkdata\""),
        (both.clone(), "has no key \"userdata\""),
    ];
    for (source, expected) in cases {
        let pod = Pod::new();
        pod.file("private/secret/seed/other", "x");
        pod.file("private/secret/seed/userdata", "");
        let problem = pod.problem(&seed("cloudInitNoCloud", source));
        assert!(problem.starts_with("volume \"seed\": ") && problem.contains(expected), "{problem}");
    }
    let pod = Pod::new();
    let problem = pod.problem(&seed("cloudInitNoCloud", both.clone()));
    assert!(problem.contains("should have been mounted"), "{problem}");
    pod.file("private/secret/seed/userdata", "u");
    let prepared = pod.prepare(&seed("cloudInitNoCloud", both)).unwrap();
    assert_eq!(prepared.notes, [Note::SecretKey { volume: "seed".into(), key: "networkdata" }]);
}

#[test]
fn ssh_keys_go_into_the_seed_that_is_asked_for() {
    let pod = Pod::new();
    pod.mount("private/secret/one-access-cred", &[("b", b"ssh-rsa b"), ("a", b"ssh-rsa a"), ("empty", b"")]);
    pod.mount("private/secret/two-access-cred", &[("c", b"ssh-rsa c")]);
    let credential = |secret: &str, way: &str| json!({"sshPublicKey": {"source": {"secret": {"secretName": secret}}, "propagationMethod": {way: {}}}});
    let mut vmi = seed("cloudInitNoCloud", json!({"userData": "u"}));
    vmi.spec.access_credentials = serde_json::from_value(json!([
        credential("one", "noCloud"),
        credential("other", "configDrive"),
        credential("two", "noCloud"),
    ]))
    .unwrap();
    pod.prepare(&vmi).unwrap();
    let files = iso(pod.layout.cloud_init("shop", "web", false), false);
    assert_eq!(
        files["meta-data"],
        r#"{"instance-id":"u-1","local-hostname":"web","public-keys":{"0":"ssh-rsa a","1":"ssh-rsa b","2":"ssh-rsa c"}}"#
    );

    let mut drive = seed("cloudInitConfigDrive", json!({"userData": "u"}));
    drive.spec.access_credentials = vmi.spec.access_credentials.clone();
    let problem = pod.problem(&drive);
    assert!(problem.contains("other-access-cred is not there"), "{problem}");
    pod.mount("private/secret/other-access-cred", &[("key", b"ssh-rsa o")]);
    pod.prepare(&drive).unwrap();
    let files = iso(pod.layout.cloud_init("shop", "web", true), false);
    assert!(files["openstack/latest/meta_data.json"].ends_with(r#""public_keys":{"0":"ssh-rsa o"}}"#));

    vmi.spec.access_credentials = serde_json::from_value(json!([credential("../up", "noCloud")])).unwrap();
    assert!(pod.problem(&vmi).contains("cannot be the name of a file"));
}

#[test]
fn config_drives_tell_where_tagged_devices_are() {
    let pod = Pod::new();
    let mut vmi = seed("cloudInitConfigDrive", json!({"userData": "u"}));
    vmi.spec.domain.devices.interfaces = serde_json::from_value(json!([
        {"name": "plain", "masquerade": {}},
        {"name": "data", "masquerade": {}, "tag": "fast", "macAddress": "02:00:00:00:00:07"},
    ]))
    .unwrap();
    vmi.spec.networks = serde_json::from_value(json!([
        {"name": "plain", "pod": {}}, {"name": "data", "multus": {"networkName": "x"}},
    ]))
    .unwrap();
    vmi.spec.domain.memory = serde_json::from_value(json!({"guest": "1Gi"})).unwrap();
    let prepared = pod.prepare(&vmi).unwrap();
    let mut host = HostFacts { volumes: prepared.facts, ..HostFacts::default() };
    for (name, mac) in [("plain", "02:00:00:00:00:06"), ("data", "02:00:00:00:00:07")] {
        let facts = serde_json::from_value(json!({"tap": format!("tap-{name}"), "mac": mac})).unwrap();
        host.interfaces.insert(name.into(), facts);
    }
    let domain = convert(&vmi, &host, &QemuFacts::default(), &pod.layout).unwrap();
    let devices = tagged_devices(&vmi, &domain);
    assert_eq!(devices.len(), 1, "{devices:?}");
    prepared.seeds[0].write(&devices).unwrap();
    let files = iso(pod.layout.cloud_init("shop", "web", true), false);
    let facts: Value = serde_json::from_str(&files["openstack/latest/meta_data.json"]).unwrap();
    let address = domain.interfaces[1].address.to_string();
    assert_eq!(
        facts["devices"],
        json!([{"type": "nic", "bus": "pci", "address": address, "mac": "02:00:00:00:00:07", "tags": ["fast"]}])
    );
}
