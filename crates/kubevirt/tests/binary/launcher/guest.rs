//! What a running guest is asked, and what is changed under it.

use kubevirt_launcher_rpc::cmd::{EmptyRequest, ExecRequest, FreezeRequest, Vmi, VmiRequest};
use kubevirt_launcher_rpc::report::State;
use kubevirt_launcher_rpc::stats::DomainStats;
use serde_json::{Value, json};

use super::pod::{Pod, told, vmi};

#[tokio::test]
async fn the_guest_agent_answers() {
    let pod = Pod::start().await;
    pod.container_disk(0);
    let mut console = pod.boot(&vmi(json!({}))).await;
    let report = pod
        .hear("the agent", |report| report.status.agent_connected && report.status.os_info.is_some())
        .await;
    assert!(!report.status.agent_version.is_empty());
    let mut client = pod.client();

    let info = client.get_guest_info(EmptyRequest {}).await.unwrap().into_inner();
    let info: Value = serde_json::from_str(&info.guest_info_response).unwrap();
    assert_eq!(info["hostname"], console.run("hostname").await.unwrap());
    let users = client.get_users(EmptyRequest {}).await.unwrap().into_inner();
    let users: Value = serde_json::from_str(&users.guest_user_list_response).unwrap();
    assert!(users["items"].is_array() || users["items"].is_null(), "{users}");
    let systems = client.get_filesystems(EmptyRequest {}).await.unwrap().into_inner();
    let systems: Value = serde_json::from_str(&systems.guest_filesystems_response).unwrap();
    let mounted = systems["items"].as_array().unwrap().iter().any(|one| one["mountPoint"] == "/data");
    assert!(mounted, "{systems}");

    let exec = |command: &str, arguments: &[&str]| ExecRequest {
        domain_name: "default_web".into(),
        command: command.into(),
        args: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        timeout_seconds: 60,
    };
    let done = client.exec(exec("/bin/sh", &["-c", "echo out; exit 3"])).await.unwrap().into_inner();
    assert_eq!((done.exit_code, done.std_out.trim()), (3, "out"));

    let json = serde_json::to_vec(&vmi(json!({}))).unwrap();
    let freeze = FreezeRequest { vmi: Some(Vmi { vmi_json: json }), unfreeze_timeout_seconds: 0 };
    told(client.freeze_virtual_machine(freeze).await).unwrap();
    pod.hear("the freeze", |report| report.status.freeze == "frozen").await;
    pod.call(|mut launcher, vmi| async move { launcher.unfreeze_virtual_machine(vmi).await }).await.unwrap();
    console.run("echo thawed >/data/thawed && sync").await.unwrap();

    let stats = client.get_domain_stats(EmptyRequest {}).await.unwrap().into_inner();
    let stats: DomainStats = serde_json::from_str(&stats.domain_stats).unwrap();
    assert_eq!(stats.vcpus.len(), 1);
    assert!(stats.vcpus[0].time > 0 && stats.memory.resident.unwrap() > 64 << 20, "{stats:?}");
    assert!(stats.disks.iter().any(|disk| disk.name == "root" && disk.read_bytes > 0), "{stats:?}");

    let shot = client.get_screenshot(VmiRequest::default()).await.unwrap().into_inner();
    assert_eq!(shot.mime, "image/png");
    assert!(shot.data.starts_with(b"\x89PNG"));
}

#[tokio::test]
async fn disks_cpus_and_memory_come_and_go_under_a_running_guest() {
    let pod = Pod::start().await;
    pod.container_disk(0);
    let before = json!({"spec": {"domain": {
        "cpu": {"cores": 1, "sockets": 1, "maxSockets": 2},
        "memory": {"guest": "256Mi", "maxGuest": "1Gi"},
    }}});
    let mut console = pod.boot(&vmi(before.clone())).await;
    let disk = pod.share().join("hotplug-disks/extra.img");
    pod.write(&disk, &vec![0; 8 << 20]);
    let plugged = |extra: bool, sockets: u32, memory: &str| {
        let mut all = vmi(before.clone());
        all["spec"]["domain"]["cpu"]["sockets"] = sockets.into();
        all["spec"]["domain"]["memory"]["guest"] = memory.into();
        if extra {
            let disk = json!({"name": "extra", "serial": "extra", "disk": {"bus": "scsi"}});
            all["spec"]["domain"]["devices"]["disks"].as_array_mut().unwrap().push(disk);
            let volume = json!({"name": "extra", "persistentVolumeClaim": {"claimName": "extra", "hotpluggable": true}});
            all["spec"]["volumes"].as_array_mut().unwrap().push(volume);
            all["status"]["volumeStatus"] = json!([{
                "name": "extra", "target": "sda", "phase": "Ready", "hotplugVolume": {"attachPodName": "hp"},
            }]);
        }
        all
    };
    console.until("cat /sys/block/sda/size 2>/dev/null || echo none", "none").await.unwrap();
    pod.sync(&plugged(true, 1, "256Mi")).await.unwrap();
    console.until("cat /sys/block/sda/size 2>/dev/null || echo none", "16384").await.unwrap();
    console.run("echo kept | dd of=/dev/sda conv=fsync").await.unwrap();
    // Asked for again, nothing happens.
    pod.sync(&plugged(true, 1, "256Mi")).await.unwrap();

    let wish = |all: &Value| VmiRequest {
        vmi: Some(Vmi { vmi_json: serde_json::to_vec(all).unwrap() }),
        ..VmiRequest::default()
    };
    let more = plugged(true, 2, "512Mi");
    told(pod.client().sync_virtual_machine_cp_us(wish(&more)).await).unwrap();
    console.until("cat /sys/devices/system/cpu/online", "0-1").await.unwrap();
    let total = "awk '/MemTotal/ { print ($2 > 400000) }' /proc/meminfo";
    assert_eq!(console.run(total).await.unwrap(), "0");
    told(pod.client().sync_virtual_machine_memory(wish(&more)).await).unwrap();
    console.until(total, "1").await.unwrap();

    pod.sync(&plugged(false, 2, "512Mi")).await.unwrap();
    console.until("cat /sys/block/sda/size 2>/dev/null || echo none", "none").await.unwrap();
    assert!(std::fs::read(&disk).unwrap().starts_with(b"kept\n"));
    assert_eq!(pod.domain().await.unwrap().status.status, State::Running);
}
