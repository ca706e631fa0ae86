//! Evictions of pods: the pod of a machine that can move stays, and the machine is told to leave its node.

use k8s_openapi::api::policy::v1::Eviction;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kubevirt_admission::review::{Answer, Incoming};
use kubevirt_admission::validate::eviction::{Decision, check};
use kubevirt_api::names::annotations::EVICTION_SOURCE;
use kubevirt_api::names::values::eviction_source::DESCHEDULER;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};

use super::{Webhooks, refused};

/// The kind of these requests.
pub(super) const KIND: &str = "Eviction";

/// An instance that has to leave its node.
#[derive(Debug)]
struct Evacuation {
    namespace: String,
    vmi: String,
    node: String,
    by_descheduler: bool,
    dry_run: bool,
}

impl Webhooks {
    /// Whether a pod may be evicted.
    pub(super) async fn evict(&self, incoming: Incoming) -> Answer {
        if incoming.resource.kind != KIND {
            let message = format!("this is for {KIND}, not for {:?}", incoming.resource.kind);
            return refused(incoming.uid, 400, "BadRequest", message);
        }
        let eviction: Eviction = match serde_json::from_value(incoming.object.clone()) {
            Ok(eviction) => eviction,
            Err(error) => return refused(incoming.uid, 400, "BadRequest", error.to_string()),
        };
        let config = self.configuration.now();
        let judged =
            self.cluster.judge(|objects| check(&self.context(&incoming, &config, objects), &eviction));
        match judged.await {
            Err(error) => hindered(incoming.uid, &error),
            Ok(Decision::Allow) => allowed(incoming.uid),
            Ok(Decision::Refuse { message }) => too_early(incoming.uid, message),
            Ok(Decision::Evacuate { namespace, vmi, node, by_descheduler, dry_run, message }) => {
                let evacuation = Evacuation { namespace, vmi, node, by_descheduler, dry_run };
                match self.mark(&evacuation).await {
                    Ok(()) => too_early(incoming.uid, message),
                    Err(error) => {
                        let why = format!("cannot mark instance {} for evacuation: {error}", evacuation.vmi);
                        hindered(incoming.uid, &why)
                    }
                }
            }
        }
    }

    /// Marks the instance; the API server refuses it if the instance is on another node by now.
    async fn mark(&self, evacuation: &Evacuation) -> kube::Result<()> {
        let api: Api<VirtualMachineInstance> = Api::namespaced(self.client.clone(), &evacuation.namespace);
        let annotated = !evacuation.by_descheduler || {
            let seen = api.get_metadata(&evacuation.vmi).await?;
            seen.metadata.annotations.is_some()
        };
        let operations =
            serde_json::from_value(mark(evacuation, annotated)).map_err(kube::Error::SerdeError)?;
        let parameters = PatchParams { dry_run: evacuation.dry_run, ..PatchParams::default() };
        api.patch(&evacuation.vmi, &parameters, &Patch::<()>::Json(operations)).await?;
        Ok(())
    }
}

/// The change to an instance that has to leave; `annotated` if it has annotations.
fn mark(evacuation: &Evacuation, annotated: bool) -> Value {
    let mut operations = vec![
        json!({ "op": "test", "path": "/status/nodeName", "value": evacuation.node }),
        json!({ "op": "add", "path": "/status/evacuationNodeName", "value": evacuation.node }),
    ];
    if evacuation.by_descheduler {
        if !annotated {
            operations.push(json!({ "op": "add", "path": "/metadata/annotations", "value": {} }));
        }
        let path = format!("/metadata/annotations/{}", EVICTION_SOURCE.replace('~', "~0").replace('/', "~1"));
        operations.push(json!({ "op": "add", "path": path, "value": DESCHEDULER }));
    }
    operations.into()
}

fn allowed(uid: String) -> Answer {
    Answer { uid, problems: Vec::new(), warnings: Vec::new(), patch: None, refusal: None }
}

/// The answer that lets `kubectl drain` try again.
fn too_early(uid: String, message: String) -> Answer {
    refused(uid, 429, "TooManyRequests", message)
}

/// The answer where a trouble of ours stands in the way: it passes, and `kubectl drain` gives up on anything else.
pub(super) fn hindered(uid: String, why: &dyn std::fmt::Display) -> Answer {
    tracing::warn!("an eviction has to wait: {why}");
    too_early(uid, why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_as_large_as_it_must_be() {
        let evacuation = |by_descheduler| Evacuation {
            namespace: "default".into(),
            vmi: "vm".into(),
            node: "node01".into(),
            by_descheduler,
            dry_run: false,
        };
        let paths = |value: Value| {
            let operations = value.as_array().unwrap().iter();
            operations.map(|one| one["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let node = ["/status/nodeName", "/status/evacuationNodeName"];
        assert_eq!(paths(mark(&evacuation(false), true)), node);
        let source = "/metadata/annotations/kubevirt.io~1eviction-source";
        assert_eq!(paths(mark(&evacuation(true), true)), [node[0], node[1], source]);
        assert_eq!(
            paths(mark(&evacuation(true), false)),
            [node[0], node[1], "/metadata/annotations", source]
        );
    }
}
