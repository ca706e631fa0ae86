//! What users ask of a machine, by way of the handler's door, with real TLS, a real launcher and a real guest.

mod crowd;
mod door;
mod many;

use std::time::Duration;

use kubevirt_api::names::components::secrets;
use kubevirt_launcher_rpc::report::{Reason, State};
use serde_json::{Value, json};
use test_guest::Console;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use self::door::{Behind, Door};
use super::adoption::{Handler, pod};
use super::handler::PATIENCE;
use super::pod::{Pod, vmi};

const LONG: Duration = Duration::from_secs(60);

/// The door of the pod's handler.
async fn door_of(pod: &Pod, handler: &Handler, machine: &Value) -> Door {
    Door::open(Behind {
        vmis: vec![serde_json::from_value(machine.clone()).unwrap()],
        domains: handler.domains.clone(),
        launchers: handler.launchers.clone(),
        pods: pod.pods(),
        records: pod.records(),
        private: pod.private(),
    })
    .await
}

#[tokio::test]
async fn only_virt_api_is_let_in() {
    let pod = pod().await;
    let handler = Handler::start(&pod, LONG);
    let door = door_of(&pod, &handler, &vmi(json!({}))).await;
    let unknown = "/v1/namespaces/default/virtualmachineinstances/other/pause";

    // Whoever has no certificate of the authority does not even get an answer.
    let stranger = door::authority();
    for own in [None, Some(&stranger.issued[secrets::HANDLER_CLIENT])] {
        let refused = match door.client_as(own).await {
            Ok(mut client) => client.ask("PUT", unknown, "").await.map(|_| ()),
            Err(error) => Err(error),
        };
        assert!(refused.is_err(), "{own:?}");
    }
    // Nor is a certificate of a server one of a client.
    let server = Some(&door.certificates.issued[secrets::HANDLER_SERVER]);
    if let Ok(mut client) = door.client_as(server).await {
        assert!(client.ask("PUT", unknown, "").await.is_err());
    }
    // Other clients of the installation have other names.
    for other in [secrets::HANDLER_MIGRATION_CLIENT, secrets::HANDLER_VSOCK_CLIENT] {
        let mut client = door.client_as(Some(&door.certificates.issued[other])).await.unwrap();
        let (status, why) = client.ask("PUT", unknown, "").await.unwrap();
        assert_eq!(status, 403, "{other}");
        assert!(String::from_utf8(why).unwrap().contains("common name is invalid"), "{other}");
    }

    let mut api = door.client().await;
    let mut ask = async |method: &str, what: &str| {
        let (status, body) = api.ask(method, what, "").await.unwrap();
        (status.as_u16(), String::from_utf8(body).unwrap())
    };
    assert_eq!(ask("PUT", unknown).await, (404, "VMI default/other does not exist".to_owned()));
    assert_eq!(ask("GET", "/v1/elsewhere").await.0, 404);
    assert_eq!(ask("GET", "pause").await.0, 405);
    assert_eq!(ask("PUT", "guestosinfo").await.0, 405);
    let (status, why) = ask("GET", "console").await;
    assert!(status == 400 && why.contains("WebSocket"), "{status} {why}");
    // The launcher is there, but nobody has told the handler of it.
    assert_eq!(ask("PUT", "pause").await.0, 500);
    let (status, why) = ask("GET", "vsock?port=1").await;
    assert_eq!((status, why.as_str()), (400, "VM doesn't have VSOCK enabled"));

    // A new authority holds for new clients, while those that are connected stay.
    let next = door::authority();
    door.trusted.send_replace(next.authority.certificate.clone());
    let changed = async {
        loop {
            let own = Some(&next.issued[secrets::HANDLER_CLIENT]);
            if let Ok(mut client) = door.client_as(own).await
                && client.ask("PUT", unknown, "").await.is_ok_and(|(status, _)| status == 404)
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, changed).await.expect("the new authority is believed");
    assert_eq!(ask("PUT", unknown).await.0, 404, "an open connection stays");
    let old = match door.client_as(Some(&door.certificates.issued[secrets::HANDLER_CLIENT])).await {
        Ok(mut client) => client.ask("PUT", unknown, "").await.map(|_| ()),
        Err(error) => Err(error),
    };
    assert!(old.is_err(), "the old authority is not believed any more");
}

#[tokio::test]
async fn a_guest_is_seen_and_commanded_through_the_door() {
    let pod = pod().await;
    pod.container_disk(0);
    let machine = vmi(json!({}));
    let handler = Handler::start(&pod, LONG);
    handler.look_after();
    handler.connected().await;
    let door = door_of(&pod, &handler, &machine).await;
    let refused = door.client().await.stream("console").await.unwrap_err();
    assert_eq!(refused.0, 400, "there is no machine yet: {}", refused.1);

    pod.sync(&machine).await.unwrap();
    let mut console = Console::over(door.client().await.stream("console").await.unwrap()).patient(PATIENCE);
    console.login("root", "root").await.unwrap();
    let name = console.run("hostname").await.unwrap();
    handler
        .until("the agent", |handler| {
            let status = handler.domains.of("3f1c9a52-6c0e-4d3b-9d9e-2f6d3a1b7c44")?.status.clone();
            (status.agent_connected && status.os_info.is_some()).then_some(())
        })
        .await;

    let ask = async |method: &str, what: &str, body: &str| {
        // A connection that is silent for long is closed.
        let (status, answer) = door.client().await.ask(method, what, body).await.unwrap();
        (status.as_u16(), answer)
    };
    let text = |answer: &[u8]| String::from_utf8_lossy(answer).into_owned();

    // Questions.
    for (what, check) in [
        ("guestosinfo", (|told: &Value, name: &str| told["hostname"] == name) as fn(&Value, &str) -> bool),
        ("userlist", |told, _| told.get("metadata").is_some()),
        ("filesystemlist", |told, _| told["items"].as_array().is_some_and(|items| !items.is_empty())),
    ] {
        let (status, answer) = ask("GET", what, "").await;
        let told: Value = serde_json::from_slice(&answer).unwrap();
        assert!(status == 200 && check(&told, &name), "{what}: {status} {told}");
    }
    for what in ["vnc/screenshot", "vnc/screenshot?moveCursor=true"] {
        let (status, image) = ask("GET", what, "").await;
        assert!(status == 200 && image.starts_with(b"\x89PNG"), "{what}: {status}");
    }
    for what in ["sev/fetchcertchain", "sev/querylaunchmeasurement"] {
        let (status, why) = ask("GET", what, "").await;
        assert!(status == 500 && !why.is_empty(), "{what}: {status} {}", text(&why));
    }

    // Commands.
    assert_eq!(ask("PUT", "pause", "").await.0, 202);
    handler.hears(State::Paused, Reason::User).await;
    assert_eq!(ask("PUT", "unpause", "").await.0, 202);
    handler.hears(State::Running, Reason::Unknown).await;
    assert_eq!(ask("PUT", "freeze", "").await.0, 400, "it must say for how long");
    assert_eq!(ask("PUT", "freeze", "{\"unfreezeTimeout\": \"soon\"}").await.0, 400);
    assert_eq!(ask("PUT", "freeze", "unfreezeTimeout: 5m0s\n").await.0, 202);
    assert_eq!(ask("PUT", "unfreeze", "").await.0, 202);
    console.run("echo thawed >/data/thawed && sync").await.unwrap();
    let (status, why) = ask("PUT", "backup", "{\"cmd\": \"Start\", \"backupName\": \"b\"}").await;
    assert!(status == 400 && !why.is_empty(), "{status} {}", text(&why));
    let (status, why) = ask("PUT", "redefine-checkpoint", "{\"name\": \"c\"}").await;
    assert!(status == 503 && !why.is_empty(), "{status} {}", text(&why));
    assert_eq!(ask("PUT", "sev/injectlaunchsecret", "{\"header\": 1}").await.0, 400);
    assert_eq!(ask("PUT", "sev/injectlaunchsecret", "{}").await.0, 500);

    // A viewer who does not read, and a guest that has much to say: the guest is done with it all the same.
    let boot = console.run("cat /proc/sys/kernel/random/boot_id").await.unwrap();
    let mut idle = door.narrow_client().await.stream("console").await.unwrap();
    let flood = "head -c 8000000 /dev/zero | tr '\\0' x >/dev/ttyS0; echo; echo done";
    assert_eq!(pod.shell(flood).await, "done");
    let mut seen = String::new();
    let missing = async {
        let mut piece = [0; 4096];
        while !seen.ends_with("were read]\r\n") {
            let length = idle.read(&mut piece).await.unwrap();
            assert!(length > 0, "{:?}", idle.farewell());
            // Of the guest there is nothing but one letter.
            seen.extend(String::from_utf8_lossy(&piece[..length]).chars().filter(|letter| *letter != 'x'));
        }
    };
    tokio::time::timeout(PATIENCE, missing).await.expect("the viewer is told what it missed");

    // The display.
    let mut first = door.client().await.stream("vnc").await.unwrap();
    let mut greeting = [0; 12];
    first.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"RFB 003.008\n");
    let refused = door.client().await.stream("vnc?preserveSession=true").await.unwrap_err();
    assert_eq!(refused, (503, "Active VNC connection. Request denied.".to_owned()));
    let mut second = door.client().await.stream("vnc").await.unwrap();
    second.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"RFB 003.008\n");
    let mut rest = Vec::new();
    first.read_to_end(&mut rest).await.unwrap();
    assert!(first.farewell().unwrap().contains("another viewer"), "{:?}", first.farewell());
    assert_eq!(door.client().await.stream("usbredir").await.unwrap_err().0, 400, "it has no USB places");

    // The console again: the newcomer has it, and a reset is seen there.
    let other = door.client().await.stream("console").await.unwrap();
    drop(console);
    let mut console = Console::over(other).patient(PATIENCE);
    let same = console.run("cat /proc/sys/kernel/random/boot_id").await.unwrap();
    assert_eq!(same, boot);
    assert_eq!(ask("PUT", "softreboot", "").await.0, 202);
    console.expect("Welcome to the test guest").await.unwrap();
    assert_eq!(ask("PUT", "reset", "").await.0, 202);
    console.expect("Welcome to the test guest").await.unwrap();

    // The end of the machine is the end of its streams.
    second.write_all(b"RFB 003.008\n").await.unwrap();
    pod.call(async |mut commands, request| commands.kill_virtual_machine(request).await).await.unwrap();
    let ended = tokio::time::timeout(PATIENCE, second.read_to_end(&mut rest)).await;
    ended.expect("the stream ends").unwrap();
    assert!(second.farewell().unwrap().contains("has closed the connection"), "{:?}", second.farewell());
}
