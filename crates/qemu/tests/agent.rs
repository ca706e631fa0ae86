//! The guest agent's client against a real agent, which here looks at this machine: nothing that changes it.
#![expect(clippy::unwrap_used, reason = "a test may end that way")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kubevirt_qemu::Agent;
use kubevirt_qemu::agent::{AgentError, Exec, FreezeStatus};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::process::{Child, Command};

/// What must never happen to the machine that runs the tests.
const FORBIDDEN: &str = "guest-shutdown,guest-set-user-password,guest-fsfreeze-freeze,guest-fsfreeze-freeze-list,\
    guest-fsfreeze-thaw,guest-fstrim,guest-set-time,guest-suspend-disk,guest-suspend-ram,guest-suspend-hybrid,\
    guest-set-vcpus,guest-set-memory-blocks,guest-ssh-add-authorized-keys,guest-ssh-remove-authorized-keys";

const PATIENCE: Duration = Duration::from_secs(30);

struct Ga {
    folder: PathBuf,
    child: Child,
    agent: Agent,
}

impl Ga {
    async fn start() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("kubevirt-ga-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let socket = folder.join("ga.sock");
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin";
        let child = Command::new("qemu-ga")
            .env("PATH", path)
            .args(["-m", "unix-listen", "-b", FORBIDDEN, "-t"])
            .arg(&folder)
            .arg("-f")
            .arg(folder.join("pid"))
            .arg("-p")
            .arg(&socket)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let agent = Agent::at(&socket).patient(PATIENCE);
        for _ in 0..600 {
            match agent.ping().await {
                Ok(()) => return Self { folder, child, agent },
                Err(AgentError::Unreachable(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(error) => panic!("{error}"),
            }
        }
        panic!("the agent does not listen");
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Ga {
    fn drop(&mut self) {
        let _ = self.child.start_kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn shell(script: &str) -> Exec {
    Exec { path: "/bin/sh".into(), arguments: vec!["-c".into(), script.into()], ..Exec::default() }
}

#[tokio::test]
async fn tells_what_it_is() {
    let ga = Ga::start().await;
    let agent = &ga.agent;
    let info = agent.info().await.unwrap();
    assert!(info.version.contains('.'));
    assert!(info.supports("guest-ping") && !info.supports("guest-shutdown") && !info.supports("guest-dance"));
    assert!(agent.os_info().await.unwrap().kernel_release.is_some());
    let host_name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_eq!(agent.host_name().await.unwrap(), host_name.trim());
    assert!(agent.time_zone().await.unwrap().offset.abs() <= 14 * 3600);
    agent.users().await.unwrap();
    agent.filesystems().await.unwrap();
    let interfaces = agent.interfaces().await.unwrap();
    let lo = interfaces.iter().find(|interface| interface.name == "lo").unwrap();
    assert!(lo.ip_addresses.iter().any(|one| one.ip_address == "127.0.0.1" && one.prefix == 8));
    assert_eq!(agent.freeze_status().await.unwrap(), FreezeStatus::Thawed);
}

#[tokio::test]
async fn runs_programs() {
    let ga = Ga::start().await;
    let program = Exec {
        environment: vec!["WHO=world".into()],
        input: b"from here".to_vec(),
        ..shell("printf 'hello %s ' $WHO; cat; echo bad >&2; exit 3")
    };
    let status = ga.agent.exec(&program, PATIENCE).await.unwrap();
    assert_eq!((status.code, status.signal), (Some(3), None));
    assert_eq!(String::from_utf8_lossy(&status.stdout), "hello world from here");
    assert_eq!(status.stderr, b"bad\n");
    let killed = ga.agent.exec(&shell("kill -9 $$"), PATIENCE).await.unwrap();
    assert_eq!((killed.code, killed.signal), (None, Some(9)));

    let error = ga.agent.exec(&shell("sleep 2"), Duration::from_millis(100)).await.unwrap_err();
    assert!(matches!(error, AgentError::StillRunning { .. }), "{error}");
    let missing = Exec { path: "/nonexistent".into(), ..Exec::default() };
    assert!(matches!(ga.agent.exec(&missing, PATIENCE).await, Err(AgentError::Refused { .. })));
}

#[tokio::test]
async fn reads_and_writes_files() {
    let ga = Ga::start().await;
    let path = ga.path("file");
    let content: Vec<u8> = (0..3_000_000_u32).map(|number| number as u8 ^ (number >> 8) as u8).collect();
    ga.agent.write_file(&path, &content).await.unwrap();
    assert!(std::fs::read(&path).unwrap() == content);
    assert!(ga.agent.read_file(&path, usize::MAX).await.unwrap() == content);
    assert!(ga.agent.read_file(&path, 10).await.unwrap() == content[..10]);
    ga.agent.write_file(&path, b"").await.unwrap();
    assert_eq!(ga.agent.read_file(&path, 10).await.unwrap(), b"");
    let error = ga.agent.read_file(&ga.path("missing"), 10).await.unwrap_err();
    assert!(matches!(&error, AgentError::Refused { reason, .. } if reason.contains("missing")), "{error}");
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let ga = Ga::start().await;
    let error = ga.agent.run("guest-dance", json!({})).await.unwrap_err();
    assert!(matches!(error, AgentError::Unsupported { .. }), "{error}");
    let error = ga.agent.set_password("nobody", "secret", false).await.unwrap_err();
    assert!(matches!(error, AgentError::Disabled { .. }), "{error}");
    let error = ga.agent.power_off().await.unwrap_err();
    assert!(matches!(error, AgentError::Disabled { .. }), "{error}");
    let error = ga.agent.ssh_keys("no-such-user").await.unwrap_err();
    assert!(matches!(error, AgentError::Refused { .. }), "{error}");
}

#[tokio::test]
async fn gets_back_in_step_after_a_silence() {
    let ga = Ga::start().await;
    ga.signal(Signal::STOP);
    let impatient = ga.agent.patient(Duration::from_millis(100));
    for _ in 0..3 {
        let error = impatient.host_name().await.unwrap_err();
        assert!(matches!(error, AgentError::Silent { .. }), "{error}");
    }
    ga.signal(Signal::CONT);
    // The late answers must not be taken for this one.
    assert!(ga.agent.info().await.unwrap().supports("guest-ping"));
    // Nor does a caller who gives up in between confuse the next.
    for _ in 0..20 {
        let _ = tokio::time::timeout(Duration::from_micros(300), ga.agent.os_info()).await;
        ga.agent.ping().await.unwrap();
        assert!(!ga.agent.host_name().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn callers_take_turns() {
    let ga = Ga::start().await;
    let asked: Vec<_> = (0..20)
        .map(|number| {
            let agent = ga.agent.clone();
            tokio::spawn(async move { agent.exec(&shell(&format!("echo {number}")), PATIENCE).await })
        })
        .collect();
    for (number, one) in asked.into_iter().enumerate() {
        let status = one.await.unwrap().unwrap();
        assert_eq!(String::from_utf8(status.stdout).unwrap(), format!("{number}\n"));
    }
}

#[tokio::test]
async fn an_agent_that_ended_is_gone_and_found_again() {
    let mut ga = Ga::start().await;
    ga.child.kill().await.unwrap();
    let error = ga.agent.ping().await.unwrap_err();
    assert!(matches!(error, AgentError::Gone), "{error}");
    let error = ga.agent.ping().await.unwrap_err();
    assert!(matches!(error, AgentError::Unreachable(_)), "{error}");
    assert!(Path::new(&ga.path("ga.sock")).exists());

    // A guest that comes up again listens on the same socket.
    std::fs::remove_file(ga.path("ga.sock")).unwrap();
    let listener = tokio::net::UnixListener::bind(ga.path("ga.sock")).unwrap();
    let silent = ga.agent.patient(Duration::from_millis(100));
    let error = silent.ping().await.unwrap_err();
    assert!(matches!(error, AgentError::Silent { .. }), "{error}");
    drop(listener);
    let error = ga.agent.ping().await.unwrap_err();
    assert!(matches!(error, AgentError::Gone), "{error}");
}
