//! The images of the system: every program in them runs, as the user that it is for.

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use test_kit::{NODES, Test, system_images};

/// A pod that runs one program, without any privilege.
fn pod(name: &str, image: &str, command: &[&str]) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "program",
                "image": image,
                "imagePullPolicy": "Never",
                "command": command,
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            }],
        },
    })
}

fn ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

async fn expect(test: &Test, name: &str, expected: &str) -> Result<()> {
    let pod = test.wait(&test.api::<Pod>(), name, "has ended", ended).await?;
    let log = test.kubectl(&["logs", name])?;
    let phase = pod.status.and_then(|status| status.phase).unwrap_or_default();
    assert!(phase == "Succeeded" && log.contains(expected), "{name} {phase}, expected {expected:?}: {log}");
    Ok(())
}

#[tokio::test]
async fn every_program_runs_in_its_image() -> Result<()> {
    let tpm = [
        "swtpm_setup",
        "--tpm2",
        "--tpmstate",
        "/tmp",
        "--createek",
        "--create-ek-cert",
        "--create-platform-cert",
    ];
    NODES
        .run("system-images", async |test| {
            let images = system_images()?;
            xtask::install::load(test.cluster(), images)?;
            let (components, launcher) = (&images.components.reference, &images.launcher.reference);
            let cases: [(&str, &str, &[&str], &str); 12] = [
                ("kubevirt", components, &["kubevirt", "--version"], "kubevirt "),
                ("entrypoint", components, &["/usr/bin/kubevirt", "help", "virt-api"], "virt-api"),
                ("launcher", launcher, &["virt-launcher", "--help"], "--name"),
                ("monitor", launcher, &["/usr/bin/virt-launcher-monitor", "--help"], "--name"),
                ("probe", launcher, &["virt-probe", "--help"], "--command"),
                ("tail", launcher, &["virt-tail", "--help"], "--"),
                (
                    "qemu",
                    launcher,
                    &["qemu-system-x86_64", "-device", "virtio-vga,help"],
                    "virtio-vga options",
                ),
                ("qemu-img", launcher, &["qemu-img", "--version"], "qemu-img version"),
                ("virtiofsd", launcher, &["/usr/libexec/virtiofsd", "--version"], "virtiofsd"),
                ("swtpm", launcher, &["swtpm", "--version"], "TPM emulator"),
                ("tpm", launcher, &tpm, "Successfully authored TPM state"),
                ("passt", launcher, &["passt", "--help"], "Usage: passt"),
            ];
            for (name, image, command, _) in cases {
                test.apply(&pod(name, image, command)).await?;
            }
            for (name, _, _, expected) in cases {
                expect(test, name, expected).await?;
            }
            Ok(())
        })
        .await
}
