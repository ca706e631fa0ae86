//! The agent's part of the launcher.

use kubevirt_api::names::events;
use kubevirt_launcher_rpc::cmd::{AgentHostNameRequest, DomainStatsRequest, ExecRequest, VmStatsRequest};

use kubevirt_launcher_rpc::report::Reason;
use kubevirt_qemu::qmp::Event;

use super::*;
use crate::error::CommandError;

/// What must never happen to the machine that runs the tests.
pub(super) const FORBIDDEN: &str = "guest-shutdown,guest-set-user-password,guest-fsfreeze-freeze,\
    guest-fsfreeze-freeze-list,guest-fsfreeze-thaw,guest-fstrim,guest-set-time,guest-suspend-disk,\
    guest-suspend-ram,guest-suspend-hybrid,guest-set-vcpus,guest-set-memory-blocks,\
    guest-ssh-add-authorized-keys,guest-ssh-remove-authorized-keys";

fn shell(script: &str, timeout_seconds: i32) -> ExecRequest {
    let args = vec!["-c".to_owned(), script.to_owned()];
    ExecRequest { domain_name: String::new(), command: "/bin/sh".into(), args, timeout_seconds }
}

#[tokio::test]
async fn what_the_agent_tells_is_reported_and_answered() {
    let mut bench = Bench::start().await;
    let launcher = bench.launcher.clone();
    assert!(matches!(launcher.guest_info().await, Err(CommandError::NoAgent)));
    assert!(matches!(launcher.exec(shell("true", 5)).await, Err(CommandError::NoAgent)));

    bench.connect_agent().await;
    let status = bench.until(|report| report.status.os_info.is_some()).await.status;
    assert!(status.agent_connected && status.agent_version.contains('.'));
    assert!(status.agent_commands.iter().any(|command| command == "guest-ping"));
    assert!(!status.agent_commands.iter().any(|command| command == "guest-shutdown"));
    assert!(status.interfaces.iter().all(|interface| interface.interface_name != "lo"));

    let info = launcher.guest_info().await.unwrap();
    let host_name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_eq!(info.hostname, host_name.trim());
    assert!(info.timezone.contains(", ") && info.os.kernel_release.is_some());
    assert_eq!(info.fs_freeze_status, "thawed");
    launcher.guest_users().await.unwrap();
    launcher.guest_filesystems().await.unwrap();
    launcher.guest_ping(30).await.unwrap();

    assert_eq!(launcher.exec(shell("echo hi; exit 3", 60)).await.unwrap(), (3, "hi\n".to_owned()));
    let late = launcher.exec(shell("sleep 3", 1)).await.unwrap_err();
    assert!(late.to_string().contains("still runs"), "{late}");
    // Thawed already; and freezing is forbidden here.
    launcher.unfreeze().await.unwrap();
    assert!(matches!(launcher.freeze(5).await, Err(CommandError::Agent(_))));

    let request = VmStatsRequest {
        domain_stats: Some(DomainStatsRequest {}),
        guest_get_host_name: Some(AgentHostNameRequest {}),
        ..VmStatsRequest::default()
    };
    let stats = launcher.vm_stats(request).await;
    assert!(stats.response.unwrap().success);
    let expected = json!({ "return": { "host-name": host_name.trim() } });
    assert_eq!(stats.guest_get_host_name.unwrap().message, expected.to_string());

    launcher.agent_came_or_went(&bench.running, false);
    let status = launcher.board.report().status;
    assert!(!status.agent_connected && status.os_info.is_some());
    assert!(matches!(launcher.guest_users().await, Err(CommandError::NoAgent)));
    assert!(launcher.guest_ping(1).await.is_err());
}

#[tokio::test]
async fn what_missed_events_would_have_told_is_asked_for() {
    let mut bench = Bench::start().await;
    bench.connect_agent().await;
    bench.running.machine.resume().await.unwrap();
    let missed = Event::Missed { count: 1 };
    let state = || bench.launcher.board.report().status;
    // This QEMU has no channel, so nobody can have opened it.
    bench.launcher.happened(&bench.running, &missed).await;
    assert!(state().status == State::Running && !state().agent_connected);
    bench.running.machine.pause().await.unwrap();
    for _ in 0..2 {
        bench.launcher.happened(&bench.running, &missed).await;
        assert_eq!((state().status, state().reason), (State::Paused, Reason::User));
    }
    bench.running.machine.resume().await.unwrap();
    bench.launcher.happened(&bench.running, &missed).await;
    assert_eq!(state().status, State::Running);
}

#[tokio::test]
async fn credentials_are_brought_when_they_change() {
    let mut bench = Bench::start().await;
    let secret = bench.folder.join("secret/words-access-cred");
    std::fs::create_dir_all(&secret).unwrap();
    let outcome = |report: &DomainReport| report.status.access_credential.clone().unwrap();
    assert!(outcome(&bench.launcher.board.report()).message.contains("not connected"));

    bench.connect_agent().await;
    // An empty Secret asks for nothing.
    bench.until(|report| outcome(report).succeeded).await;
    let mut notice = async || timeout(PATIENCE, bench.notices.recv()).await.unwrap().unwrap();
    assert_eq!(notice().await.reason, events::vmi::ACCESS_CREDENTIALS_SYNC_SUCCESS);
    std::fs::write(secret.join("ann"), "hush").unwrap();
    let failed = notice().await;
    assert_eq!(failed.reason, events::vmi::ACCESS_CREDENTIALS_SYNC_FAILED);
    // The agent may not set passwords here. Nobody learns them from us.
    assert!(failed.message.contains("user ann") && !failed.message.contains("hush"), "{}", failed.message);
    std::fs::remove_file(secret.join("ann")).unwrap();
    assert_eq!(notice().await.reason, events::vmi::ACCESS_CREDENTIALS_SYNC_SUCCESS);
}
