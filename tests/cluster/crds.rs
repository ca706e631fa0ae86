//! Our CustomResourceDefinitions on a real API server.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::DynamicObject;
use kubevirt_api::crd::{KINDS, Kind, Scope};
use serde_json::{Value, json};
use test_kit::{API_SERVER, Test, conditions};
use tokio::sync::OnceCell;

static ESTABLISHED: OnceCell<BTreeSet<String>> = OnceCell::const_new();

/// Our definitions, applied once; returns their names.
pub(crate) async fn establish(test: &Test) -> Result<&'static BTreeSet<String>> {
    ESTABLISHED.get_or_try_init(async || test.establish_crds().await).await
}

#[tokio::test]
async fn every_definition_is_established() -> Result<()> {
    API_SERVER
        .run("crds", async |test| {
            let names: BTreeSet<String> = establish(test).await?.clone();
            let expected: BTreeSet<String> =
                KINDS.iter().map(|kind| format!("{}.{}", kind.plural, kind.group)).collect();
            assert_eq!(names, expected);
            let api: Api<CustomResourceDefinition> = Api::all(test.client());
            for name in &names {
                let definition = api.get(name).await?;
                assert!(conditions::has("NamesAccepted")(&definition), "{name}");
                assert!(!conditions::has("NonStructuralSchema")(&definition), "{name}");
            }
            Ok(())
        })
        .await
}

#[tokio::test]
async fn every_kind_is_stored_as_it_was_written_in_every_version() -> Result<()> {
    API_SERVER
        .run("round-trip", async |test| {
            establish(test).await?;
            let manifests: Vec<Value> = include_str!("manifests/kinds.yaml")
                .split("\n---\n")
                .map(|text| serde_saphyr::from_str(text).with_context(|| text.to_owned()))
                .collect::<Result<_>>()?;
            for kind in KINDS {
                let of_kind = |one: &&Value| {
                    let group = one["apiVersion"].as_str().and_then(|version| version.split('/').next());
                    one["kind"] == kind.name && group == Some(kind.group)
                };
                let manifest = manifests
                    .iter()
                    .find(of_kind)
                    .with_context(|| format!("no manifest of {}", kind.name))?;
                round_trip(test, kind, manifest).await?;
            }
            assert_eq!(manifests.len(), KINDS.len());
            Ok(())
        })
        .await
}

/// Applies the manifest in each version of its kind and reads it in all of them.
async fn round_trip(test: &Test, kind: &Kind, manifest: &Value) -> Result<()> {
    let in_version = |version: &str| json!(format!("{}/{version}", kind.group));
    for written in kind.versions {
        let mut manifest = manifest.clone();
        manifest["apiVersion"] = in_version(written.name);
        // Objects without a namespace may be left of an earlier run.
        let name = format!("{}-{}", test.namespace(), written.name);
        manifest["metadata"]["name"] = json!(name);
        test.apply(&manifest).await?;
        for read in kind.versions {
            let mut other: DynamicObject = serde_json::from_value(manifest.clone())?;
            other.types.as_mut().context("no kind")?.api_version = format!("{}/{}", kind.group, read.name);
            let api = test.api_of(&other).await?;
            let found = serde_json::to_value(api.get(&name).await?)?;
            let case = format!("{} written as {}, read as {}", kind.name, written.name, read.name);
            assert_eq!(found["spec"], manifest["spec"], "{case}");
            assert_eq!(found["apiVersion"], in_version(read.name), "{case}");
            assert_eq!(found["metadata"]["namespace"].is_null(), kind.scope == Scope::Cluster, "{case}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn kubectl_explains_fields() -> Result<()> {
    API_SERVER
        .run("explain", async |test| {
            establish(test).await?;
            let begin = Instant::now();
            // The API server publishes schemas a moment after it serves their kinds.
            let text = loop {
                match test.kubectl(&["explain", "vmi.spec.domain.devices"]) {
                    Ok(text) => break text,
                    Err(error) if begin.elapsed() > Duration::from_secs(60) => return Err(error),
                    Err(_) => tokio::time::sleep(Duration::from_millis(500)).await,
                }
            };
            for word in ["VirtualMachineInstance", "disks", "interfaces", "<[]Object>"] {
                assert!(text.contains(word), "{word} in {text}");
            }
            Ok(())
        })
        .await
}
