//! Pods that reach each other, and what they see: a Service, a shared folder, an image volume.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Pod, Service};
use serde_json::{Value, json};
use test_kit::{NODES, Test, conditions};
use xtask::cluster::layout::SHARED_MOUNT;

/// Loads what the pods of these tests run, see `programs/probe.rs`, and returns its image.
pub fn load_probe(test: &Test) -> Result<String> {
    test.load_program("probe", include_str!("programs/probe.rs"))
}

/// A pod that answers with "I am NAME" on port 8080.
pub fn serving_pod(name: &str, node: &str, image: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "probe",
                "image": image,
                "imagePullPolicy": "Never",
                "args": ["serve", "8080", format!("I am {name}")],
                "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
                "resources": {"requests": {"ephemeral-storage": "50M"}},
                "volumeMounts": [
                    {"name": "shared", "mountPath": "/shared"},
                    {"name": "image", "mountPath": "/image"},
                ],
            }],
            "volumes": [
                {"name": "shared", "hostPath": {"path": SHARED_MOUNT}},
                {"name": "image", "image": {"reference": image, "pullPolicy": "Never"}},
            ],
        },
    })
}

/// A Service on port 80 for the pod of the same name.
pub fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]},
    })
}

/// Waits until the pod is ready.
pub async fn wait_until_ready(test: &Test, pod: &str) -> Result<Pod> {
    test.wait(&test.api::<Pod>(), pod, "is ready", conditions::has("Ready")).await
}

/// What the probe says in a pod.
pub fn probe(test: &Test, pod: &str, arguments: &[&str]) -> Result<String> {
    test.kubectl(&[&["exec", pod, "--", "/probe"], arguments].concat())
}

/// The address of a Service.
pub async fn address(test: &Test, service: &str) -> Result<String> {
    let service = test.api::<Service>().get(service).await?;
    Ok(service.spec.and_then(|spec| spec.cluster_ip).unwrap_or_default())
}

#[tokio::test]
async fn pods_on_each_node_reach_each_other_through_services() -> Result<()> {
    NODES
        .run("services", async |test| {
            let image = load_probe(test)?;
            for (name, node) in [("one", "node01"), ("two", "node02")] {
                test.apply(&serving_pod(name, node, &image)).await?;
                test.apply(&service(name)).await?;
            }
            for pod in ["one", "two"] {
                wait_until_ready(test, pod).await?;
            }
            for (from, to) in [("one", "two"), ("two", "one"), ("one", "one")] {
                let there = format!("{}:80", address(test, to).await?);
                assert_eq!(probe(test, from, &["get", &there])?, format!("I am {to}"), "{from} to {to}");
            }
            assert_eq!(test.kubectl(&["logs", "two"])?, "serving I am two\n");
            let path = format!("/api/v1/namespaces/{}/services/one:80/proxy/", test.namespace());
            assert_eq!(test.kubectl(&["get", "--raw", &path])?, "I am one", "the API server reaches pods");
            Ok(())
        })
        .await
}

#[tokio::test]
async fn pods_see_a_shared_folder_and_an_image() -> Result<()> {
    NODES
        .run("volumes", async |test| {
            let image = load_probe(test)?;
            test.apply(&serving_pod("one", "node01", &image)).await?;
            test.apply(&serving_pod("two", "node02", &image)).await?;
            wait_until_ready(test, "one").await?;
            wait_until_ready(test, "two").await?;
            let note = format!("/shared/{}", test.namespace());
            probe(test, "one", &["write", &note, "from one"])?;
            assert_eq!(test.kubectl(&["exec", "two", "--", "/image/probe", "read", &note])?, "from one");
            let refused = probe(test, "two", &["write", "/image/x", "text"]).unwrap_err().to_string();
            assert!(refused.contains("ReadOnlyFilesystem"), "{refused}");
            Ok(())
        })
        .await
}
