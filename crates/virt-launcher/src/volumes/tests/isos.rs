//! ISO images of ConfigMaps, Secrets, the downward API, service accounts and answer files.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::pod::{Pod, iso, label, vmi, with_status};
use crate::volumes::{Purpose, plan};

#[test]
fn keys_become_files_of_an_iso() {
    let cases = [
        ("config-map", json!({"configMap": {"name": "x"}}), "config-map-disks/v.iso", "cfgdata"),
        (
            "config-map",
            json!({"configMap": {"name": "x", "volumeLabel": "OEMDRV"}}),
            "config-map-disks/v.iso",
            "OEMDRV",
        ),
        (
            "secret",
            json!({"secret": {"secretName": "x", "volumeLabel": "my secret"}}),
            "secret-disks/v.iso",
            "my secret",
        ),
        ("downwardapi", json!({"downwardAPI": {"fields": []}}), "downwardapi-disks/v.iso", "cfgdata"),
    ];
    for (folder, mut volume, image, expected) in cases {
        let pod = Pod::new();
        volume["name"] = "v".into();
        let vmi = vmi(json!([volume]));
        let problem = pod.problem(&vmi);
        assert!(problem.contains("should have been mounted"), "{problem}");
        let long = "k".repeat(200);
        let files: &[(&str, &[u8])] =
            &[("app.Properties", b"a=b\n"), (".hidden", b"h"), ("in/a/folder", b"f"), (&long, b"long")];
        pod.mount(format!("private/{folder}/v"), files);
        let facts = pod.prepare(&vmi).unwrap().facts;
        assert!(!facts["v"].block);
        let path = pod.path("private").join(image);
        let seen = iso(&path, false);
        let all: Vec<_> = seen.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(
            all,
            [(".hidden", "h"), ("app.Properties", "a=b\n"), ("in/a/folder", "f"), (&long, "long")]
        );
        assert_eq!(iso(&path, true)["app.Properties"], "a=b\n");
        assert_eq!(label(&path), expected);
    }
}

#[test]
fn an_iso_is_of_the_current_state() {
    let pod = Pod::new();
    let folder = pod.mount("private/config-map/v", &[("key", b"old")]);
    let vmi = vmi(json!([{"name": "v", "configMap": {"name": "x"}}]));
    pod.prepare(&vmi).unwrap();
    pod.file("private/config-map/v/..2031/key", "new");
    fs::remove_file(folder.join("..data")).unwrap();
    symlink("..2031", folder.join("..data")).unwrap();
    pod.prepare(&vmi).unwrap();
    assert_eq!(iso(pod.path("private/config-map-disks/v.iso"), false)["key"], "new");
}

#[test]
fn links_that_lead_out_are_refused() {
    for target in ["/etc/passwd", "../../../../outside"] {
        let pod = Pod::new();
        pod.file("outside", "x");
        let folder = pod.mount("private/secret/v", &[("key", b"x")]);
        symlink(target, folder.join("..data/link")).unwrap();
        let problem = pod.problem(&vmi(json!([{"name": "v", "secret": {"secretName": "x"}}])));
        assert!(problem.contains("link that leads out of the volume"), "{problem}");
    }
    // The link to the current state itself.
    let pod = Pod::new();
    pod.file("outside/key", "x");
    fs::create_dir_all(pod.path("private/secret/v")).unwrap();
    symlink("../../../outside", pod.path("private/secret/v/..data")).unwrap();
    let problem = pod.problem(&vmi(json!([{"name": "v", "secret": {"secretName": "x"}}])));
    assert!(problem.contains("leads out of the volume"), "{problem}");
}

#[test]
fn folders_without_end_are_refused() {
    let pod = Pod::new();
    let folder = pod.mount("private/secret/v", &[("key", b"x")]);
    symlink(".", folder.join("..data/round")).unwrap();
    let problem = pod.problem(&vmi(json!([{"name": "v", "secret": {"secretName": "x"}}])));
    assert!(problem.contains("too deep"), "{problem}");
}

#[test]
fn a_volume_that_is_no_disk_gets_no_iso() {
    let pod = Pod::new();
    let mut vmi = vmi(json!([{"name": "v", "configMap": {"name": "x"}}]));
    vmi.spec.domain.devices.disks = None;
    assert!(pod.prepare(&vmi).unwrap().facts.is_empty());
}

#[test]
fn an_empty_folder_is_an_empty_iso_and_a_long_label_an_error() {
    let pod = Pod::new();
    fs::create_dir_all(pod.path("private/config-map/v")).unwrap();
    pod.prepare(&vmi(json!([{"name": "v", "configMap": {"name": "x", "optional": true}}]))).unwrap();
    assert!(iso(pod.path("private/config-map-disks/v.iso"), false).is_empty());
    let long = "l".repeat(33);
    let problem = pod.problem(&vmi(json!([{"name": "v", "configMap": {"name": "x", "volumeLabel": long}}])));
    assert!(problem.contains("the label"), "{problem}");
}

#[test]
fn a_service_account_is_one_iso() {
    let pod = Pod::new();
    pod.mount("service-account", &[("token", b"t"), ("namespace", b"shop"), ("ca.crt", b"c")]);
    pod.prepare(&vmi(json!([{"name": "v", "serviceAccount": {"serviceAccountName": "x"}}]))).unwrap();
    let path = pod.path("private/service-account-disk/service-account.iso");
    let names: Vec<_> = iso(&path, false).into_keys().collect();
    assert_eq!(names, ["ca.crt", "namespace", "token"]);
}

#[test]
fn windows_needs_an_answer_file() {
    let pod = Pod::new();
    let vmi_of = |source: serde_json::Value| vmi(json!([{"name": "v", "sysprep": source}]));
    let vmi = vmi_of(json!({"configMap": {"name": "x"}}));
    let folder = pod.mount("private/sysprep/v", &[("other.xml", b"x")]);
    let problem = pod.problem(&vmi);
    assert!(problem.contains("autounattend.xml or unattend.xml"), "{problem}");
    fs::write(folder.join("..data/Autounattend.xml"), "<unattend/>").unwrap();
    pod.prepare(&vmi).unwrap();
    let path = pod.path("private/sysprep-disks/v.iso");
    assert_eq!(iso(&path, true)["Autounattend.xml"], "<unattend/>");
    assert_eq!(label(&path), "unattendCD");
    assert!(pod.prepare(&vmi_of(json!({}))).unwrap().facts.is_empty());
}

#[test]
fn a_target_receives_what_the_other_node_made() {
    let pod = Pod::new();
    let volumes = json!([
        {"name": "v", "configMap": {"name": "x"}},
        {"name": "seed", "cloudInitNoCloud": {"userData": "x"}},
    ]);
    let errors = pod.prepare_for(&vmi(volumes.clone()), Purpose::MigrationTarget).unwrap_err();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].to_string().contains("does not tell its size"), "{}", errors[0]);
    let status =
        json!([{"name": "v", "target": "", "size": 4096}, {"name": "seed", "target": "", "size": 8192}]);
    let vmi = with_status(vmi(volumes), status);
    let prepared = pod.prepare_for(&vmi, Purpose::MigrationTarget).unwrap();
    assert_eq!(prepared.facts.len(), 2);
    assert!(prepared.seeds.is_empty());
    let size = |path: &str| fs::metadata(path).unwrap().len();
    assert_eq!(size(&pod.layout.cloud_init("shop", "web", false)), 8192);
    assert_eq!(size(pod.path("private/config-map-disks/v.iso").to_str().unwrap()), 4096);
}

#[test]
fn large_files_do_not_sit_in_memory() {
    let pod = Pod::new();
    pod.mount("private/config-map/v", &[("key", b"")]);
    let file = fs::File::create(pod.path("private/config-map/v/..data/large")).unwrap();
    file.set_len(200 << 20).unwrap();
    let before = peak();
    pod.prepare(&vmi(json!([{"name": "v", "configMap": {"name": "x"}}]))).unwrap();
    // Other tests run at the same time; they need little.
    assert!(peak() - before < 128 << 10, "KiB: {before} then {}", peak());
}

/// The most memory that this process has had, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn planning_looks_at_no_file() {
    let pod = Pod::new();
    let vmi = vmi(json!([
        {"name": "v", "configMap": {"name": "x"}},
        {"name": "root", "containerDisk": {"image": "x"}},
    ]));
    let request = crate::volumes::Request::start(&vmi, &pod.layout);
    assert_eq!(plan(&request).unwrap().len(), 2);
    assert_eq!(fs::read_dir(pod.path("")).unwrap().count(), 0);
}
