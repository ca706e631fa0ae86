//! Moving a machine that idles in its firmware from one QEMU to another.

use std::collections::BTreeSet;
use std::time::Duration;

use kubevirt_qemu::machine::RunState;
use kubevirt_qemu::migration::{Capability, Channel, MigrationError, MigrationStatus, Parameters, Settings};
use kubevirt_qemu::{Machine, Process};

use crate::common::{Folder, start, within};

struct Pair {
    folder: Folder,
    source: Machine,
    target: Machine,
    processes: [Process; 2],
}

async fn pair() -> Pair {
    let (one, source) = start(&["-machine", "q35"]).await;
    let (two, target) = start(&["-machine", "q35", "-incoming", "defer"]).await;
    source.resume().await.unwrap();
    Pair { folder: Folder::new(), source, target, processes: [one, two] }
}

fn slow() -> Parameters {
    Parameters { max_bandwidth: Some(64 << 10), downtime_limit: Some(1), ..Parameters::default() }
}

#[tokio::test]
async fn a_guest_moves_and_tells_how_far_it_is() {
    let pair = pair().await;
    let capabilities = BTreeSet::from([Capability::AutoConverge, Capability::Xbzrle]);
    let settings = Settings { capabilities, parameters: slow() };
    let channel = Channel::Unix(pair.folder.join("migration"));
    let incoming = pair.target.receive(&channel, &settings).await.unwrap();
    assert_eq!(pair.target.status().await.unwrap(), RunState::InMigrate);

    let mut migration = pair.source.migrate(&channel, &settings).await.unwrap();
    let mut seen = Vec::new();
    within(async {
        while let Some(progress) = migration.next(Duration::from_millis(100)).await.unwrap() {
            if progress.status == MigrationStatus::Active && progress.ram.is_some() {
                let fast = Parameters { max_bandwidth: Some(0), downtime_limit: Some(500), ..slow() };
                pair.source.set_migration_parameters(&fast).await.unwrap();
            }
            seen.push(progress);
        }
    })
    .await;
    let last = seen.last().unwrap();
    assert_eq!(last.status, MigrationStatus::Completed);
    assert!(last.downtime.is_some());
    let ram = last.ram.as_ref().unwrap();
    assert!(ram.remaining == 0 && ram.total > 64 << 20 && ram.transferred > 0, "{ram:?}");
    assert!(seen.iter().any(|one| one.status == MigrationStatus::Active));

    within(incoming.finish()).await.unwrap();
    assert_eq!(pair.source.status().await.unwrap(), RunState::PostMigrate);
    pair.target.resume().await.unwrap();
    assert_eq!(pair.target.status().await.unwrap(), RunState::Running);
    let parameters = pair.source.migration_parameters().await.unwrap();
    assert_eq!(parameters.max_bandwidth, Some(0));
}

#[tokio::test]
async fn a_cancelled_guest_stays_and_may_try_again() {
    let pair = pair().await;
    let settings = Settings { parameters: slow(), ..Settings::default() };
    let channel = Channel::Unix(pair.folder.join("migration"));
    let _incoming = pair.target.receive(&channel, &settings).await.unwrap();
    let mut migration = pair.source.migrate(&channel, &settings).await.unwrap();
    within(async {
        while migration.next(Duration::from_millis(50)).await.unwrap().unwrap().status
            != MigrationStatus::Active
        {}
    })
    .await;
    migration.cancel().await.unwrap();
    let result = within(migration.finish()).await;
    assert!(matches!(result, Err(MigrationError::Cancelled)), "{result:?}");
    assert_eq!(pair.source.status().await.unwrap(), RunState::Running);
    // The half of a guest is of no use: the target ends by itself.
    let exit = within(pair.processes[1].exited()).await;
    assert!(!exit.is_success(), "{exit}");

    let (_process, target) = start(&["-machine", "q35", "-incoming", "defer"]).await;
    let channel = Channel::Unix(pair.folder.join("again"));
    let incoming = target.receive(&channel, &Settings::default()).await.unwrap();
    let fast = Settings {
        parameters: Parameters { max_bandwidth: Some(0), downtime_limit: Some(500), ..Parameters::default() },
        ..Settings::default()
    };
    let migration = pair.source.migrate(&channel, &fast).await.unwrap();
    within(migration.finish()).await.unwrap();
    within(incoming.finish()).await.unwrap();
}

#[tokio::test]
async fn memory_goes_over_several_channels() {
    let pair = pair().await;
    let parameters = Parameters { multifd_channels: Some(3), ..Parameters::default() };
    let settings = Settings { capabilities: BTreeSet::from([Capability::Multifd]), parameters };
    let channel = Channel::Unix(pair.folder.join("migration"));
    let incoming = pair.target.receive(&channel, &settings).await.unwrap();
    let migration = pair.source.migrate(&channel, &settings).await.unwrap();
    within(migration.finish()).await.unwrap();
    within(incoming.finish()).await.unwrap();
    assert_eq!(pair.target.migration_parameters().await.unwrap().multifd_channels, Some(3));
}

#[tokio::test]
async fn a_guest_moves_through_an_open_file_and_waits_before_the_switch() {
    let pair = pair().await;
    let capabilities = BTreeSet::from([Capability::PauseBeforeSwitchover]);
    let settings = Settings { capabilities, ..Settings::default() };
    let (one, two) = std::os::unix::net::UnixStream::pair().unwrap();
    pair.target.pass_fd("in", one.into()).await.unwrap();
    pair.source.pass_fd("out", two.into()).await.unwrap();
    let incoming = pair.target.receive(&Channel::Fd("in".into()), &settings).await.unwrap();
    let mut migration = pair.source.migrate(&Channel::Fd("out".into()), &settings).await.unwrap();
    within(async {
        loop {
            let progress = migration.next(Duration::from_millis(200)).await.unwrap().unwrap();
            if progress.status == MigrationStatus::PreSwitchover {
                return migration.switch_over().await.unwrap();
            }
        }
    })
    .await;
    within(migration.finish()).await.unwrap();
    within(incoming.finish()).await.unwrap();
}

#[tokio::test]
async fn a_guest_runs_ahead_of_its_memory() {
    let pair = pair().await;
    let settings = Settings {
        capabilities: BTreeSet::from([Capability::PostcopyRam]),
        parameters: Parameters { max_postcopy_bandwidth: Some(0), ..slow() },
    };
    let channel = Channel::Unix(pair.folder.join("migration"));
    let mut incoming = pair.target.receive(&channel, &settings).await.unwrap();
    let mut migration = pair.source.migrate(&channel, &settings).await.unwrap();
    let active = async {
        while migration.next(Duration::from_millis(50)).await.unwrap().unwrap().status
            != MigrationStatus::Active
        {}
    };
    within(active).await;
    migration.start_postcopy().await.unwrap();
    within(incoming.until_runnable()).await.unwrap();
    pair.target.resume().await.unwrap();
    within(migration.finish()).await.unwrap();
    within(incoming.finish()).await.unwrap();
    assert_eq!(pair.target.status().await.unwrap(), RunState::Running);
}

#[tokio::test]
async fn a_target_that_is_not_there_or_dies_is_told() {
    let pair = pair().await;
    let nowhere = Channel::Unix(pair.folder.join("nowhere"));
    let migration = pair.source.migrate(&nowhere, &Settings::default()).await;
    let error = match migration {
        Err(error) => error.to_string(),
        Ok(migration) => within(migration.finish()).await.unwrap_err().to_string(),
    };
    assert!(error.contains("No such file") || error.contains("connect"), "{error}");

    let settings = Settings { parameters: slow(), ..Settings::default() };
    let channel = Channel::Unix(pair.folder.join("migration"));
    let incoming = pair.target.receive(&channel, &settings).await.unwrap();
    let migration = pair.source.migrate(&channel, &settings).await.unwrap();
    pair.processes[1].end().await;
    let result = within(migration.finish()).await;
    assert!(matches!(result, Err(MigrationError::Failed { .. })), "{result:?}");
    assert!(matches!(within(incoming.finish()).await, Err(MigrationError::Qmp(error)) if error.is_gone()));
    assert_eq!(pair.source.status().await.unwrap(), RunState::Running);
}

#[tokio::test]
async fn what_this_qemu_cannot_do_is_known_before_and_refused_by_name() {
    let pair = pair().await;
    let known = pair.source.migration_capabilities().await.unwrap();
    for capability in [Capability::PostcopyRam, Capability::Multifd, Capability::ZeroCopySend] {
        assert!(known.contains(&capability), "{capability}");
    }
    let novel = Capability::from("teleport".to_owned());
    let settings = Settings { capabilities: BTreeSet::from([novel]), ..Settings::default() };
    let channel = Channel::Unix(pair.folder.join("migration"));
    let error = pair.source.migrate(&channel, &settings).await.unwrap_err();
    assert!(error.to_string().contains("teleport"), "{error}");
}
