//! What a test that waits in vain says.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::{Value, json};
use test_kit::{NODES, conditions};

use crate::pods::load_probe;

#[tokio::test]
async fn waiting_in_vain_shows_the_object_its_events_and_its_logs() -> Result<()> {
    NODES
        .run("in-vain", async |test| {
            let pod = |name: &str, image: &str, arguments: Value| {
                json!({
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": name},
                    "spec": {
                        "terminationGracePeriodSeconds": 0,
                        "containers": [{"name": "c", "image": image, "imagePullPolicy": "Never", "args": arguments}],
                    },
                })
            };
            let image = load_probe(test)?;
            let pods = test.api::<Pod>();
            test.apply(&pod("no-image", "localhost/none", json!([]))).await?;
            test.apply(&pod("talks", &image, json!(["serve", "80", "hello"]))).await?;
            test.wait(&pods, "talks", "is ready", conditions::has("Ready")).await?;
            let waits = |pod: &Pod| serde_json::to_string(pod).is_ok_and(|text| text.contains("ErrImageNeverPull"));
            test.wait(&pods, "no-image", "waits for its image", waits).await?;

            let soon = Duration::from_secs(1);
            let error = test.wait_within(soon, &pods, "no-image", "is ready", conditions::has("Ready")).await;
            says(error, &[
                "waited 1 s until no-image is ready, in vain",
                "kind: Pod",
                "nodeName: node0",
                "Warning ErrImageNeverPull Pod/no-image: ",
            ]);
            let error = test.wait_within(soon, &pods, "talks", "sings", conditions::has("Sings")).await;
            says(error, &["until talks sings", "--- Log of talks, container c\nserving hello\n"]);
            let error = test.wait_within(soon, &test.api::<ConfigMap>(), "none", "is there", |_| true).await;
            says(error, &["until none is there", "--- The object\nThere is none.", "--- Its events\nThere are none."]);
            Ok(())
        })
        .await
}

fn says<T>(result: Result<T>, texts: &[&str]) {
    let error = result.map(drop).unwrap_err().to_string();
    assert!(!error.contains("managedFields"), "{error}");
    for text in texts {
        assert!(error.contains(text), "{text:?} is not in\n{error}");
    }
}
