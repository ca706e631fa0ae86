//! `kubevirt admit` as users and pipelines call it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn kubevirt(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(crate::BINARY)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input closes it early: that is no failure of the test.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A file with this text, gone when the test ends.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kubevirt-admit-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The manifest that the project's seed shows, from long before `runStrategy`.
const SEED: &str = "
apiVersion: kubevirt.io/v1alpha3
kind: VirtualMachine
metadata:
  name: testvm
spec:
  running: false
  template:
    metadata:
      labels:
        kubevirt.io/size: small
        kubevirt.io/domain: testvm
    spec:
      domain:
        devices:
          disks:
          - disk:
              bus: virtio
            name: rootfs
          interfaces:
          - name: default
            masquerade: {}
        resources:
          requests:
            memory: 64M
      networks:
      - name: default
        pod: {}
      volumes:
        - name: rootfs
          containerDisk:
            image: kubevirt/cirros-registry-disk-demo
";

#[test]
fn a_manifest_is_accepted_in_words() {
    let output = kubevirt(&["admit", "-f", "-"], SEED.as_bytes());
    let text = out(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("VirtualMachine testvm: accepted"), "{text}");
    assert!(text.contains("warning: "), "an old way to start a VM is worth a warning: {text}");
    assert!(text.ends_with("1 accepted, 0 refused\n"), "{text}");
}

#[test]
fn the_example_is_accepted_as_it_stands() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/vm.yaml");
    let output = kubevirt(&["admit", "-f", example], b"");
    assert_eq!(output.status.code(), Some(0), "{}", out(&output));
    assert!(!out(&output).contains("warning"), "{}", out(&output));
}

#[test]
fn a_refusal_names_every_field_and_fails() {
    let broken = SEED
        .replace("bus: virtio", "bus: floppy")
        .replace("name: default\n        pod", "name: other\n        pod");
    let output = kubevirt(&["admit", "-f", "-"], broken.as_bytes());
    let text = out(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("  spec.template.spec.domain.devices.disks[0].disk.bus: "), "{text}");
    assert!(text.contains("  spec.template.spec.domain.devices.interfaces[0].name: "), "{text}");
}

#[test]
fn several_documents_may_refer_to_each_other() {
    let size = "apiVersion: instancetype.kubevirt.io/v1beta1\nkind: VirtualMachineInstancetype\n\
                metadata: {name: small}\nspec: {cpu: {guest: 1}, memory: {guest: 64Mi}}\n";
    let vm = "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: sized}\n\
              spec: {runStrategy: Halted, instancetype: {name: small, kind: VirtualMachineInstancetype}, \
              template: {spec: {domain: {devices: {}}}}}\n";
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\n";
    let both = File::new("both.yaml", &format!("{size}---\n{vm}---\n{secret}"));
    let output = kubevirt(&["admit", "-f", both.path()], b"");
    let text = out(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("Secret key: skipped") && text.contains("2 accepted, 0 refused"), "{text}");

    let alone = File::new("alone.yaml", vm);
    let output = kubevirt(&["admit", "-f", alone.path()], b"");
    assert!(out(&output).contains("  warning: spec.instancetype: "), "{}", out(&output));

    let sizes = File::new("sizes.yaml", size);
    let output = kubevirt(&["admit", "-f", alone.path(), "--with", sizes.path()], b"");
    assert!(!out(&output).contains("warning"), "{}", out(&output));
}

#[test]
fn the_cluster_configuration_applies() {
    let vmi = "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: a}\n\
               spec: {domain: {devices: {disks: [{name: d, disk: {}}]}, memory: {guest: 64Mi}}, \
               volumes: [{name: d, hostDisk: {path: /data/disk.img, type: DiskOrCreate, capacity: 1Gi}}]}\n";
    let config = "apiVersion: kubevirt.io/v1\nkind: KubeVirt\nmetadata: {name: kubevirt, namespace: kubevirt}\n\
                  spec: {configuration: {developerConfiguration: {featureGates: [HostDisk]}}}\n";
    let (vmi, config) = (File::new("vmi.yaml", vmi), File::new("config.yaml", config));
    assert_eq!(kubevirt(&["admit", "-f", vmi.path()], b"").status.code(), Some(1));
    let output = kubevirt(&["admit", "-f", vmi.path(), "--config", config.path()], b"");
    assert_eq!(output.status.code(), Some(0), "{}", out(&output));
}

#[test]
fn a_review_is_answered_with_a_review() {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "abc", "operation": "CREATE", "namespace": "default",
            "kind": { "group": "kubevirt.io", "version": "v1", "kind": "VirtualMachineInstance" },
            "userInfo": { "username": "alice" },
            "object": {
                "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
                "metadata": { "name": "a", "namespace": "default" },
                "spec": { "domain": { "devices": {}, "memory": { "guest": "64Mi" } } },
            },
        },
    });
    let answer = |flags: &[&str]| -> Value {
        let arguments: Vec<&str> = ["admit"].iter().chain(flags).copied().collect();
        let output = kubevirt(&arguments, review.to_string().as_bytes());
        assert_eq!(output.status.code(), Some(0));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let both = answer(&[]);
    assert_eq!(both["kind"], "AdmissionReview");
    assert_eq!(both["response"]["uid"], "abc");
    assert_eq!(both["response"]["allowed"], true);
    assert!(both["response"]["patch"].is_string());
    assert!(answer(&["--validate-only"])["response"].get("patch").is_none());
    assert!(answer(&["--mutate-only"])["response"]["patch"].is_string());
}

#[test]
fn what_cannot_be_read_is_said_and_exits_with_2() {
    let cases: [(&[&str], &[u8], &str); 6] = [
        (&["admit", "-f", "/no/such/file"], b"", "cannot read /no/such/file"),
        (&["admit", "-f", "-"], b"a: [", "standard input is not YAML"),
        (&["admit", "-f", "-"], b"just: text", "no apiVersion or no kind"),
        (&["admit"], b"{", "not an AdmissionReview"),
        (&["admit", "--config", "/no/such/file"], b"{}", "cannot read /no/such/file"),
        (&["virt-operator"], b"", "not part of this version yet"),
    ];
    for (arguments, input, expected) in cases {
        let output = kubevirt(arguments, input);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}
