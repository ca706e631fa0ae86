//! A port of this machine that leads to an export's pod, through the API server.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::Api;
use kube::api::ListParams;
use kubevirt_api::export::VirtualMachineExport;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::connect::Session;
use crate::output::note;

/// The port of an export's service.
const PORT: i32 = 443;

/// A port that is open until this is dropped.
pub struct Forward {
    /// Where to connect to.
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Forward {
    /// Finds the export's pod and opens the port; any if it is 0.
    pub async fn start(session: &Session, export: &VirtualMachineExport, port: u16) -> Result<Self> {
        let status = export.status.as_ref();
        let name =
            status.and_then(|status| status.service_name.clone()).context("the export has no service")?;
        let service =
            session.api::<Service>(None).get(&name).await.context("the export's service cannot be read")?;
        let spec = service.spec.clone().unwrap_or_default();
        let selector: Vec<_> =
            spec.selector.iter().flatten().map(|(key, value)| format!("{key}={value}")).collect();
        if selector.is_empty() {
            bail!("the service {name} selects no pods");
        }
        let pods = session.api::<Pod>(None);
        let found = pods
            .list(&ListParams::default().labels(&selector.join(",")))
            .await
            .context("failed to list pods")?;
        let pod = found
            .items
            .into_iter()
            .next()
            .with_context(|| format!("no pods found for the service {name}"))?;
        let target = target(&service, &pod)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let listener = listener.with_context(|| format!("the local port {port} cannot be used"))?;
        let address = listener.local_addr()?;
        let pod = pod.metadata.name.unwrap_or_default();
        Ok(Self { address, task: tokio::spawn(serve(listener, pods, pod, target)) })
    }
}

/// The port of the pod that the service's port leads to.
fn target(service: &Service, pod: &Pod) -> Result<u16> {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    let Some(port) = ports.iter().find(|port| port.port == PORT) else {
        bail!("the export's service has no port {PORT}");
    };
    let number = match &port.target_port {
        None | Some(IntOrString::Int(0)) => port.port,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(name)) => {
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let mut named = containers.flat_map(|container| container.ports.iter().flatten());
            let found = named.find(|port| port.name.as_deref() == Some(name));
            found.with_context(|| format!("the export's pod has no port {name}"))?.container_port
        }
    };
    u16::try_from(number).with_context(|| format!("{number} is not a port"))
}

async fn serve(listener: TcpListener, pods: Api<Pod>, pod: String, target: u16) {
    while let Ok((stream, _)) = listener.accept().await {
        let (pods, pod) = (pods.clone(), pod.clone());
        tokio::spawn(async move {
            // Who connected sees that the connection ends, and says so.
            if let Err(error) = carry(stream, &pods, &pod, target).await {
                note!("port-forward to pod {pod}: {error:#}");
            }
        });
    }
}

async fn carry(mut stream: TcpStream, pods: &Api<Pod>, pod: &str, target: u16) -> Result<()> {
    let mut forwarder = pods.portforward(pod, &[target]).await?;
    let mut there = forwarder.take_stream(target).context("there is no stream")?;
    // One side ends first, and not always politely.
    let _ = tokio::io::copy_bidirectional(&mut stream, &mut there).await;
    drop(there);
    forwarder.abort();
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_are_found_by_number_and_name() {
        let pod: Pod = serde_json::from_value(json!({
            "spec": { "containers": [{ "name": "a", "ports": [{ "name": "https", "containerPort": 8443 }] }] },
        }))
        .unwrap();
        let of = |port: serde_json::Value| {
            let service = json!({ "spec": { "ports": [{ "port": 80 }, port] } });
            target(&serde_json::from_value(service).unwrap(), &pod).map_err(|error| error.to_string())
        };
        assert_eq!(of(json!({ "port": 443, "targetPort": 8444 })), Ok(8444));
        assert_eq!(of(json!({ "port": 443 })), Ok(443));
        assert_eq!(of(json!({ "port": 443, "targetPort": "https" })), Ok(8443));
        assert_eq!(
            of(json!({ "port": 443, "targetPort": "x" })),
            Err("the export's pod has no port x".into())
        );
        assert_eq!(of(json!({ "port": 444 })), Err("the export's service has no port 443".into()));
    }
}
