//! What is done by the node of an instance, and streams to an instance.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use kubevirt_api::backup::{BackupCheckpoint, BackupOptions};
use kubevirt_api::names::labels;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::attestation::SevSecretOptions;
use kubevirt_component::serve::keep_alive;
use kubevirt_streams::accept;
use serde_json::json;
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::failure::{Failure, empty_response};
use super::options::{self, checked, decode, is_dry_run};
use super::plan::{is_running, phase, ready};
use super::query::Query;
use super::relay::{Datagrams, Far, relay};
use super::routes::{Line, Matched, On, Order, Question};
use super::seen::look;
use super::{Call, Subresources};

/// How long a guest may take to answer on a port.
const CONNECT: Duration = Duration::from_secs(10);

type Answer = Result<Response<Body>, Failure>;

/// Where the handler has a subresource of an instance.
fn path(matched: &Matched, query: &str) -> String {
    let (namespace, name) = (&matched.namespace, &matched.name);
    format!("/v1/namespaces/{namespace}/virtualmachineinstances/{name}/{}{query}", matched.route.path)
}

impl Subresources {
    /// Lets the node do something to the instance.
    pub(super) async fn order(&self, order: Order, call: &Call<'_>) -> Answer {
        if order == Order::InjectLaunchSecret {
            ready::sev_gate(&self.configuration.now())?;
        }
        let (body, dry_run) = order_body(order, call)?;
        let (namespace, name) = (&call.matched.namespace, &call.matched.name);
        if order == Order::Unpause {
            ready::unpause(look(&self.client, namespace, name).await?.as_deref())?;
        }
        let vmi = self.instance_named(namespace, name).await?;
        ready::order(order, &vmi)?;
        let ordered = async {
            let node = ready::on_a_node(&vmi)?;
            if dry_run {
                return Ok(());
            }
            self.handlers.request(node, Method::PUT, &path(call.matched, ""), body).await.map(drop)
        };
        ordered.await.map_err(|failure| in_context(order, &vmi, failure))?;
        Ok(empty_response(StatusCode::OK))
    }

    /// Asks the node about the instance.
    pub(super) async fn ask(&self, question: Question, call: &Call<'_>) -> Answer {
        if matches!(question, Question::FetchCertChain | Question::QueryLaunchMeasurement) {
            ready::sev_gate(&self.configuration.now())?;
        }
        let query = match question {
            Question::Screenshot => format!("?moveCursor={}", call.query.flag("moveCursor", false)?),
            _ => String::new(),
        };
        let vmi = self.instance_named(&call.matched.namespace, &call.matched.name).await?;
        ready::question(question, &vmi)?;
        let node = ready::on_a_node(&vmi)?;
        let path = path(call.matched, &query);
        let answer = self.handlers.request(node, Method::GET, &path, Bytes::new()).await?;
        let kind = answer.headers().get(CONTENT_TYPE).cloned();
        let mut response = Response::new(Body::from(answer.into_body()));
        let usual = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, kind.unwrap_or(usual));
        Ok(response)
    }

    /// Joins a client with the instance by way of its node.
    pub(super) async fn open_line(
        &self,
        line: Line,
        matched: &Matched,
        query: &Query,
        request: Request<Body>,
    ) -> Answer {
        let query = line_query(line, query)?;
        let vmi = self.instance_named(&matched.namespace, &matched.name).await?;
        ready::line(line, &vmi)?;
        let node = ready::on_a_node(&vmi)?;
        self.join(matched, request, self.handlers.open(node, &path(matched, &query))).await
    }

    /// Joins a client with a port of the instance.
    pub(super) async fn forward_port(&self, matched: &Matched, request: Request<Body>) -> Answer {
        let (port, udp) = target(&matched.parameters)?;
        let (namespace, name) = (&matched.namespace, &matched.name);
        let vmi = match matched.route.on {
            On::Machine => self.instance_of_machine(namespace, name).await?,
            _ => self.instance_named(namespace, name).await?,
        };
        ready::port_forward(&vmi)?;
        let address = SocketAddr::new(self.address_of(&vmi).await?, port);
        if udp {
            self.join(matched, request, datagrams(address)).await
        } else {
            self.join(matched, request, connection(address)).await
        }
    }

    /// Opens the far side, then tells the client that the stream is open.
    async fn join<F: Far>(
        &self,
        matched: &Matched,
        mut request: Request<Body>,
        far: impl Future<Output = Result<F, Failure>>,
    ) -> Answer {
        let (response, accepted) =
            accept(&mut request).map_err(|error| Failure::bad_request(error.to_string()))?;
        let far = far.await?;
        let counted = self.connections.count(matched.route.action, &matched.namespace, &matched.name);
        let stop = self.end_of_streams.clone();
        self.streams.spawn(async move {
            match accepted.stream().await {
                Ok(client) => relay(client, far, &stop).await,
                Err(error) => tracing::debug!("a client did not take its stream: {error}"),
            }
            drop(counted);
        });
        Ok(response.map(|()| Body::empty()))
    }

    /// The address of an instance on the pod network. That of its pod counts: what an instance says of itself may
    /// come from its guest, who could name any address.
    async fn address_of(&self, vmi: &VirtualMachineInstance) -> Result<IpAddr, Failure> {
        let namespace = vmi.metadata.namespace.as_deref().unwrap_or_default();
        let uid = vmi.metadata.uid.as_deref().unwrap_or_default();
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let own = ListParams::default().labels(&format!("{}={uid}", labels::CREATED_BY));
        let pods = pods.list(&own).await.map_err(Failure::internal)?;
        address(vmi, &pods.items).ok_or_else(|| Failure::bad_request("no network interfaces are present"))
    }
}

/// The address of an instance, by its pods.
fn address(vmi: &VirtualMachineInstance, pods: &[Pod]) -> Option<IpAddr> {
    let status = vmi.status.as_ref()?;
    let networks = vmi.spec.networks.as_deref().unwrap_or_default();
    let network = networks.iter().find(|network| {
        network.pod.is_some() || network.multus.as_ref().is_some_and(|multus| multus.default == Some(true))
    })?;
    let here = pods.iter().filter(|pod| {
        pod.spec.as_ref().is_some_and(|spec| spec.node_name == status.node_name)
            && pod.metadata.deletion_timestamp.is_none()
    });
    let running = here
        .filter(|pod| pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running")));
    let addresses = |pod: &Pod| -> Vec<IpAddr> {
        let status = pod.status.clone().unwrap_or_default();
        let all = status.pod_ips.unwrap_or_default().into_iter().map(|it| it.ip).chain(status.pod_ip);
        all.filter_map(|ip| ip.parse().ok()).collect()
    };
    let known = running.map(addresses).find(|found| !found.is_empty())?;
    let interfaces = status.interfaces.as_deref().unwrap_or_default();
    let interface = interfaces.iter().find(|interface| interface.name.as_deref() == Some(&network.name));
    let told = interface.and_then(|interface| interface.ip_address.as_deref()?.parse().ok());
    told.filter(|ip| known.contains(ip)).or(known.first().copied())
}

async fn connection(address: SocketAddr) -> Result<TcpStream, Failure> {
    let dialing = |error: &dyn std::fmt::Display| Failure::internal(format!("dialing VM: {error}"));
    let connecting = async {
        let stream = TcpStream::connect(address).await?;
        // A delay to collect small writes would be felt by who types.
        stream.set_nodelay(true)?;
        keep_alive(&stream)?;
        Ok(stream)
    };
    match timeout(CONNECT, connecting).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err::<_, std::io::Error>(error)) => Err(dialing(&format!("dial tcp {address}: {error}"))),
        Err(_) => Err(dialing(&format!("dial tcp {address}: no answer in time"))),
    }
}

async fn datagrams(address: SocketAddr) -> Result<Datagrams, Failure> {
    let any: SocketAddr = if address.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let open = async {
        let socket = UdpSocket::bind(any).await?;
        socket.connect(address).await?;
        Ok(Datagrams(socket))
    };
    open.await.map_err(|error: std::io::Error| {
        Failure::internal(format!("dialing VM: dial udp {address}: {error}"))
    })
}

/// The port and whether it takes datagrams.
fn target(parameters: &[String]) -> Result<(u16, bool), Failure> {
    let mut parameters = parameters.iter().map(String::as_str);
    let port = parameters.next().unwrap_or_default();
    if port.is_empty() {
        return Err(Failure::bad_request("port must not be empty"));
    }
    let number = port.parse().ok().filter(|number| *number > 0);
    let number = number
        .ok_or_else(|| Failure::bad_request(format!("port {port:?} is not a number from 1 to 65535")))?;
    match parameters.next().unwrap_or("tcp") {
        "tcp" => Ok((number, false)),
        "udp" => Ok((number, true)),
        other => Err(Failure::bad_request(format!("protocol {other:?} is not supported: tcp and udp are"))),
    }
}

/// What the handler is told of a stream.
fn line_query(line: Line, query: &Query) -> Result<String, Failure> {
    match line {
        Line::Console | Line::UsbRedir => Ok(String::new()),
        Line::Vnc => Ok(format!("?preserveSession={}", query.flag("preserveSession", false)?)),
        Line::Vsock => {
            let port = query.get("port").ok_or_else(|| Failure::bad_request("port must not be empty"))?;
            let number: Option<u32> = port.parse().ok();
            let number = number.ok_or_else(|| {
                Failure::bad_request(format!("port {port:?} is not the number of a vsock port"))
            })?;
            Ok(format!("?port={number}&tls={}", query.flag("tls", true)?))
        }
    }
}

/// What the handler gets as the body of an order, and whether it is not to be given.
fn order_body(order: Order, call: &Call<'_>) -> Result<(Bytes, bool), Failure> {
    let only_query = || is_dry_run(&options::Nothing::default(), &call.query.0);
    match order {
        Order::Pause | Order::Unpause => {
            let (_, dry_run) = call.options::<options::PauseOptions>()?;
            Ok((Bytes::new(), dry_run))
        }
        Order::Freeze => {
            let (options, dry_run) = call.options::<options::FreezeOptions>()?;
            let Some(time) = &options.unfreeze_timeout else {
                return Err(Failure::bad_request("Unfreeze timeout in freeze request is not set"));
            };
            time.parse().map_err(|error| Failure::bad_request(format!("unfreezeTimeout: {error}")))?;
            Ok((json!({ "unfreezeTimeout": time }).to_string().into(), dry_run))
        }
        Order::Unfreeze | Order::Reset | Order::SoftReboot => {
            decode::<options::Nothing>(&call.body)?;
            Ok((Bytes::new(), only_query()?))
        }
        Order::Backup => Ok((checked::<BackupOptions>(&call.body)?, only_query()?)),
        Order::RedefineCheckpoint => Ok((checked::<BackupCheckpoint>(&call.body)?, only_query()?)),
        Order::InjectLaunchSecret => {
            if call.body.trim_ascii().is_empty() {
                return Err(Failure::bad_request("Request with no body: SEV secret parameters are required"));
            }
            Ok((checked::<SevSecretOptions>(&call.body)?, only_query()?))
        }
    }
}

/// Says why an order may have failed.
fn in_context(order: Order, vmi: &VirtualMachineInstance, mut failure: Failure) -> Failure {
    if order == Order::Reset && !is_running(vmi) {
        let phase = phase(vmi).map(ToString::to_string).unwrap_or_default();
        failure.message = format!("Failed to reset non-running VMI with phase {phase}: {}", failure.message);
    }
    failure
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::testing::watched_over;

    #[test]
    fn ports_are_numbers_and_protocols_are_two() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(target(&words(&["22"])), Ok((22, false)));
        assert_eq!(target(&words(&["53", "udp"])), Ok((53, true)));
        for wrong in [&[""][..], &["0"], &["65536"], &["-1"], &["ssh"], &["22", "sctp"], &["22", ""], &[]] {
            assert_eq!(target(&words(wrong)).unwrap_err().code, 400, "{wrong:?}");
        }
    }

    #[test]
    fn handlers_are_told_what_clients_ask_for() {
        let cases = [
            (Line::Console, "preserveSession=true", ""),
            (Line::Vnc, "", "?preserveSession=false"),
            (Line::Vnc, "preserveSession=true", "?preserveSession=true"),
            (Line::Vsock, "port=1024", "?port=1024&tls=true"),
            (Line::Vsock, "port=1024&tls=false", "?port=1024&tls=false"),
        ];
        for (line, query, expected) in cases {
            assert_eq!(line_query(line, &Query::of(query)).unwrap(), expected);
        }
        for (line, query) in [
            (Line::Vsock, ""),
            (Line::Vsock, "port=x"),
            (Line::Vsock, "port=-1"),
            (Line::Vnc, "preserveSession=maybe"),
        ] {
            assert_eq!(line_query(line, &Query::of(query)).unwrap_err().code, 400, "{query}");
        }
    }

    #[tokio::test]
    async fn a_forwarded_port_whose_guest_is_gone_is_noticed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = connection(listener.local_addr().unwrap()).await.unwrap();
        // The other end is not ours.
        let far = listener.accept().await.unwrap();
        keep_alive(&far.0).unwrap();
        watched_over(listener.local_addr().unwrap().port(), 2).await;
        drop((near, far));
    }

    fn vmi(networks: Value, ip: Value) -> VirtualMachineInstance {
        serde_json::from_value(json!({
            "spec": { "domain": { "devices": {} }, "networks": networks },
            "status": { "nodeName": "here", "interfaces": [{ "name": "default", "ipAddress": ip }] },
        }))
        .unwrap()
    }

    fn pod(node: &str, phase: &str, ips: &[&str]) -> Pod {
        let ips: Vec<_> = ips.iter().map(|ip| json!({ "ip": ip })).collect();
        serde_json::from_value(json!({
            "spec": { "nodeName": node, "containers": [] }, "status": { "phase": phase, "podIPs": ips },
        }))
        .unwrap()
    }

    #[test]
    fn only_the_pod_of_an_instance_is_dialed() {
        let on_pods = json!([{ "name": "default", "pod": {} }]);
        let elsewhere = json!([{ "name": "default", "multus": { "networkName": "n" } }]);
        let both = pod("here", "Running", &["10.0.0.1", "fd00::1"]);
        let cases = [
            (vmi(on_pods.clone(), json!("10.0.0.1")), vec![both.clone()], Some("10.0.0.1")),
            (vmi(on_pods.clone(), json!("fd00::1")), vec![both.clone()], Some("fd00::1")),
            // What a guest says of itself is not believed.
            (vmi(on_pods.clone(), json!("169.254.169.254")), vec![both.clone()], Some("10.0.0.1")),
            (vmi(on_pods.clone(), Value::Null), vec![both.clone()], Some("10.0.0.1")),
            (vmi(on_pods.clone(), json!("10.0.0.1")), vec![], None),
            (vmi(on_pods.clone(), json!("10.0.0.1")), vec![pod("there", "Running", &["10.0.0.1"])], None),
            (vmi(on_pods, json!("10.0.0.1")), vec![pod("here", "Failed", &["10.0.0.1"])], None),
            (vmi(elsewhere, json!("10.0.0.1")), vec![both.clone()], None),
            (vmi(json!([]), json!("10.0.0.1")), vec![both], None),
        ];
        for (index, (vmi, pods, expected)) in cases.into_iter().enumerate() {
            assert_eq!(address(&vmi, &pods).map(|ip| ip.to_string()).as_deref(), expected, "case {index}");
        }
    }
}
