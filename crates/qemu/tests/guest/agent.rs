//! The agent where it belongs: what must not be tried on the machine that runs the tests.

use kubevirt_qemu::agent::{AgentError, FreezeStatus};
use kubevirt_qemu::qmp::Event;

use crate::guest::Guest;

#[tokio::test]
async fn the_agent_works_in_a_guest() {
    let mut guest = Guest::boot(&["-m", "256"]).await;
    let agent = guest.agent.clone();
    let os = agent.os_info().await.unwrap();
    assert_eq!((os.id.as_deref(), os.pretty_name.as_deref()), (Some("testguest"), Some("Test Guest 1")));
    let filesystems = agent.filesystems().await.unwrap();
    let data = filesystems.iter().find(|one| one.mountpoint == "/data").unwrap();
    assert_eq!((data.name.as_str(), data.kind.as_str()), ("vda", "ext2"));

    assert_eq!(agent.freeze().await.unwrap(), 1);
    assert_eq!(agent.freeze_status().await.unwrap(), FreezeStatus::Frozen);
    assert!(matches!(agent.host_name().await, Err(AgentError::Disabled { .. })));
    assert_eq!(agent.thaw().await.unwrap(), 1);
    assert_eq!(agent.freeze_status().await.unwrap(), FreezeStatus::Thawed);

    agent.set_password("guest", "a secret, ü", false).await.unwrap();
    let shadow = String::from_utf8(agent.read_file("/etc/shadow", 1 << 20).await.unwrap()).unwrap();
    let hash = shadow.lines().find_map(|line| line.strip_prefix("guest:")?.split(':').next()).unwrap();
    let salt = hash.split('$').nth(2).unwrap();
    assert_eq!(guest.shell(&format!("mkpasswd -m sha512 -S {salt} 'a secret, ü'")).await, hash);
    agent.set_password("guest", "$6$crypted", true).await.unwrap();
    assert_eq!(guest.shell("grep -c '^guest:$6$crypted:' /etc/shadow").await, "1");

    let keys = ["ssh-ed25519 AAAA one".to_owned(), "ssh-ed25519 BBBB two".to_owned()];
    agent.add_ssh_keys("guest", &keys, false).await.unwrap();
    let mut known = agent.ssh_keys("guest").await.unwrap();
    known.sort();
    assert_eq!(known, keys);
    agent.remove_ssh_keys("guest", &keys[..1]).await.unwrap();
    assert_eq!(agent.ssh_keys("guest").await.unwrap(), keys[1..]);
    agent.add_ssh_keys("guest", &keys[..1], true).await.unwrap();
    assert_eq!(agent.ssh_keys("guest").await.unwrap(), keys[..1]);

    // A second year of this century is enough to see that the clock follows.
    agent.set_time(Some(1_000_000_000_000_000_000)).await.unwrap();
    assert_eq!(guest.shell("date -u +%Y").await, "2001");

    agent.power_off().await.unwrap();
    let by_guest = guest.wait_for(|event| match event {
        Event::Shutdown { guest, .. } => Some(*guest),
        _ => None,
    });
    assert!(by_guest.await);
    assert!(guest.process.exited().await.is_success());
}
