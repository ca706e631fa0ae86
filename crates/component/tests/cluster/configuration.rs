//! The cluster configuration follows the `KubeVirt` object.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use kubevirt_api::kubevirt::KubeVirt;
use kubevirt_component::limits::Rate;
use kubevirt_component::{Configuration, Limits, Role};
use serde_json::{Value, json};
use test_kit::API_SERVER;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(90);

fn kubevirt(configuration: Value) -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": { "name": "kubevirt" },
        "spec": { "configuration": configuration },
    })
}

async fn until_model(configuration: &mut Configuration, model: Option<&str>) -> Result<()> {
    let wait = async {
        while configuration.now().cpu_model() != model {
            configuration.changed().await;
        }
    };
    timeout(PATIENCE, wait).await.with_context(|| format!("waited in vain for {model:?}"))
}

#[tokio::test]
async fn it_follows_without_a_restart() -> Result<()> {
    API_SERVER
        .run("configuration", async |test| {
            test.establish_crds().await?;
            let stop = CancellationToken::new();
            let follow = Configuration::follow(test.client(), test.namespace(), &stop);
            let mut configuration = timeout(PATIENCE, follow).await.context("known though there is none")?;
            assert_eq!(configuration.now().cpu_model(), None);
            let limits = Limits::new(Rate { per_second: 0.001, burst: 1 });
            configuration.apply(Role::Controller, 2, None, &limits, &stop);

            test.apply(&kubevirt(json!({ "cpuModel": "one" }))).await?;
            until_model(&mut configuration, Some("one")).await?;
            // The defaults apply from the start, so that nobody waits for a thousand seconds.
            timeout(PATIENCE, limits.take()).await?;
            timeout(PATIENCE, limits.take()).await?;
            test.apply(&kubevirt(json!({ "cpuModel": "two" }))).await?;
            until_model(&mut configuration, Some("two")).await?;

            // One that is gone leaves what it said.
            let api: Api<KubeVirt> = test.api();
            api.delete("kubevirt", &DeleteParams::default()).await?;
            test.wait_until_gone(&api, "kubevirt").await?;
            sleep(Duration::from_millis(500)).await;
            assert_eq!(configuration.now().cpu_model(), Some("two"));
            test.apply(&kubevirt(json!({ "cpuModel": "three" }))).await?;
            until_model(&mut configuration, Some("three")).await?;
            let none = json!({ "spec": { "configuration": { "cpuModel": null } } });
            api.patch("kubevirt", &PatchParams::default(), &Patch::Merge(none)).await?;
            until_model(&mut configuration, None).await?;
            stop.cancel();
            Ok(())
        })
        .await
}
