//! Profiles of the components, as a client of the cluster takes them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use test_kit::{KUBEVIRT, Test};
use xtask::install::NAMESPACE;

/// For all components to hear of a setting, and to use some CPU time on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const COMPONENTS: [&str; 3] = ["virt-api", "virt-controller", "virt-handler"];

/// The answer, or the code and the words of a refusal.
async fn ask(test: &Test, what: &str, body: &Value) -> Result<Result<String, (u16, String)>> {
    let request = Request::get(format!("/apis/subresources.kubevirt.io/v1/{what}-cluster-profiler"));
    let request = request.header("content-type", "application/json").body(body.to_string().into_bytes())?;
    match test.client().request_text(request).await {
        Ok(answer) => Ok(Ok(answer)),
        Err(kube::Error::Api(status)) => Ok(Err((status.code, status.message.clone()))),
        Err(error) => Err(error.into()),
    }
}

/// Asks until a condition holds for the answer: one of two servers may hear of a setting later.
async fn ask_until(
    test: &Test,
    what: &str,
    holds: impl Fn(&Result<String, (u16, String)>) -> bool,
) -> Result<()> {
    let begin = Instant::now();
    loop {
        let answer = ask(test, what, &json!({})).await?;
        if holds(&answer) {
            return Ok(());
        }
        ensure!(begin.elapsed() < PATIENCE, "{what}: {answer:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn allow(test: &Test, allowed: bool) -> Result<()> {
    let developer = json!({ "developerConfiguration": { "clusterProfiler": allowed } });
    let patch = json!({ "spec": { "configuration": developer } }).to_string();
    let patch =
        ["patch", "kubevirt", "kubevirt", "--namespace", NAMESPACE, "--type=merge", "--patch", &patch];
    test.cluster().kubectl(&patch).map(drop)
}

async fn refused(test: &Test) -> Result<()> {
    for (what, done) in
        [("start", "start profiler"), ("stop", "stop profiler"), ("dump", "dump profiler results")]
    {
        let words = format!("Unable to {done}. \"ClusterProfiler\" feature gate must be enabled");
        ask_until(test, what, |answer| matches!(answer, Err((403, said)) if said.contains(&words))).await?;
    }
    Ok(())
}

/// The pods of the components, by their names.
async fn pods(test: &Test) -> Result<BTreeMap<String, &'static str>> {
    let api: Api<Pod> = Api::namespaced(test.client(), NAMESPACE);
    let mut all = BTreeMap::new();
    for component in COMPONENTS {
        let found = api.list(&ListParams::default().labels(&format!("kubevirt.io={component}"))).await?;
        ensure!(!found.items.is_empty(), "no pod of {component}");
        all.extend(found.items.into_iter().map(|pod| (pod.name_any(), component)));
    }
    Ok(all)
}

/// A page of profiles by pod, and how to go on.
async fn page(test: &Test, wanted: &Value) -> Result<(BTreeMap<String, Vec<u8>>, String)> {
    let answer = match ask(test, "dump", wanted).await? {
        Ok(answer) => answer,
        Err((code, words)) => bail!("{wanted}: {code} {words}"),
    };
    if answer.is_empty() {
        return Ok(Default::default());
    }
    let results: Value = serde_json::from_str(&answer)?;
    let mut profiles = BTreeMap::new();
    for (pod, result) in results["componentResults"].as_object().context("no results")? {
        let profile = result["pprofData"]["cpu.pprof"].as_str();
        let profile = profile.with_context(|| format!("{pod} has no profile: {result}"))?;
        profiles.insert(pod.clone(), STANDARD.decode(profile)?);
    }
    Ok((profiles, results["continue"].as_str().unwrap_or_default().to_owned()))
}

/// All profiles that are wanted, page by page.
async fn profiles(test: &Test, mut wanted: Value) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut all = BTreeMap::new();
    loop {
        let (profiles, rest) = page(test, &wanted).await?;
        all.extend(profiles);
        if rest.is_empty() {
            return Ok(all);
        }
        wanted["continue"] = rest.into();
    }
}

fn varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().context("a number breaks off")?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Ok(value);
        }
    }
    bail!("a number without end")
}

/// How many stacks are in a profile.
fn stacks(profile: &[u8]) -> Result<usize> {
    const SAMPLE: u64 = 2;
    let mut message = Vec::new();
    GzDecoder::new(profile).read_to_end(&mut message)?;
    let (mut bytes, mut count) = (message.as_slice(), 0);
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let value = varint(&mut bytes)?;
        if key & 7 == 2 {
            bytes = bytes.get(usize::try_from(value)?..).context("a field breaks off")?;
        }
        count += usize::from(key >> 3 == SAMPLE);
    }
    Ok(count)
}

#[tokio::test]
async fn every_component_tells_where_its_time_goes() -> Result<()> {
    KUBEVIRT
        .run("profiler", async |test| {
            allow(test, false)?;
            refused(test).await.context("at first")?;
            allow(test, true)?;
            let result = take(test).await;
            allow(test, false)?;
            result?;
            refused(test).await.context("at the end")
        })
        .await
}

async fn take(test: &Test) -> Result<()> {
    ask_until(test, "start", Result::is_ok).await?;
    let pods = pods(test).await?;
    let begin = Instant::now();
    loop {
        // Whoever tells its metrics has something to do.
        for pod in pods.keys() {
            let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/https:{pod}:8443/proxy/metrics");
            test.cluster().kubectl(&["get", "--raw", &path])?;
        }
        let found = profiles(test, json!({})).await?;
        let idle = |pod: &&String| !found.get(*pod).is_some_and(|it| stacks(it).is_ok_and(|count| count > 0));
        let idle: Vec<_> = pods.keys().filter(idle).collect();
        if idle.is_empty() {
            break;
        }
        ensure!(begin.elapsed() < PATIENCE, "nothing seen of {idle:?}");
    }
    ask_until(test, "stop", Result::is_ok).await?;

    let all = profiles(test, json!({ "pageSize": 1 })).await?;
    ensure!(all.keys().eq(pods.keys()), "{:?}, not {:?}", all.keys(), pods.keys());
    for (pod, profile) in &all {
        ensure!(stacks(profile)? > 0, "{pod} has lost its profile");
    }
    let handlers = profiles(test, json!({ "labelSelector": "kubevirt.io=virt-handler" })).await?;
    let expected: BTreeSet<_> =
        pods.iter().filter(|(_, of)| **of == "virt-handler").map(|(pod, _)| pod).collect();
    ensure!(handlers.keys().collect::<BTreeSet<_>>() == expected, "{:?}", handlers.keys());
    let nobody = page(test, &json!({ "labelSelector": "kubevirt.io=nobody" })).await?;
    ensure!(nobody == Default::default(), "{nobody:?}");
    match ask(test, "dump", &json!({ "labelSelector": "no, (selector" })).await? {
        Err((400, words)) if words.contains("looking up component pods") => Ok(()),
        other => bail!("a selector that is none: {other:?}"),
    }
}
