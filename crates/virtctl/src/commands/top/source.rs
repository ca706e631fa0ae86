//! Where the numbers come from: virt-handlers if the user may ask them, else the cluster's metrics server.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use http::Method;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use kubevirt_api::names::{components, labels};
use kubevirt_api::quantity::Amount;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::Value;

use super::metrics::{self, Cpu, Key, Usage};
use crate::connect::Session;
use crate::failure::Refusal;
use crate::subresource::{Error, escaped};

/// The port of a handler where its pod does not name one.
const METRICS_PORT: i32 = 8443;

/// Where numbers can be had.
#[derive(Clone, Debug)]
pub enum Source {
    /// From the handlers: everything. Pods by the node that they are on, with their paths.
    Handlers(BTreeMap<String, String>),
    /// From the metrics server: CPU and memory.
    MetricsServer,
    /// Nowhere.
    None,
}

/// The best source that the user may use, and what is missing about it.
pub async fn find(session: &Session, nodes: &BTreeSet<String>) -> Result<(Source, Option<String>), Error> {
    let denied = match handlers(session, nodes).await {
        // Nothing is on a node yet: whether they may be asked will be seen.
        Ok(handlers) if nodes.is_empty() => return Ok((Source::Handlers(handlers), None)),
        Ok(handlers) if handlers.is_empty() => "no virt-handler runs".to_owned(),
        Ok(handlers) => {
            // One of them speaks for all: rights are not by node.
            let path = handlers.values().next().cloned().unwrap_or_default();
            match session.call(Method::GET, &path, None).await {
                Ok(_) => return Ok((Source::Handlers(handlers), None)),
                Err(error) => words(error)?,
            }
        }
        Err(error) => words(error)?,
    };
    let more = format!(
        "Disk and network are for those who may get pods/proxy in the namespace of KubeVirt ({denied})."
    );
    match session.call(Method::GET, "/apis/metrics.k8s.io/v1beta1", None).await {
        Ok(_) => Ok((Source::MetricsServer, Some(more))),
        Err(error) => {
            let other = words(error)?;
            Ok((
                Source::None,
                Some(format!(
                    "Nothing is known about usage: virt-handlers cannot be asked ({denied}), and there is no metrics \
                     server ({other}).\nAsk an administrator for get on pods/proxy in the namespace of KubeVirt, or for a \
                     metrics server."
                )),
            ))
        }
    }
}

/// The same source for machines that are elsewhere by now.
pub async fn follow(session: &Session, source: Source, nodes: &BTreeSet<String>) -> Source {
    match source {
        Source::Handlers(before) => Source::Handlers(handlers(session, nodes).await.unwrap_or(before)),
        other => other,
    }
}

/// A refusal in words; a cluster that does not answer is a failure.
fn words(error: Error) -> Result<String, Error> {
    match error {
        Error::Refused(Refusal { message, .. }) => Ok(message.lines().next().unwrap_or_default().to_owned()),
        other => Err(other),
    }
}

async fn handlers(session: &Session, nodes: &BTreeSet<String>) -> Result<BTreeMap<String, String>, Error> {
    let chosen = ListParams::default().labels(&format!("{}={}", labels::APP, components::HANDLER));
    let pods = match Api::<Pod>::all(session.client.clone()).list(&chosen).await {
        Ok(pods) => pods,
        Err(kube::Error::Api(status)) => {
            let message = status.message.clone();
            return Err(Refusal { code: status.code, reason: status.reason.clone(), message }.into());
        }
        Err(error) => return Err(error.into()),
    };
    Ok(pods.items.iter().filter_map(|pod| path(pod, nodes)).collect())
}

/// The node of a handler and the path to what it measures.
fn path(pod: &Pod, nodes: &BTreeSet<String>) -> Option<(String, String)> {
    let spec = pod.spec.as_ref()?;
    let node = spec.node_name.clone().filter(|node| nodes.contains(node))?;
    let ports = spec.containers.iter().flat_map(|container| container.ports.iter().flatten());
    let port = ports.into_iter().find(|port| port.name.as_deref() == Some("metrics"));
    let port = port.map_or(METRICS_PORT, |port| port.container_port);
    let (namespace, name) = (escaped(pod.metadata.namespace.as_ref()?), escaped(pod.metadata.name.as_ref()?));
    Some((node, format!("/api/v1/namespaces/{namespace}/pods/https:{name}:{port}/proxy/metrics")))
}

/// What all machines have used; a handler that does not answer leaves its machines out.
pub async fn look(
    session: &Session,
    source: &Source,
    namespace: Option<&str>,
    machines: &[VirtualMachineInstance],
) -> BTreeMap<Key, Usage> {
    let mut known = BTreeMap::new();
    match source {
        Source::Handlers(handlers) => {
            let asked = handlers.values().map(|path| session.call(Method::GET, path, None));
            for text in join_all(asked).await.into_iter().flatten() {
                metrics::add(&String::from_utf8_lossy(&text), &mut known);
            }
        }
        Source::MetricsServer => {
            let scope = namespace.map(|name| format!("namespaces/{}/", escaped(name))).unwrap_or_default();
            let selector = escaped(&format!("{}=virt-launcher", labels::APP));
            let path = format!("/apis/metrics.k8s.io/v1beta1/{scope}pods?labelSelector={selector}");
            if let Ok(bytes) = session.call(Method::GET, &path, None).await {
                known = of_pods(&serde_json::from_slice(&bytes).unwrap_or_default(), machines);
            }
        }
        Source::None => {}
    }
    known
}

/// What the pods of machines use, by machine.
fn of_pods(list: &Value, machines: &[VirtualMachineInstance]) -> BTreeMap<Key, Usage> {
    let mut known = BTreeMap::new();
    for pod in list["items"].as_array().into_iter().flatten() {
        let uid = pod["metadata"]["labels"][labels::CREATED_BY].as_str();
        let Some(vmi) = machines.iter().find(|vmi| vmi.metadata.uid.as_deref() == uid && uid.is_some())
        else {
            continue;
        };
        let key = (
            vmi.metadata.namespace.clone().unwrap_or_default(),
            vmi.metadata.name.clone().unwrap_or_default(),
        );
        let containers = pod["containers"].as_array().into_iter().flatten();
        let (mut cpu, mut memory) = (0.0, 0.0);
        for container in containers {
            cpu += number(&container["usage"]["cpu"]);
            memory += number(&container["usage"]["memory"]);
        }
        // While it migrates a machine has two pods; the one that is at work uses more.
        let usage: &mut Usage = known.entry(key).or_default();
        if usage.memory.is_none_or(|before| before < memory) {
            *usage = Usage { cpu: Some(Cpu::Cores(cpu)), memory: Some(memory), ..Usage::default() };
        }
    }
    known
}

fn number(quantity: &Value) -> f64 {
    let amount = quantity.as_str().and_then(|text| Amount::parse(text).ok());
    amount.map_or(0.0, |amount| amount.nanos() as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_metrics_server_knows_pods_and_we_know_whose_they_are() {
        let vmi: VirtualMachineInstance = serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "ns", "uid": "u"}, "spec": {"domain": {"devices": {}}}}))
        .unwrap();
        let pod = |uid: &str, cpu: &str, memory: &str| {
            json!({"metadata": {"labels": {"kubevirt.io/created-by": uid}}, "containers": [
                {"name": "compute", "usage": {"cpu": cpu, "memory": memory}},
                {"name": "guest-console-log", "usage": {"cpu": "0", "memory": "1Ki"}}]})
        };
        let list = json!({"items": [pod("u", "250m", "1Ki"), pod("u", "1000000000n", "1Mi"), pod("other", "1", "1")]});
        let usage = Usage { cpu: Some(Cpu::Cores(1.0)), memory: Some(1_049_600.0), ..Usage::default() };
        assert_eq!(of_pods(&list, &[vmi]), BTreeMap::from([(("ns".into(), "a".into()), usage)]));
        assert_eq!(of_pods(&Value::Null, &[]), BTreeMap::new());
    }

    #[test]
    fn handlers_are_asked_on_nodes_that_matter() {
        let pod = |node: &str, port: &str| -> Pod {
            serde_json::from_value(json!({"metadata": {"name": "h", "namespace": "kubevirt"}, "spec": {
                "nodeName": node, "containers": [{"name": "c", "ports": [{"name": port, "containerPort": 9443}]}]}}))
            .unwrap()
        };
        let nodes = BTreeSet::from(["n1".to_owned()]);
        let of = |pod: Pod| path(&pod, &nodes).map(|(_, path)| path);
        let is = |port| Some(format!("/api/v1/namespaces/kubevirt/pods/https:h:{port}/proxy/metrics"));
        assert_eq!(of(pod("n1", "metrics")), is(9443));
        assert_eq!(of(pod("n1", "web")), is(METRICS_PORT));
        assert_eq!(of(pod("n2", "metrics")), None);
    }
}
