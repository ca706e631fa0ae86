//! What users wait for: a verdict of admission, and what goes through their consoles, next to QEMU's own socket.
//!
//! Run by `make bench`, built as it is shipped. Parts can be named: `cargo bench -p kubevirt --bench users -- webhook`.
//! virt-api is a process of its own with an API server behind it, the handler's door is in this one.

#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]
#![allow(dead_code, reason = "what tests share can do more")]

#[path = "../../tests/cluster/api.rs"]
mod api;
mod console;
#[path = "../../tests/binary/launcher/users/door.rs"]
mod door;
#[path = "../../tests/binary/launcher/handler.rs"]
mod handler;
#[path = "../../tests/binary/launcher/pod.rs"]
mod pod;
#[path = "../../tests/binary/launcher/proxy.rs"]
mod proxy;
mod webhook;

use anyhow::{Result, ensure};
use api::Api;
use door::{Behind, Door};
use pod::{POD, Pod, Settings};
use serde_json::json;
use test_kit::{Row, Shared};

/// etcd and an API server; `cargo xtask cluster down --prefix bench` ends them.
static API_SERVER: Shared = Shared::new("bench-api", 0);

const PARTS: [&str; 2] = ["webhook", "console"];

#[tokio::main]
async fn main() -> Result<()> {
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if std::env::args().any(|word| word == "--test") {
        return Ok(());
    }
    ensure!(
        named.iter().all(|name| PARTS.contains(&name.as_str())),
        "no such part; there are {}",
        PARTS.join(", ")
    );
    let wanted = |part: &str| named.is_empty() || named.iter().any(|name| name == part);
    API_SERVER
        .run("users", async |test| {
            let pod = Pod::with(Settings { like_kubelet: true, ..Settings::default() }).await;
            let seen = pod::vmi(json!({"metadata": {"namespace": test.namespace()}}));
            let known = vec![(serde_json::from_value(seen)?, POD.to_owned())];
            let folders = [pod.pods(), pod.records(), pod.private()];
            let door = Door::open(Behind::of(known, folders)).await;
            let api = Api::start(test, &door, &pod.records().with_file_name("api")).await?;
            let mut rows = Vec::new();
            if wanted("webhook") {
                eprintln!("measuring webhook");
                rows.extend(webhook::reviews(&api).await?);
            }
            if wanted("console") {
                eprintln!("measuring console");
                api::instance(test, "web").await?;
                pod.container_disk(0);
                pod.sync(&pod::vmi(json!({}))).await.map_err(anyhow::Error::msg)?;
                rows.extend(console::next_to_the_socket(&pod, &door, &api).await?);
            }
            Row::print(&rows);
            Ok(())
        })
        .await
}

/// The value in the middle, and the one that one in a hundred is above.
fn middle_and_worst(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[values.len() * 99 / 100])
}
