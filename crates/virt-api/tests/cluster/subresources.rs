//! Subresources through the real aggregator.

use std::fs;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use axum::http::Request;
use futures_util::FutureExt;
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use kube::config::Config;
use kube::{Api, Client};
use kubevirt_api::migration::VirtualMachineInstanceMigration;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_streams::PROTOCOL;
use rcgen::{CertificateParams, DistinguishedName, DnType, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

use crate::aggregated::{self, Handler, answer, ask, get, open, path, put};
use crate::fixture::{Server, with_server};

/// What an API server says of a patch whose test does not hold.
const LOST_RACE: &str = "the server rejected our request due to an error in our request";

/// One test: there is only one aggregator.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subresources_through_the_aggregator() -> Result<()> {
    with_server("api-subresources", async |server| {
        let run = async {
            aggregated::register(server).await?;
            what_is_served_can_be_learnt(server).await.context("discovery")?;
            machines_start_and_stop(server).await.context("life")?;
            volumes_and_expansion(server).await.context("volumes and expansion")?;
            nodes_do_what_is_asked(server).await.context("nodes")?;
            streams_reach_the_guest(server).await.context("streams")?;
            only_the_aggregator_speaks_for_others(server).await.context("access")
        };
        let result = AssertUnwindSafe(run).catch_unwind().await;
        aggregated::unregister(server).await?;
        result.unwrap_or_else(|panic| resume_unwind(panic))
    })
    .await
}

async fn what_is_served_can_be_learnt(server: &Server<'_>) -> Result<()> {
    let kubectl = |arguments: &[&str]| server.test.cluster().kubectl(arguments);
    let list: Value =
        serde_json::from_str(&kubectl(&["get", "--raw", "/apis/subresources.kubevirt.io/v1"])?)?;
    assert_eq!(list["resources"].as_array().unwrap().len(), 31);
    for version in ["v1", "v1alpha3"] {
        let path = format!("/apis/subresources.kubevirt.io/{version}/version");
        let version: Value = serde_json::from_str(&kubectl(&["get", "--raw", &path])?)?;
        assert!(version["gitVersion"].as_str().unwrap().starts_with("v1.9.0+kubevirt-rs."), "{version}");
    }
    let health = get(server, "/apis/subresources.kubevirt.io/v1/healthz").await?;
    assert_eq!((health.code, &health.json()["apiserver"]["connectivity"]), (200, &json!("ok")));
    // Other kinds are still found by their short names.
    kubectl(&["get", "vms", "--all-namespaces"])?;
    kubectl(&["api-resources", "--api-group=kubevirt.io"])?;
    let described = async || Ok(get(server, "/openapi/v2").await?.body.contains("v1vmi-PortForward"));
    server.until("the API server describes what we serve (2)", described).await?;
    let described = async || {
        let path = "/openapi/v3/apis/subresources.kubevirt.io/v1";
        Ok(get(server, path).await?.body.contains("virtualmachines/{name}/start"))
    };
    server.until("the API server describes what we serve (3)", described).await?;
    let template =
        "/apis/subresources.template.kubevirt.io/v1alpha1/namespaces/a/virtualmachinetemplates/t/process";
    let missing = ask(&server.plain, "POST", template, &json!({})).await?;
    assert_eq!((missing.code, &missing.json()["reason"]), (501, &json!("NotImplemented")), "{missing:?}");
    let profiler = get(server, "/apis/subresources.kubevirt.io/v1/start-cluster-profiler").await?;
    assert_eq!(profiler.code, 403, "{profiler:?}");
    Ok(())
}

fn vm(name: &str, strategy: &str) -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": { "name": name },
        "spec": { "runStrategy": strategy, "template": { "spec": {
            "domain": { "memory": { "guest": "64Mi" }, "devices": {} },
        } } },
    })
}

async fn machines_start_and_stop(server: &Server<'_>) -> Result<()> {
    server.create(&vm("m", "Halted")).await?.accepted()?;
    let api: Api<VirtualMachine> = server.test.api();
    let strategy =
        async || Ok::<_, anyhow::Error>(api.get("m").await?.spec.run_strategy.map(|it| it.to_string()));
    let dry = put(server, "virtualmachines/m/start", &json!({ "dryRun": ["All"] })).await?;
    assert_eq!((dry.code, strategy().await?.as_deref()), (202, Some("Halted")), "{dry:?}");
    // As people do it.
    let start = path(server, "virtualmachines/m/start");
    server.test.cluster().kubectl_with_input(&["replace", "--raw", &start, "-f", "-"], "{}")?;
    assert_eq!(strategy().await?.as_deref(), Some("Always"));
    let again = put(server, "virtualmachines/m/start", &Value::Null).await?;
    assert_eq!(again.code, 409);
    assert!(again.message().ends_with("Always does not support manual start requests"), "{again:?}");
    let stopped = put(server, "virtualmachines/m/stop", &json!({ "gracePeriod": 3 })).await?;
    assert_eq!((stopped.code, strategy().await?.as_deref()), (202, Some("Halted")), "{stopped:?}");
    let off = put(server, "virtualmachines/m/stop", &Value::Null).await?;
    assert_eq!((off.code, off.message().ends_with("VM is not running")), (409, true), "{off:?}");

    server.create(&vm("manual", "Manual")).await?.accepted()?;
    let started = put(server, "virtualmachines/manual/start", &json!({ "paused": true })).await?;
    assert_eq!(started.code, 202, "{started:?}");
    let status = api.get_status("manual").await?.status.unwrap_or_default();
    let requests = serde_json::to_value(status.state_change_requests)?;
    assert_eq!(requests, json!([{ "action": "Start", "data": { "paused": "true" } }]));
    let twice = put(server, "virtualmachines/manual/start", &Value::Null).await?;
    assert!(twice.code == 500 && twice.message().contains("already underway"), "{twice:?}");

    for (rest, body, code, words) in [
        ("virtualmachines/none/start", json!({}), 404, "virtualmachine.kubevirt.io \"none\" not found"),
        ("virtualmachines/Foo/start", json!({}), 404, "virtualmachine.kubevirt.io \"Foo\" not found"),
        ("virtualmachineinstances/a_b/pause", json!({}), 404, "virtualmachineinstance.kubevirt.io \"a_b\""),
        ("virtualmachines/m/restart", json!({ "gracePeriodSeconds": 5 }), 400, "only gracePeriod=0"),
        ("virtualmachines/m/restart", json!({}), 409, "does not support manual restart requests"),
        ("virtualmachines/m/start", json!({ "pausd": true }), 400, "pausd"),
        ("virtualmachines/m/start", json!({ "dryRun": ["Some"] }), 400, "dryRun"),
        ("virtualmachines/m/migrate", json!({}), 404, "virtualmachineinstance.kubevirt.io \"m\" not found"),
        ("virtualmachineinstances/none/pause", json!({}), 404, "not found"),
    ] {
        let refused = put(server, rest, &body).await?;
        assert!(refused.code == code && refused.message().contains(words), "{rest}: {refused:?}");
        assert_eq!(refused.json()["kind"], "Status");
    }
    // How the API server says that something changed in between, which is what conflicts are told by.
    let test = json!([{ "op": "test", "path": "/spec/runStrategy", "value": "Once" }]);
    let test = Patch::<()>::Json(serde_json::from_value(test)?);
    let kube::Error::Api(status) = api.patch("m", &PatchParams::default(), &test).await.unwrap_err() else {
        anyhow::bail!("the API server answers")
    };
    assert_eq!((status.code, status.message.as_str()), (422, LOST_RACE), "{status:?}");
    Ok(())
}

async fn volumes_and_expansion(server: &Server<'_>) -> Result<()> {
    let api: Api<VirtualMachine> = server.test.api();
    let add = json!({
        "name": "data", "disk": { "disk": { "bus": "scsi" } },
        "volumeSource": { "persistentVolumeClaim": { "claimName": "c" } },
    });
    let added = put(server, "virtualmachines/m/addvolume", &add).await?;
    assert_eq!(added.code, 202, "{added:?}");
    let spec = api.get("m").await?.spec.template.spec.unwrap_or_default();
    let volumes = serde_json::to_value(&spec.volumes)?;
    let expected =
        json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "c", "hotpluggable": true } }]);
    assert_eq!(volumes, expected);
    let again = put(server, "virtualmachines/m/addvolume", &add).await?;
    assert!(again.code == 409 && again.message().contains("already exists"), "{again:?}");
    let removed = put(server, "virtualmachines/m/removevolume", &json!({ "name": "data" })).await?;
    assert_eq!(removed.code, 202, "{removed:?}");
    assert!(
        api.get("m").await?.spec.template.spec.unwrap_or_default().volumes.unwrap_or_default().is_empty()
    );

    volumes_are_plugged_at_once(server).await?;

    let instancetype = json!({
        "apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineInstancetype",
        "metadata": { "name": "small" }, "spec": { "cpu": { "guest": 2 }, "memory": { "guest": "128Mi" } },
    });
    server.create(&instancetype).await?.accepted()?;
    let mut sized = vm("sized", "Halted");
    sized["spec"]["instancetype"] = json!({ "name": "small", "kind": "VirtualMachineInstancetype" });
    sized["spec"]["template"]["spec"]["domain"] = json!({ "devices": {} });
    let expanded = put(server, "expand-vm-spec", &sized).await?;
    assert_eq!(expanded.code, 200, "{expanded:?}");
    assert_eq!(expanded.json()["spec"]["template"]["spec"]["domain"]["memory"]["guest"], "128Mi");
    server.create(&sized).await?.accepted()?;
    let expanded = get(server, &path(server, "virtualmachines/sized/expand-spec")).await?;
    assert_eq!(expanded.json()["spec"]["template"]["spec"]["domain"]["cpu"]["sockets"], 2, "{expanded:?}");
    sized["spec"]["instancetype"]["name"] = json!("none");
    assert_eq!(put(server, "expand-vm-spec", &sized).await?.code, 400);
    let broken = put(server, "expand-vm-spec", &json!({ "spec": { "template": 7 } })).await?;
    assert_eq!((broken.code, broken.message().as_str()), (400, "Object is not a valid VirtualMachine"));
    assert!(!broken.json()["details"]["causes"].as_array().unwrap().is_empty());
    let graph = get(server, &path(server, "virtualmachines/m/objectgraph")).await?;
    assert!(graph.code == 400 && graph.message().contains("ObjectGraph feature gate"), "{graph:?}");
    Ok(())
}

/// Each who loses a race is told in the words after which KubeVirt's virtctl asks again, and has its volume in the end.
async fn volumes_are_plugged_at_once(server: &Server<'_>) -> Result<()> {
    let names: Vec<String> = (0..8).map(|number| format!("data{number}")).collect();
    let plug = async |name: &String| -> Result<()> {
        let source = json!({ "persistentVolumeClaim": { "claimName": name } });
        let add = json!({ "name": name, "disk": { "disk": { "bus": "scsi" } }, "volumeSource": source });
        loop {
            let answer = put(server, "virtualmachines/m/addvolume", &add).await?;
            if answer.code == 202 {
                return Ok(());
            }
            assert_eq!((answer.code, answer.message().as_str()), (422, LOST_RACE), "{name}: {answer:?}");
        }
    };
    futures_util::future::try_join_all(names.iter().map(plug)).await?;
    let api: Api<VirtualMachine> = server.test.api();
    let spec = api.get("m").await?.spec.template.spec.unwrap_or_default();
    let mut plugged: Vec<_> = spec.volumes.unwrap_or_default().into_iter().map(|it| it.name).collect();
    plugged.sort();
    assert_eq!(plugged, names);
    Ok(())
}

/// An instance that runs on the node `here`, as its handler would have written it.
async fn running(server: &Server<'_>, name: &str) -> Result<()> {
    let vmi = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": { "name": name },
        "spec": {
            "domain": { "memory": { "guest": "64Mi" }, "devices": { "interfaces": [{ "name": "default", "masquerade": {} }] } },
            "networks": [{ "name": "default", "pod": {} }],
        },
    });
    server.create(&vmi).await?.accepted()?;
    let api: Api<VirtualMachineInstance> =
        Api::namespaced(server.controller.clone(), server.test.namespace());
    let status = json!({ "status": {
        "phase": "Running", "nodeName": "here", "conditions": [{ "type": "AgentConnected", "status": "True" }],
        "interfaces": [{ "name": "default", "ipAddress": "127.0.0.1" }],
    } });
    let stored = api.patch(name, &PatchParams::default(), &Patch::Merge(status)).await.context("status")?;
    let labels = json!({ "kubevirt.io": "virt-launcher", "kubevirt.io/created-by": stored.metadata.uid });
    aggregated::pod(server, &format!("virt-launcher-{name}"), labels).await
}

async fn nodes_do_what_is_asked(server: &Server<'_>) -> Result<()> {
    running(server, "guest").await?;
    let nobody = put(server, "virtualmachineinstances/guest/pause", &Value::Null).await?;
    assert!(nobody.code >= 400, "no handler is there yet: {nobody:?}");
    let handler = Handler::start(server).await?;
    let paused =
        async || Ok(put(server, "virtualmachineinstances/guest/pause", &Value::Null).await?.code == 200);
    server.until("the handler is found", paused).await?;
    assert_eq!(handler.asked(), ["PUT guest/pause "]);
    let dry = put(server, "virtualmachineinstances/guest/pause", &json!({ "dryRun": ["All"] })).await?;
    assert_eq!((dry.code, handler.asked().len()), (200, 0));
    let freeze =
        put(server, "virtualmachineinstances/guest/freeze", &json!({ "unfreezeTimeout": "5m" })).await?;
    assert_eq!(
        (freeze.code, handler.asked()),
        (200, vec![r#"PUT guest/freeze {"unfreezeTimeout":"5m"}"#.to_owned()])
    );
    let info = get(server, &path(server, "virtualmachineinstances/guest/guestosinfo")).await?;
    assert_eq!((info.code, &info.json()["guestAgentVersion"]), (200, &json!("7")));
    let failed = put(server, "virtualmachineinstances/guest/softreboot", &Value::Null).await?;
    assert!(failed.code == 500 && failed.message().contains("unexpected return code 500"), "{failed:?}");
    let off = put(server, "virtualmachineinstances/guest/unpause", &Value::Null).await?;
    assert!(off.code == 409 && off.message().ends_with("VMI is not paused"), "{off:?}");
    handler.asked();

    let mut stream = open(server, "virtualmachineinstances/guest/console").await.context("console")?;
    // New certificates are for new connections; a stream that is open goes on.
    for authority in [&server.authorities[1], &server.authorities[0]] {
        server.mount.renew(authority);
        let shown = async || {
            let request = Request::get("/healthz").body(Body::empty())?;
            Ok(answer(&server.client(authority)?, request).await?.code == 200)
        };
        server.until("the new certificate is shown", shown).await?;
    }
    stream.write_all(b"hello").await?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    assert_eq!((bytes.as_slice(), stream.last_words()), (&b"hello"[..], Some(&aggregated::TAKEN_OVER)));
    drop(open(server, "virtualmachineinstances/guest/vnc?preserveSession=true").await.context("vnc")?);
    assert_eq!(handler.asked(), ["GET guest/console", "GET guest/vnc?preserveSession=true"]);
    let plain = get(server, &path(server, "virtualmachineinstances/guest/console")).await?;
    assert!(plain.code == 400 && plain.message().contains("WebSocket"), "{plain:?}");
    let none = get(server, &path(server, "virtualmachineinstances/guest/vsock?port=1")).await?;
    assert!(none.code == 400 && none.message() == "VSOCK is not attached.", "{none:?}");
    let lines = async || {
        let metrics = server.get("/metrics").await?.1;
        let line = format!(
            "kubevirt_console_active_connections{{namespace=\"{}\",vmi=\"guest\"}} 0",
            server.test.namespace()
        );
        Ok(metrics.lines().any(|found| found == line))
    };
    server.until("streams that ended are not counted", lines).await?;

    server.create(&vm("guest", "Always")).await?.accepted()?;
    let forced = put(server, "virtualmachines/guest/restart", &json!({ "gracePeriodSeconds": 0 })).await?;
    assert_eq!(forced.code, 202, "{forced:?}");
    let instances: Api<VirtualMachineInstance> = server.test.api();
    assert_eq!(instances.get("guest").await?.spec.termination_grace_period_seconds, Some(1));
    let machines: Api<VirtualMachine> = server.test.api();
    let status = machines.get("guest").await?.status.unwrap_or_default();
    assert_eq!(status.state_change_requests.unwrap_or_default().len(), 2);
    evacuations_are_called_off(server).await.context("evacuation")?;
    let migrated = put(server, "virtualmachineinstances/guest/migrate", &Value::Null).await?;
    assert_eq!(migrated.code, 404, "only machines migrate: {migrated:?}");
    let api: Api<VirtualMachineInstanceMigration> = server.test.api();
    assert!(api.list(&Default::default()).await?.items.is_empty());
    Ok(())
}

async fn evacuations_are_called_off(server: &Server<'_>) -> Result<()> {
    const CANCEL: &str = "virtualmachineinstances/guest/evacuate/cancel";
    let own: Api<VirtualMachineInstance> =
        Api::namespaced(server.controller.clone(), server.test.namespace());
    let instances: Api<VirtualMachineInstance> = server.test.api();
    let leaves = async || -> Result<Option<String>> {
        Ok(instances.get("guest").await?.status.and_then(|status| status.evacuation_node_name))
    };
    let leave = Patch::Merge(json!({ "status": { "evacuationNodeName": "here" } }));
    let named = |node: &str| json!({ "evacuationNodeName": node });

    // A status is not for users to write, and there is nothing to call off.
    instances.patch("guest", &PatchParams::default(), &leave).await?;
    assert_eq!(leaves().await?, None);
    assert_eq!(put(server, CANCEL, &named("x")).await?.code, 200);

    for meant in [named("here"), named(""), Value::Null] {
        own.patch("guest", &PatchParams::default(), &leave).await?;
        let other = put(server, CANCEL, &named("x")).await?;
        assert!(other.code == 409 && other.message().contains("is \"here\" and not \"x\""), "{other:?}");
        let dry = put(server, CANCEL, &json!({ "evacuationNodeName": "here", "dryRun": ["All"] })).await?;
        assert_eq!((dry.code, leaves().await?.as_deref()), (200, Some("here")), "{dry:?}");
        let stays = put(server, CANCEL, &meant).await?;
        assert_eq!((stays.code, leaves().await?), (200, None), "{meant}: {stays:?}");
    }
    Ok(())
}

async fn streams_reach_the_guest(server: &Server<'_>) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let echo = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        let mut bytes = vec![0; 100_000];
        stream.read_exact(&mut bytes).await?;
        stream.write_all(&bytes).await
    });
    let mut stream =
        open(server, &format!("virtualmachineinstances/guest/portforward/{port}")).await.context("tcp")?;
    let sent: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
    stream.write_all(&sent).await?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    assert!(bytes == sent);
    echo.await??;

    let socket = UdpSocket::bind("127.0.0.1:0").await?;
    let port = socket.local_addr()?.port();
    let mut stream = open(server, &format!("virtualmachineinstances/guest/portforward/{port}/udp"))
        .await
        .context("udp")?;
    stream.write_all(b"datagram").await?;
    let mut bytes = [0; 100];
    let (length, from) = socket.recv_from(&mut bytes).await?;
    socket.send_to(&bytes[..length], from).await?;
    let mut back = [0; 8];
    stream.read_exact(&mut back).await?;
    assert_eq!(&back, b"datagram");

    let closed = get(server, &path(server, "virtualmachineinstances/guest/portforward/99999")).await?;
    assert_eq!(closed.code, 400, "{closed:?}");
    let machine = get(server, &path(server, "virtualmachines/m/portforward/22")).await?;
    assert!(machine.code == 409 && machine.message().ends_with("VMI is not started"), "{machine:?}");
    Ok(())
}

/// A client of the server itself, with the certificate and key of these files.
fn direct(server: &Server<'_>, certificate: &Path) -> Result<Client> {
    let mut config = Config::new(format!("https://{}", server.address).parse()?);
    config.root_cert = Some(vec![server.authorities[0].der.clone()]);
    config.default_retry = false;
    config.auth_info.client_certificate = Some(certificate.display().to_string());
    config.auth_info.client_key = Some(certificate.with_extension("key").display().to_string());
    Ok(Client::try_from(config)?)
}

/// A certificate of the aggregator's own authority, but of another name.
fn impostor(server: &Server<'_>, authority: &Path) -> Result<PathBuf> {
    let named = |name: &str| {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params
    };
    let name = format!("{}-front-proxy-ca", server.test.cluster().layout().name());
    let issuer = Issuer::new(named(&name), KeyPair::from_pem(&fs::read_to_string(authority)?)?);
    let key = KeyPair::generate()?;
    let file = server.mount.folder().join("impostor.crt");
    fs::write(&file, named("impostor").signed_by(&key, &issuer)?.pem())?;
    fs::write(file.with_extension("key"), key.serialize_pem())?;
    Ok(file)
}

async fn only_the_aggregator_speaks_for_others(server: &Server<'_>) -> Result<()> {
    let start = path(server, "virtualmachines/m/start");
    let claim = |user: &str, group: &str| {
        let request = Request::put(&start).header("x-remote-user", user).header("x-remote-group", group);
        request.body(Body::from(Vec::new()))
    };
    let pki = server.test.cluster().layout().certificates();

    // Nobody: whatever the headers say.
    let nobody = server.client(&server.authorities[0])?;
    let forged = answer(&nobody, claim("system:admin", "system:masters")?).await?;
    assert_eq!((forged.code, &forged.json()["reason"]), (401, &json!("Unauthorized")), "{forged:?}");
    // Somebody else of the same authority.
    let impostor = direct(server, &impostor(server, &pki.join("front-proxy-ca.key"))?)?;
    let forged = answer(&impostor, claim("system:admin", "system:masters")?).await?;
    assert!(forged.code == 401 && forged.message().contains("impostor"), "{forged:?}");
    // A certificate of the cluster, but not of the aggregator's authority, opens no connection.
    let stranger = direct(server, &pki.join("admin.crt"))?;
    assert!(answer(&stranger, claim("system:admin", "system:masters")?).await.is_err());

    let aggregator = direct(server, &pki.join("front-proxy-client.crt"))?;
    let user = answer(&aggregator, claim("jane", "system:authenticated")?).await?;
    assert_eq!(user.code, 403, "{user:?}");
    assert!(
        user.message().contains("User \"jane\" cannot update resource \"virtualmachines/start\""),
        "{user:?}"
    );
    let master = answer(&aggregator, claim("root", "system:masters")?).await?;
    assert_eq!(master.code, 202, "{master:?}");
    let without = Request::put(&start).header("x-remote-user", "root").body(Body::from(Vec::new()))?;
    assert_eq!(answer(&aggregator, without).await?.code, 401);
    // And through the aggregator, who is refused by the API server itself.
    let refused =
        server.test.cluster().kubectl_with_input(&["--as=jane", "replace", "--raw", &start, "-f", "-"], "{}");
    assert!(refused.unwrap_err().to_string().contains("orbidden"));
    assert_eq!(PROTOCOL, "plain.kubevirt.io");
    Ok(())
}
