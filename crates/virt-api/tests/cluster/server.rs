//! The server itself: what is not a review, and new certificates under load.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use crate::fixture::with_server;
use crate::hooks;

fn review(kind: &str, object: &Value) -> Vec<u8> {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "7", "operation": "CREATE", "namespace": "default",
            "kind": { "group": "kubevirt.io", "version": "v1", "kind": kind }, "object": object,
        },
    });
    review.to_string().into_bytes()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_a_review_gets_an_answer_that_helps() -> Result<()> {
    with_server("api-http", async |server| {
        let (path, kind) = ("/virtualmachines-validate", "application/json");
        let vm =
            json!({ "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": { "name": "a" } });
        let good = review("VirtualMachine", &vm);
        let cases = [
            ("a review", "POST", path, kind, good.clone(), 200),
            ("with a parameter", "POST", path, "application/json; charset=utf-8", good.clone(), 200),
            ("another method", "GET", path, kind, Vec::new(), 405),
            ("another path", "POST", "/virtualmachines-judge", kind, good.clone(), 404),
            ("another kind of text", "POST", path, "text/yaml", good, 415),
            ("nothing", "POST", path, kind, Vec::new(), 400),
            ("not JSON", "POST", path, kind, b"{".to_vec(), 400),
            ("not a review", "POST", path, kind, b"{}".to_vec(), 400),
            ("too much", "POST", path, kind, vec![b' '; 9 << 20], 413),
        ];
        for (case, method, path, kind, body, expected) in cases {
            let (status, answer) = server.send(method, path, kind, body).await.context(case)?;
            assert_eq!(status, expected, "{case}: {answer}");
        }
        let (status, answer) = server.send("POST", path, kind, b"[]".to_vec()).await?;
        let answer: Value = serde_json::from_str(&answer)?;
        assert_eq!((status, &answer["response"]["status"]["code"]), (400, &json!(400)));
        let wrong = review("VirtualMachineInstance", &json!({ "metadata": {} }));
        let (_, answer) = server.send("POST", path, kind, wrong).await?;
        let answer: Value = serde_json::from_str(&answer)?;
        assert_eq!(
            (&answer["response"]["uid"], &answer["response"]["allowed"]),
            (&json!("7"), &json!(false))
        );

        for path in hooks::paths() {
            let (status, answer) = server.send("POST", path, kind, b"{}".to_vec()).await?;
            assert_eq!(status, 400, "{path}: {answer}");
        }
        assert_eq!(server.get("/healthz").await?, (200, "ok".to_owned()));
        let metrics = server.get("/metrics").await?.1;
        for line in ["kubevirt_virt_api_ready_status 1", "# TYPE kubevirt_rest_client_requests_total counter"]
        {
            assert!(metrics.lines().any(|found| found == line), "{line} in {metrics}");
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_certificates_disturb_nobody() -> Result<()> {
    with_server("api-reload", async |server| {
        let vm = |name: String| {
            json!({
                "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": { "name": name },
                "spec": { "runStrategy": "Halted", "template": { "spec": {
                    "domain": { "memory": { "guest": "64Mi" }, "devices": {} },
                } } },
            })
        };
        let (asked, turned) = (AtomicU32::new(0), AtomicU32::new(0));
        let ask = async |worker: u32| -> Result<()> {
            while turned.load(Ordering::Relaxed) < 2 {
                let number = asked.fetch_add(1, Ordering::Relaxed);
                let verdict = server.dry_run(&vm(format!("vm-{worker}-{number}"))).await?;
                verdict.accepted().with_context(|| format!("request {number}"))?;
            }
            Ok(())
        };
        let turn = async || -> Result<()> {
            // To the other authority and back: clients of only the new one get in, and of only the old one do not.
            for turn in [1, 0] {
                let (new, old) = (&server.authorities[turn], &server.authorities[1 - turn]);
                server.mount.renew(new);
                let answers = async |authority| {
                    let request = axum::http::Request::get("/healthz").body(kube::client::Body::empty())?;
                    Ok::<_, anyhow::Error>(server.client(authority)?.send(request).await?.status() == 200)
                };
                server.until("the new certificate is shown", async || answers(new).await).await?;
                assert!(answers(old).await.is_err());
                tokio::time::sleep(Duration::from_millis(300)).await;
                turned.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let ended = async {
            let result = turn().await;
            turned.store(u32::MAX, Ordering::Relaxed);
            result
        };
        let (asked_all, turned_all) = tokio::join!(try_join_all((0..4).map(ask)), ended);
        turned_all?;
        asked_all?;
        assert!(asked.load(Ordering::Relaxed) > 10);
        Ok(())
    })
    .await
}
