//! Pausing, resetting and ending a machine, from inside and outside.

use kubevirt_launcher_rpc::report::{Reason, State};
use rustix::process::Signal;
use serde_json::json;

use super::handler::PATIENCE;
use super::pod::{Pod, Settings, vmi};

/// What the guest says when it has booted.
const WELCOME: &str = "Welcome to the test guest";

const BOOT_ID: &str = "cat /proc/sys/kernel/random/boot_id";

#[tokio::test]
async fn a_paused_guest_stands_still() {
    let pod = Pod::start().await;
    pod.container_disk(0);
    let mut console = pod.boot(&vmi(json!({}))).await;
    let uptime = "cut -d. -f1 /proc/uptime";
    let before: u64 = console.run(uptime).await.unwrap().parse().unwrap();

    pod.call(|mut launcher, vmi| async move { launcher.pause_virtual_machine(vmi).await }).await.unwrap();
    pod.wait_for_reason(State::Paused, Reason::User).await;
    console.send_line("echo wo''ken").await.unwrap();
    let silent = tokio::time::timeout(std::time::Duration::from_secs(5), console.expect("woken")).await;
    assert!(silent.is_err(), "a paused guest does not answer");
    // Pausing what stands still already changes nothing.
    pod.call(|mut launcher, vmi| async move { launcher.pause_virtual_machine(vmi).await }).await.unwrap();

    pod.call(|mut launcher, vmi| async move { launcher.unpause_virtual_machine(vmi).await }).await.unwrap();
    console.expect("woken").await.unwrap();
    assert_eq!(pod.domain().await.unwrap().status.status, State::Running);
    let after: u64 = console.run(uptime).await.unwrap().parse().unwrap();
    assert!(after >= before);
}

#[tokio::test]
async fn a_guest_is_reset_rebooted_and_stopped_gracefully() {
    let mut pod = Pod::start().await;
    pod.container_disk(0);
    let mut console = pod.boot(&vmi(json!({}))).await;
    let first = console.run(BOOT_ID).await.unwrap();

    pod.call(|mut launcher, vmi| async move { launcher.reset_virtual_machine(vmi).await }).await.unwrap();
    console.expect(WELCOME).await.unwrap();
    console.login("root", "root").await.unwrap();
    let second = console.run(BOOT_ID).await.unwrap();
    assert_ne!(first, second);

    pod.call(|mut launcher, vmi| async move { launcher.soft_reboot_virtual_machine(vmi).await })
        .await
        .unwrap();
    console.expect(WELCOME).await.unwrap();
    console.login("root", "root").await.unwrap();
    let third = console.run(BOOT_ID).await.unwrap();
    assert_ne!(second, third);

    console.send_line("reboot").await.unwrap();
    console.expect(WELCOME).await.unwrap();
    console.login("root", "root").await.unwrap();
    assert_ne!(console.run(BOOT_ID).await.unwrap(), third);

    pod.signal(Signal::TERM);
    let report = pod.wait_for(State::Shutoff).await;
    assert_eq!(report.status.reason, Reason::Shutdown);
    assert!(report.status.grace_period.is_some());
    assert_eq!(pod.exit_code().await, 0);
}

#[tokio::test]
async fn a_guest_that_does_not_listen_is_ended_after_its_grace_period() {
    let settings = Settings { flags: vec!["--grace-period-seconds", "2"], ..Settings::default() };
    let mut pod = Pod::with(settings).await;
    // A firmware without anything to boot hears no power button.
    let nothing = json!({"spec": {"domain": {"devices": {"disks": []}}, "volumes": []}});
    pod.sync(&vmi(nothing)).await.unwrap();
    pod.wait_for(State::Running).await;
    pod.signal(Signal::TERM);
    let report = pod.wait_for(State::Shutoff).await;
    assert_eq!(report.status.reason, Reason::Destroyed);
    assert_eq!(pod.exit_code().await, 0);
}

#[tokio::test]
async fn a_machine_is_killed_and_its_launcher_leaves_nothing() {
    let mut pod = Pod::start().await;
    let nothing =
        json!({"spec": {"domain": {"devices": {"disks": []}}, "volumes": [], "startStrategy": "Paused"}});
    pod.sync(&vmi(nothing)).await.unwrap();
    pod.wait_for_reason(State::Paused, Reason::User).await;
    let qemu = pod.qemu();
    pod.call(|mut launcher, vmi| async move { launcher.kill_virtual_machine(vmi).await }).await.unwrap();
    let report = pod.wait_for(State::Shutoff).await;
    assert_eq!(report.status.reason, Reason::Destroyed);
    assert_eq!(pod.exit_code().await, 0);
    assert!(!std::path::Path::new(&format!("/proc/{qemu}")).exists());
}

#[tokio::test]
async fn a_launcher_without_a_machine_leaves_when_told() {
    let mut pod = Pod::start().await;
    pod.signal(Signal::TERM);
    assert_eq!(tokio::time::timeout(PATIENCE, pod.exit_code()).await.unwrap(), 0);
}

#[tokio::test]
async fn a_launcher_without_a_machine_leaves_when_none_is_wanted() {
    let mut pod = Pod::start().await;
    // To be killed is for machines, and one may still come.
    pod.call(|mut launcher, vmi| async move { launcher.kill_virtual_machine(vmi).await }).await.unwrap();
    pod.call(|mut launcher, vmi| async move { launcher.delete_virtual_machine(vmi).await }).await.unwrap();
    assert_eq!(tokio::time::timeout(PATIENCE, pod.exit_code()).await.unwrap(), 0);
}
