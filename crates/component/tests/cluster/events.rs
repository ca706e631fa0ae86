//! Events as users see them with kubectl.

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::api::{ListParams, PostParams};
use kubevirt_component::Recorder;
use kubevirt_component::events::Kind;
use serde_json::json;
use test_kit::API_SERVER;
use tokio::time::{Duration, sleep};

#[tokio::test]
async fn events_come_in_order_and_once() -> Result<()> {
    API_SERVER
        .run("component-events", async |test| {
            let maps = test.api::<ConfigMap>();
            let map = serde_json::from_value(json!({"metadata": {"name": "subject"}}))?;
            let map = maps.create(&PostParams::default(), &map).await?;
            let recorder = Recorder::new(test.client(), "component-test");
            recorder.event(&map, Kind::Normal, "First", "one");
            recorder.event(&map, Kind::Normal, "First", "one");
            recorder.reporting_as("another-test").event(&map, Kind::Warning, "Second", "two");
            let list = ListParams::default().fields("involvedObject.name=subject");
            let mut seen = Vec::new();
            for _ in 0..300 {
                seen = test.api::<Event>().list(&list).await?.items;
                if seen.len() >= 2 {
                    break;
                }
                sleep(Duration::from_millis(100)).await;
            }
            let mut reasons: Vec<_> = seen.iter().filter_map(|event| event.reason.clone()).collect();
            reasons.sort();
            assert_eq!(reasons, ["First", "Second"]);
            let shown = test.kubectl(&["describe", "configmap", "subject"])?;
            assert!(shown.contains("component-test") && shown.contains("another-test"), "{shown}");
            Ok(())
        })
        .await
}
