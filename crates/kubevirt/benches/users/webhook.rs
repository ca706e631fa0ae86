//! Reviews of a typical instance, over the connection that an API server keeps to a webhook.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use axum::body::{Body, to_bytes};
use base64::prelude::{BASE64_STANDARD, Engine};
use hyper::Request;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use test_kit::Row;
use tokio::net::TcpStream;

use crate::api::{Api, SERVER};
use crate::door::secured;
use crate::middle_and_worst;

/// Reviews before it counts, and those that count.
const WARM: usize = 300;
const COUNTED: usize = 3000;
/// The most that a review may take in the middle, in milliseconds.
const LIMIT: f64 = 1.0;

/// The instance that rules are measured with, too.
fn typical() -> Result<Value> {
    Ok(serde_json::from_str(include_str!("../../../admission/benches/typical.json"))?)
}

fn review(object: &Value) -> Vec<u8> {
    let kind = json!({"group": "kubevirt.io", "version": "v1", "kind": "VirtualMachineInstance"});
    let resource = json!({"group": "kubevirt.io", "version": "v1", "resource": "virtualmachineinstances"});
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "0f3d6d4e-5d2c-4c7e-9a55-7b1a2c3d4e5f", "operation": "CREATE", "dryRun": false,
            "namespace": "default", "name": "web", "kind": kind, "requestKind": kind,
            "resource": resource, "requestResource": resource,
            "userInfo": {"username": "alice", "groups": ["system:authenticated"]},
            "object": object, "oldObject": null,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    });
    review.to_string().into_bytes()
}

/// The two reviews that the creation of an instance waits for.
pub async fn reviews(api: &Api) -> Result<Vec<Row>> {
    let stream = secured(TcpStream::connect(api.address).await?, &api.authority, SERVER, None).await;
    let stream = TokioIo::new(stream.map_err(anyhow::Error::msg)?);
    let (mut webhook, connection) = handshake(TokioExecutor::new(), stream).await?;
    tokio::spawn(connection);
    let mut object = typical()?;
    let mutate = measure(&mut webhook, "/virtualmachineinstances-mutate", &object).await?;
    let answer = ask(&mut webhook, "/virtualmachineinstances-mutate", &review(&object)).await?;
    let patch = answer["response"]["patch"].as_str().context("no patch")?;
    let patch: json_patch::Patch = serde_json::from_slice(&BASE64_STANDARD.decode(patch)?)?;
    json_patch::patch(&mut object, &patch)?;
    let validate = measure(&mut webhook, "/virtualmachineinstances-validate-create", &object).await?;
    let row = |what: &str, (middle, worst): (f64, f64)| {
        Row::new(format!("{what} over TLS, p50 (p99: {worst:.2} ms)"), "ms", middle, LIMIT)
    };
    Ok(vec![row("defaults of an instance", mutate), row("a verdict on an instance", validate)])
}

async fn measure(webhook: &mut SendRequest<Body>, path: &str, object: &Value) -> Result<(f64, f64)> {
    let review = review(object);
    let mut times = Vec::new();
    for number in 0..WARM + COUNTED {
        let began = Instant::now();
        let answer = ask(webhook, path, &review).await?;
        if number >= WARM {
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        ensure!(answer["response"]["allowed"] == true, "{path}: {answer}");
    }
    Ok(middle_and_worst(times))
}

async fn ask(webhook: &mut SendRequest<Body>, path: &str, review: &[u8]) -> Result<Value> {
    let request = Request::post(format!("https://{SERVER}{path}")).header("content-type", "application/json");
    let response = webhook.send_request(request.body(Body::from(review.to_owned()))?).await?;
    let body = to_bytes(Body::new(response.into_body()), 1 << 20).await?;
    Ok(serde_json::from_slice(&body)?)
}
