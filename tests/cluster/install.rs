//! The objects of an installation on a real API server.

use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use kubevirt_api::names::{accounts, annotations, labels};
use kubevirt_virt_operator::{Certificates, Images, InstallConfig, Lifetimes, objects};
use serde_json::{Value, json};
use test_kit::{API_SERVER, Test};

use crate::crds::establish;

const PAUSE: Duration = Duration::from_millis(200);

/// An installation in the namespace of the test.
fn config(test: &Test) -> Result<InstallConfig> {
    let images = Images {
        components: "localhost/kubevirt:1".into(),
        launcher: "localhost/virt-launcher:1".into(),
        pull_policy: "Never".into(),
        pull_secrets: Vec::new(),
    };
    let certificates = Certificates::issue(test.namespace(), Lifetimes::default(), Timestamp::now())?;
    let config = InstallConfig::new(test.namespace(), images, certificates);
    Ok(InstallConfig { api_services: true, ..config })
}

/// Whether everyone else on the cluster would suffer: there is no virt-api.
fn concerns_others(object: &Value) -> bool {
    let kind = object["kind"].as_str().unwrap_or_default();
    kind.ends_with("WebhookConfiguration") || kind == "APIService"
}

/// Applies an object as kubectl does on the server, strictly; only tries it if others would suffer.
async fn apply(test: &Test, object: &Value) -> Result<DynamicObject> {
    let typed: DynamicObject = serde_json::from_value(object.clone())?;
    let mut parameters = PatchParams::apply("install").force().validation_strict();
    parameters.dry_run = concerns_others(object);
    let api = test.api_of(&typed).await?;
    let applied = api.patch(&typed.name_any(), &parameters, &Patch::Apply(&typed)).await;
    applied.with_context(|| format!("apply {} {}", object["kind"], typed.name_any()))
}

/// One test: half of the objects are the cluster's, and can be of one installation only.
#[tokio::test]
async fn an_installation_is_accepted_and_holds_everyone_to_their_work() -> Result<()> {
    API_SERVER
        .run("install", async |test| {
            establish(test).await?;
            every_object_is_accepted_also_again(test).await?;
            components_may_do_their_work_and_no_more(test).await?;
            a_handler_may_only_label_its_own_node(test).await
        })
        .await
}

async fn every_object_is_accepted_also_again(test: &Test) -> Result<()> {
    for object in objects::all(&config(test)?) {
        let first = apply(test, &object).await?;
        let again = apply(test, &object).await?;
        assert_eq!(first.resource_version(), again.resource_version(), "{}", object["metadata"]["name"]);
    }
    Ok(())
}

/// Whether an account of the installation may do something.
async fn may(test: &Test, account: &str, verb: &str, group: &str, resource: &str) -> Result<bool> {
    let (resource, subresource) = resource.split_once('/').map_or((resource, None), |(a, b)| (a, Some(b)));
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(format!("system:serviceaccount:{}:{account}", test.namespace())),
            resource_attributes: Some(ResourceAttributes {
                namespace: Some("elsewhere".into()),
                verb: Some(verb.into()),
                group: Some(group.into()),
                resource: Some(resource.into()),
                subresource: subresource.map(str::to_owned),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let answer = Api::all(test.client()).create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

async fn components_may_do_their_work_and_no_more(test: &Test) -> Result<()> {
    const KUBEVIRT: &str = "kubevirt.io";
    let cases = [
        (accounts::API, "watch", KUBEVIRT, "virtualmachines", true),
        (accounts::API, "create", "authorization.k8s.io", "subjectaccessreviews", true),
        (accounts::API, "patch", KUBEVIRT, "virtualmachineinstances", true),
        (accounts::API, "patch", KUBEVIRT, "virtualmachines/status", true),
        (accounts::API, "create", KUBEVIRT, "virtualmachineinstancemigrations", true),
        (accounts::API, "list", "", "configmaps", false),
        (accounts::API, "create", "", "pods", false),
        (accounts::API, "get", "", "secrets", false),
        (accounts::CONTROLLER, "create", "", "pods", true),
        (accounts::CONTROLLER, "patch", KUBEVIRT, "virtualmachines/status", true),
        (accounts::CONTROLLER, "update", KUBEVIRT, "virtualmachineinstances/finalizers", true),
        (accounts::CONTROLLER, "get", "", "secrets", false),
        (accounts::CONTROLLER, "patch", KUBEVIRT, "kubevirts", false),
        (accounts::CONTROLLER, "update", "coordination.k8s.io", "leases", false),
        (accounts::HANDLER, "patch", KUBEVIRT, "virtualmachineinstances", true),
        (accounts::HANDLER, "patch", "", "nodes", true),
        (accounts::HANDLER, "create", "", "events", true),
        (accounts::HANDLER, "delete", KUBEVIRT, "virtualmachineinstances", false),
        (accounts::HANDLER, "get", "", "secrets", false),
        (accounts::HANDLER, "patch", "", "nodes/status", false),
        (accounts::HANDLER, "list", "", "pods", false),
    ];
    for (account, verb, group, resource, expected) in cases {
        // The server's own view of roles lags a little.
        let mut allowed = may(test, account, verb, group, resource).await?;
        for _ in 0..50 {
            if allowed == expected {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            allowed = may(test, account, verb, group, resource).await?;
        }
        assert_eq!(allowed, expected, "{account}: {verb} {group}/{resource}");
    }
    Ok(())
}

/// A handler, by the namespace of its installation and the node that its token is for.
pub struct Handler<'a> {
    pub namespace: &'a str,
    pub node: &'a str,
}

/// Patches an object as a handler; what the API server answers to a refusal.
pub async fn patch_as_handler(
    test: &Test,
    handler: &Handler<'_>,
    path: &str,
    patch: &Value,
) -> Result<Option<String>> {
    let request = http::Request::patch(path)
        .header("Content-Type", "application/merge-patch+json")
        .header("Impersonate-User", format!("system:serviceaccount:{}:kubevirt-handler", handler.namespace))
        .header("Impersonate-Extra-authentication.kubernetes.io%2Fnode-name", handler.node)
        .body(serde_json::to_vec(patch)?)?;
    match test.client().request::<Value>(request).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 403 || status.code == 422 => {
            Ok(Some(status.message.clone()))
        }
        Err(error) => Err(error.into()),
    }
}

async fn a_handler_may_only_label_its_own_node(test: &Test) -> Result<()> {
    let cases = [
        (json!({"metadata": {"labels": {labels::NODE_SCHEDULABLE: "true"}}}), None),
        (json!({"metadata": {"labels": {"cpu-model.node.kubevirt.io/Penryn": "true"}}}), None),
        (json!({"metadata": {"labels": {"cpu-model.node.kubevirt.io/Penryn": null}}}), None),
        (json!({"metadata": {"annotations": {annotations::NODE_HEARTBEAT: "2026-01-01T00:00:00Z"}}}), None),
        (json!({"metadata": {"labels": {"zone": "other"}}}), Some("update non kubevirt-owned labels")),
        (json!({"metadata": {"labels": {"zone": null}}}), Some("add/delete non kubevirt-owned labels")),
        (json!({"metadata": {"labels": {"kubevirt.io/mine": "x"}}}), Some("add/delete non kubevirt-owned")),
        (json!({"metadata": {"annotations": {"note": "x"}}}), Some("non kubevirt-owned annotations")),
        (json!({"metadata": {"finalizers": ["kubevirt.io/stay"]}}), Some("only change allowed metadata")),
        (json!({"spec": {"unschedulable": true}}), Some("cannot modify spec of node")),
    ];
    let nodes: Api<Node> = Api::all(test.client());
    let [own, other] = ["own", "other"].map(|name| format!("{}-{name}", test.namespace()));
    for name in [&own, &other] {
        let node = json!({"metadata": {"name": name, "labels": {"zone": "one"}}});
        nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    }
    let mark = json!({"metadata": {"labels": {labels::NODE_SCHEDULABLE: "false"}}});
    let handler = Handler { namespace: test.namespace(), node: &own };
    let path = |node: &str| format!("/api/v1/nodes/{node}");
    // A policy takes a while to come into force.
    let mut refused = None;
    for _ in 0..150 {
        refused = patch_as_handler(test, &handler, &path(&other), &mark).await?;
        if refused.as_ref().is_some_and(|message| message.contains("cannot modify this node")) {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    assert!(
        refused.as_ref().is_some_and(|message| message.contains("cannot modify this node")),
        "{refused:?}"
    );
    for (patch, expected) in cases {
        let refused = patch_as_handler(test, &handler, &path(&own), &patch).await?;
        match (&refused, expected) {
            (None, None) => {}
            (Some(message), Some(part)) if message.contains(part) => {}
            _ => panic!("{patch}: {refused:?}, expected {expected:?}"),
        }
    }
    for name in [&own, &other] {
        nodes.delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}
