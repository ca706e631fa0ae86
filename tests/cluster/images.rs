//! Images that we pack: what containerd makes of them.

use std::os::unix::fs::symlink;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use test_kit::{NODES, Test};
use xtask::image::layer::Layer;
use xtask::image::{Config, Image, compile_program};

const IMAGE: &str = "localhost/kubevirt-rs/packed:1";

/// Two layers; the same program twice, once with a capability.
fn load(test: &Test) -> Result<()> {
    test.load_image_once("packed", |aside, archive| {
        let (lower, upper) = (aside.join("lower"), aside.join("upper"));
        compile_program("probe", include_str!("programs/probe.rs"), aside, &lower)?;
        std::fs::create_dir_all(upper.join("home"))?;
        std::fs::copy(lower.join("probe"), upper.join("capable"))?;
        symlink("../capable", upper.join("home/link"))?;
        std::fs::write(upper.join("home/note"), "a note")?;
        let mut above = Layer::of_root(&upper);
        above.capabilities.insert("/capable".into(), "cap_net_bind_service".into());
        above.owners.insert("/home".into(), "1234:5678".parse()?);
        let config = Config {
            entrypoint: vec!["/probe".into()],
            cmd: vec!["environment".into(), "GREETING".into()],
            env: vec!["GREETING=hello".into()],
            user: Some("1234:5678".into()),
            working_dir: Some("/home".into()),
        };
        let layers = vec![Layer::of_root(&lower), above];
        Image { reference: IMAGE.into(), layers, config }.pack(archive)
    })
}

fn pod(name: &str, command: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "probe",
                "image": IMAGE,
                "imagePullPolicy": "Never",
                "command": command,
                "securityContext": {"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}},
            }],
        },
    })
}

#[tokio::test]
async fn files_owners_and_capabilities_survive_into_a_pod() -> Result<()> {
    const NET_BIND_SERVICE: &str = "0000000000000400";
    const NONE: &str = "0000000000000000";
    let cases = [
        ("default", Value::Null, "hello"),
        ("capable", json!(["/capable", "status", "CapEff"]), NET_BIND_SERVICE),
        ("linked", json!(["./link", "status", "CapEff"]), NET_BIND_SERVICE),
        ("plain", json!(["/probe", "status", "CapEff"]), NONE),
        ("user", json!(["/probe", "status", "Uid"]), "1234\t1234\t1234\t1234"),
        ("owner", json!(["/probe", "owner", "/home"]), "1234:5678"),
        ("root", json!(["/probe", "owner", "/home/note"]), "0:0"),
        ("folder", json!(["/probe", "read", "note"]), "a note"),
    ];
    NODES
        .run("packed", async |test| {
            load(test)?;
            for (name, command, _) in &cases {
                test.apply(&pod(name, command.clone())).await?;
            }
            for (name, _, expected) in cases {
                let ended = |pod: &Pod| {
                    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Succeeded")
                };
                test.wait(&test.api::<Pod>(), name, "has succeeded", ended).await?;
                assert_eq!(test.kubectl(&["logs", name])?, expected, "{name}");
            }
            Ok(())
        })
        .await
}
