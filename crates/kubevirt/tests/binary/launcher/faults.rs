//! What goes wrong ends in the right state, with a reason.

use std::path::PathBuf;
use std::time::Duration;

use kubevirt_launcher_rpc::report::{Reason, State};
use rustix::process::Signal;
use serde_json::json;

use super::handler::Handler;
use super::pod::{Pod, Settings, send_signal, vmi};

#[tokio::test]
async fn a_killed_qemu_is_a_crash() {
    let mut pod = Pod::start().await;
    pod.sync(&vmi(json!({"spec": {"domain": {"devices": {"disks": []}}, "volumes": []}}))).await.unwrap();
    pod.wait_for(State::Running).await;
    send_signal(pod.qemu(), Signal::KILL);
    let report = pod.wait_for(State::Crashed).await;
    assert_eq!(report.status.reason, Reason::Crashed);
    assert!(report.status.message.contains("signal 9"), "{}", report.status.message);
    assert_eq!(pod.exit_code().await, 1);
}

#[tokio::test]
async fn a_hung_qemu_is_named_and_can_be_ended() {
    let settings = Settings { flags: vec!["--grace-period-seconds", "1"], ..Settings::default() };
    let mut pod = Pod::with(settings).await;
    pod.sync(&vmi(json!({"spec": {"domain": {"devices": {"disks": []}}, "volumes": []}}))).await.unwrap();
    pod.wait_for(State::Running).await;
    send_signal(pod.qemu(), Signal::STOP);
    let pause = pod.call(|mut launcher, vmi| async move { launcher.pause_virtual_machine(vmi).await }).await;
    assert!(pause.unwrap_err().contains("QEMU hangs"));
    pod.signal(Signal::TERM);
    let report = pod.wait_for(State::Shutoff).await;
    assert_eq!(report.status.reason, Reason::Destroyed);
    assert_eq!(pod.exit_code().await, 0);
}

#[tokio::test]
async fn a_bad_image_is_named_and_a_later_attempt_may_succeed() {
    let pod = Pod::start().await;
    let missing = pod.sync(&vmi(json!({}))).await.unwrap_err();
    assert!(missing.contains("root"), "{missing}");

    let image = pod.share().join("container-disks/disk_0.img");
    pod.write(&image, b"QFI\xfb\x00\x00\x00\x03 and then nothing more");
    let corrupt = pod.sync(&vmi(json!({}))).await.unwrap_err();
    assert!(corrupt.contains("root") && corrupt != missing, "{corrupt}");
    assert_eq!(pod.domain().await, None);

    std::fs::remove_file(&image).unwrap();
    pod.container_disk(0);
    pod.boot(&vmi(json!({}))).await;
}

#[tokio::test]
async fn a_wish_that_cannot_be_met_names_its_field() {
    let pod = Pod::start().await;
    let wish = json!({"spec": {"domain": {"devices": {"disks": [], "interfaces": [{"name": "default", "slirp": {}}]}},
        "networks": [{"name": "default", "pod": {}}], "volumes": []}});
    let refused = pod.sync(&vmi(wish)).await.unwrap_err();
    assert!(refused.contains("spec.domain.devices.interfaces[0].slirp"), "{refused}");
    let other = vmi(json!({"metadata": {"name": "other"}}));
    assert!(pod.sync(&other).await.unwrap_err().contains("default/other"));
    let nonsense = pod.sync(&json!("no object")).await.unwrap_err();
    assert!(nonsense.contains("VirtualMachineInstance"), "{nonsense}");
}

#[tokio::test]
async fn a_host_without_kvm_is_refused_where_emulation_is_not_allowed() {
    let flags = vec!["--use-emulation=false"];
    let pod =
        Pod::with(Settings { flags, set_up: "mount -t tmpfs none /dev".into(), ..Settings::default() }).await;
    let nothing = vmi(json!({"spec": {"domain": {"devices": {"disks": []}}, "volumes": []}}));
    let refused = pod.sync(&nothing).await.unwrap_err();
    assert!(refused.contains("/dev/kvm") && refused.contains("useEmulation"), "{refused}");
}

#[tokio::test]
async fn a_handler_that_returns_hears_everything_again() {
    let mut pod = Pod::start().await;
    pod.sync(&vmi(json!({"spec": {"domain": {"devices": {"disks": []}}, "volumes": []}}))).await.unwrap();
    pod.wait_for(State::Running).await;
    pod.handler = None;
    let socket = pod.share().join(kubevirt_launcher_rpc::NOTIFY_SOCKET);
    std::fs::remove_file(&socket).unwrap();
    pod.call(|mut launcher, vmi| async move { launcher.pause_virtual_machine(vmi).await }).await.unwrap();
    // Time for the launcher to try in vain, which nothing tells; without it this would prove less, but not fail.
    tokio::time::sleep(Duration::from_millis(300)).await;
    pod.handler = Some(Handler::listen(&socket));
    pod.wait_for_reason(State::Paused, Reason::User).await;
    // Nothing has happened since, but this one knows nothing yet.
    pod.handler = None;
    pod.handler = Some(Handler::listen(&socket));
    pod.wait_for_reason(State::Paused, Reason::User).await;
    pod.call(|mut launcher, vmi| async move { launcher.kill_virtual_machine(vmi).await }).await.unwrap();
    pod.wait_for(State::Shutoff).await;
    assert_eq!(pod.exit_code().await, 0);
}

#[tokio::test]
async fn a_launcher_leaves_even_if_nobody_listens() {
    let mut pod = Pod::with(Settings { no_handler: true, ..Settings::default() }).await;
    pod.sync(&vmi(json!({"spec": {"domain": {"devices": {"disks": []}}, "volumes": []}}))).await.unwrap();
    pod.call(|mut launcher, vmi| async move { launcher.kill_virtual_machine(vmi).await }).await.unwrap();
    assert_eq!(pod.exit_code().await, 0);
}

#[tokio::test]
async fn a_full_disk_pauses_the_guest_until_there_is_room() {
    let set_up =
        "mkdir -p private/vmi-disks/data && mount -t tmpfs -o size=6m,mode=777 none private/vmi-disks/data";
    let pod = Pod::with(Settings { set_up: set_up.into(), ..Settings::default() }).await;
    pod.container_disk(0);
    let inside = format!("/proc/{}/root{}", pod.launcher(), pod.private().join("vmi-disks/data").display());
    let image = std::fs::File::create(format!("{inside}/disk.img")).unwrap();
    image.set_len(32 << 20).unwrap();
    std::os::unix::fs::fchown(&image, Some(107), Some(107)).unwrap();
    let mut console = pod
        .boot(&vmi(json!({"spec": {
            "domain": {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}},
                {"name": "data", "disk": {"bus": "virtio"}, "serial": "data"}]}},
            "volumes": [{"name": "root", "containerDisk": {"image": "guest"}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        }})))
        .await;
    console
        .send_line("dd if=/dev/zero of=/dev/vdb bs=1M count=16 && sync && echo all''written")
        .await
        .unwrap();
    pod.wait_for_reason(State::Paused, Reason::IoError).await;
    pod.handler.as_ref().unwrap().heard.wait_for_event("IOerror", "no space left for volume data").await;

    let grow = std::process::Command::new("nsenter")
        .args([&format!("--mount=/proc/{}/ns/mnt", pod.launcher()), "mount", "-o", "remount,size=64m"])
        .arg(pod.private().join("vmi-disks/data"))
        .status();
    assert!(grow.unwrap().success());
    pod.call(|mut launcher, vmi| async move { launcher.unpause_virtual_machine(vmi).await }).await.unwrap();
    console.expect("allwritten").await.unwrap();
}

#[tokio::test]
async fn a_pod_that_lacks_memory_says_so() {
    let cgroup = Cgroup::with_memory("400M");
    let mut pod = Pod::with(Settings { cgroup: Some(cgroup.0.clone()), ..Settings::default() }).await;
    pod.container_disk(0);
    let mut console = pod.boot(&vmi(json!({"spec": {"domain": {"memory": {"guest": "1Gi"}}}}))).await;
    console
        .send_line("mount -o remount,size=900m /tmp; dd if=/dev/zero of=/tmp/fill bs=1M count=800")
        .await
        .unwrap();
    let report = pod.wait_for(State::Crashed).await;
    assert!(report.status.message.contains("memory limit"), "{}", report.status.message);
    assert_eq!(pod.exit_code().await, 1);
}

/// A control group that goes with the test.
struct Cgroup(PathBuf);

impl Cgroup {
    fn with_memory(limit: &str) -> Self {
        let folder = format!("/sys/fs/cgroup/memory/kubevirt-test-{}", std::process::id());
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(format!("{folder}/memory.limit_in_bytes"), limit).unwrap();
        Self(folder.into())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The pod is gone already, but the kernel may need a moment to notice.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
