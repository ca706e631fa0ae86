//! From the wish for a machine to its login prompt, and to its end.

use kubevirt_launcher_rpc::report::{Reason, State};
use serde_json::json;

use super::pod::{Pod, vmi};

#[tokio::test]
async fn a_guest_boots_to_its_login_and_shuts_itself_down() {
    let mut pod = Pod::start().await;
    pod.container_disk(0);
    assert_eq!(pod.domain().await, None);
    let mut console = pod.boot(&vmi(json!({}))).await;
    assert_eq!(console.run("nproc").await.unwrap(), "1");
    let report = pod.wait_for(State::Running).await;
    assert_eq!(report.metadata.name, "web");
    assert_eq!(report.status.accelerator, "tcg");

    console.send_line("poweroff").await.unwrap();
    let report = pod.wait_for(State::Shutoff).await;
    assert_eq!(report.status.reason, Reason::Shutdown);
    assert!(report.metadata.deletion_timestamp.is_some());
    assert_eq!(pod.exit_code().await, 0);
}

#[tokio::test]
async fn threads_of_dedicated_cpus_stay_on_them() {
    let pod = Pod::start().await;
    let cpus = json!({"cores": 1, "dedicatedCpuPlacement": true});
    let wish = json!({"spec": {"domain": {"cpu": cpus, "devices": {"disks": []}}, "volumes": []}});
    pod.sync(&vmi(wish)).await.unwrap();
    let pinned = pod.domain().await.unwrap().spec.unwrap().pinning.unwrap();
    let tasks = format!("/proc/{}/task", pod.qemu());
    let mut seen = 0;
    for task in std::fs::read_dir(tasks).unwrap() {
        let task = task.unwrap().path();
        let name = std::fs::read_to_string(task.join("comm")).unwrap();
        let status = std::fs::read_to_string(task.join("status")).unwrap();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
        if name.starts_with("CPU 0/") {
            assert_eq!(allowed, pinned.vcpus[0].to_string());
            seen += 1;
        }
    }
    assert_eq!(seen, 1);
}
