//! An API server in memory, for tests of what we make of its answers.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{Request, Response};
use kube::Client;
use serde_json::{Value, json};

/// Waits until the kernel watches over all ends on this machine of connections to this port: so many there must be.
pub async fn watched_over(port: u16, ends: usize) {
    let is_port = |address: &str| address.ends_with(&format!(":{port:04X}"));
    let began = Instant::now();
    loop {
        let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
        let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        // Connections that are established, by their ends.
        let open = lines.filter(|fields| fields[3] == "01" && fields[1..3].iter().any(|end| is_port(end)));
        let timers: Vec<String> = open.map(|fields| fields[5][..2].to_owned()).collect();
        // The timer of keep-alive, and not the one of something that is on its way.
        if timers.len() == ends && timers.iter().all(|timer| timer == "02") {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "connections with timers {timers:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// An API server with one machine that runs, named `up`, and one that does not, named `down`, in every namespace.
/// It takes every change and keeps none.
#[derive(Clone, Default)]
pub struct ApiServer {
    /// Whether everyone may do everything, or nobody anything.
    pub allows: bool,
    raced: bool,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ApiServer {
    /// One where everyone may do everything, or nobody anything.
    pub fn new(allows: bool) -> Self {
        Self { allows, ..Self::default() }
    }

    /// The same where somebody else is always faster, so that no object is as it was seen.
    pub fn raced(self) -> Self {
        Self { raced: true, ..self }
    }

    /// A client of it.
    pub fn client(&self) -> Client {
        let own = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let own = own.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = axum::body::to_bytes(Body::new(body), usize::MAX).await.unwrap_or_default();
                let (code, answer) = own.answer(head.method.as_str(), head.uri.path(), &body);
                let response = Response::builder().status(code).body(Body::from(answer.to_string()));
                Ok::<_, Infallible>(response.unwrap())
            }
        });
        Client::new(service, "default")
    }

    /// What it was asked for so far: method and path.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn answer(&self, method: &str, path: &str, body: &Bytes) -> (u16, Value) {
        self.asked.lock().unwrap().push(format!("{method} {path}"));
        if path.ends_with("/subjectaccessreviews") {
            return (201, json!({ "metadata": {}, "spec": {}, "status": { "allowed": self.allows } }));
        }
        if path == "/version" {
            let fields =
                ["major", "minor", "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion"];
            let all =
                fields.into_iter().chain(["compiler", "platform"]).map(|name| (name.to_owned(), json!("1")));
            return (200, all.collect());
        }
        if method == "POST" {
            return (201, serde_json::from_slice(body).unwrap_or_default());
        }
        let words: Vec<&str> = path.split('/').skip(1).collect();
        let rest = match words.as_slice() {
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
            _ => &[],
        };
        if method == "PATCH" && self.raced {
            return (422, failed_test());
        }
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        match rest {
            [plural] => (200, json!({ "metadata": {}, "items": Vec::from_iter(listed(plural)) })),
            [plural, name, ..] => match object(plural, namespace, name) {
                Some(object) => (200, object),
                None => missing(),
            },
            [] => missing(),
        }
    }
}

/// What an API server says of a JSON patch whose test does not hold.
pub fn failed_test() -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Invalid",
        "message": "the server rejected our request due to an error in our request", "details": {}, "code": 422,
    })
}

fn missing() -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "NotFound",
        "message": "not found", "code": 404,
    });
    (404, status)
}

/// An instance as people write them.
pub fn instance() -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
        "metadata": { "name": "up", "namespace": "a", "labels": { "app": "web" } },
        "spec": {
            "domain": {
                "cpu": { "cores": 2, "model": "host-model" },
                "memory": { "guest": "1Gi" },
                "resources": { "requests": { "memory": "1Gi", "cpu": "100m" } },
                "firmware": { "bootloader": { "efi": { "secureBoot": false } } },
                "devices": {
                    "disks": [
                        { "name": "root", "disk": { "bus": "virtio" }, "bootOrder": 1 },
                        { "name": "init", "cdrom": { "bus": "sata" } },
                    ],
                    "interfaces": [{ "name": "default", "masquerade": {}, "ports": [{ "port": 22 }] }],
                },
            },
            "networks": [{ "name": "default", "pod": {} }],
            "terminationGracePeriodSeconds": 30,
            "tolerations": [{ "key": "a", "operator": "Exists" }],
            "readinessProbe": { "tcpSocket": { "port": 22 }, "periodSeconds": 5 },
            "volumes": [
                { "name": "root", "containerDisk": { "image": "registry.example/debian:13" } },
                { "name": "init", "cloudInitNoCloud": { "userData": "#cloud-config\n" } },
            ],
        },
    })
}

/// A machine as people write them.
pub fn machine() -> Value {
    let instance = instance();
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
        "metadata": { "name": "up", "namespace": "a" },
        "spec": {
            "runStrategy": "Always",
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": instance["spec"] },
        },
    })
}

fn object(plural: &str, namespace: &str, name: &str) -> Option<Value> {
    let mut object = match (plural, name) {
        ("virtualmachines", "up" | "down") => machine(),
        ("virtualmachineinstances", "up") => instance(),
        ("persistentvolumeclaims", "claim") => json!({
            "metadata": {}, "spec": { "resources": { "requests": { "storage": "100Gi" } } },
        }),
        _ => return None,
    };
    let uid = format!("{plural}-{name}");
    object["metadata"]["name"] = json!(name);
    object["metadata"]["namespace"] = json!(namespace);
    object["metadata"]["uid"] = json!(uid);
    object["metadata"]["resourceVersion"] = json!("1");
    match (plural, name) {
        ("virtualmachines", "up") => object["status"] = json!({ "created": true, "ready": true }),
        ("virtualmachines", _) => object["spec"]["runStrategy"] = json!("Halted"),
        ("virtualmachineinstances", _) => {
            let owner = json!({
                "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": name, "controller": true,
                "uid": format!("virtualmachines-{name}"),
            });
            object["metadata"]["ownerReferences"] = json!([owner]);
            object["status"] = json!({ "phase": "Running", "nodeName": "here" });
        }
        _ => {}
    }
    Some(object)
}

/// The pod of the instance that runs, at the address of this machine; and the installation.
fn listed(plural: &str) -> Option<Value> {
    match plural {
        "pods" => Some(json!({
            "metadata": { "name": "launcher" }, "spec": { "nodeName": "here", "containers": [] },
            "status": { "phase": "Running", "podIP": "127.0.0.1", "podIPs": [{ "ip": "127.0.0.1" }] },
        })),
        "kubevirts" => Some(json!({
            "metadata": { "name": "kubevirt" }, "spec": {},
            "status": { "observedDeploymentConfig": "{\"gsImage\":\"tools\"}" },
        })),
        _ => None,
    }
}
