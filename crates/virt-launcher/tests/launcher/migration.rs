//! Moving machines between two launchers.

use std::time::Duration;

use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::migration::MigrationOptions;
use kubevirt_launcher_rpc::report::{MigrationReport, Reason, State};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use crate::handler::PATIENCE;
use crate::node::{Folder, Pod, accepted, guest, idle, idle_on_shared_disk, moving, refused, request};

/// One pair of machines at a time, not to crowd the host.
static ONE: Mutex<()> = Mutex::const_new(());

/// Slow enough that there is time to do something to it.
fn slow() -> MigrationOptions {
    MigrationOptions { bandwidth: "64Ki".into(), max_downtime_ms: 1, ..MigrationOptions::default() }
}

fn is(state: State, reason: Reason) -> impl Fn(&DomainReport) -> bool {
    move |report| (report.status.status, report.status.reason) == (state, reason)
}

fn migration(report: &DomainReport) -> MigrationReport {
    report.status.migration.clone().unwrap_or_default()
}

struct Pair {
    source: Pod,
    target: Pod,
    folder: Folder,
    _one: MutexGuard<'static, ()>,
}

impl Pair {
    /// A machine that runs, and a second pod that it can reach.
    async fn new(vmi: &Value, put: impl Fn(&Pod)) -> Self {
        let one = ONE.lock().await;
        let folder = Folder::new();
        let mut source = Pod::start(&folder, "a").await;
        let target = Pod::start(&folder, "b").await;
        put(&source);
        put(&target);
        source.sync(vmi).await;
        source.ear.hear("the machine runs", is(State::Running, Reason::Unknown)).await;
        source.connect_to(&target);
        Self { source, target, folder, _one: one }
    }

    async fn idle() -> Self {
        Self::new(&idle(), |_| {}).await
    }

    /// Begins to move it.
    async fn begin(&mut self, vmi: &Value, options: &MigrationOptions) {
        self.target.prepare(vmi).await;
        self.source.migrate(vmi, options).await;
    }

    /// What the source tells of a migration that has ended.
    async fn ended(&self, uid: &str) -> DomainReport {
        let over = |report: &DomainReport| {
            let told = migration(report);
            told.uid == uid && told.end_timestamp.is_some()
        };
        self.source.ear.hear("the migration ends", over).await
    }

    /// Waits until the machine has moved, and answers with what the source tells of it.
    async fn moved(&mut self, uid: &str) -> MigrationReport {
        let report = self.ended(uid).await;
        assert!(!migration(&report).failed, "{:#?}", report.status);
        self.source.ear.hear("the machine is gone", is(State::Shutoff, Reason::Migrated)).await;
        let arrived = |report: &DomainReport| migration(report).end_timestamp.is_some();
        let here = self.target.ear.hear("the machine has arrived", arrived).await;
        assert_eq!(migration(&here).uid, uid);
        migration(&report)
    }

    /// Waits until the machine has not moved, and answers with what the source tells of it.
    async fn stayed(&mut self, uid: &str) -> MigrationReport {
        let told = migration(&self.ended(uid).await);
        assert!(told.failed && !told.failure_reason.is_empty(), "{told:?}");
        self.source_runs().await;
        told
    }

    async fn source_runs(&mut self) {
        let alive = self.source.client.ping(kubevirt_launcher_rpc::cmd::EmptyRequest {}).await;
        accepted(alive);
        let last = self.source.ear.reports().pop().unwrap();
        assert_eq!((last.status.status, last.status.reason), (State::Running, Reason::Unknown));
    }
}

/// Writes to memory, to the disk and to the console for as long as it lives.
const WRITER: &str = r#"
cat > /tmp/writer <<'END'
number=0
while [ -e /tmp/go ]; do
  number=$((number + 1))
  place=$((number % 16))
  dd if=/dev/urandom of=/tmp/blob$place bs=64k count=4 2>/dev/null
  (cd /tmp; md5sum blob$place > sum$place)
  cp /tmp/blob$place /data/blob$place
  (cd /data; md5sum blob$place > sum$place; sync)
  echo "tick $number" > /dev/ttyS0
done
echo done > /tmp/ended
END
touch /tmp/go
sh /tmp/writer </dev/null >/dev/null 2>&1 &
echo started
"#;

#[tokio::test]
async fn a_writing_guest_moves_with_its_disk_and_loses_nothing() {
    let vmi = guest(&[
        ("scratch", json!({ "emptyDisk": { "capacity": "64Mi" } })),
        ("layered", json!({ "ephemeral": { "persistentVolumeClaim": { "claimName": "claim" } } })),
    ]);
    let put = |pod: &Pod| {
        pod.put_kernel();
        pod.put_disk("scratch");
        pod.put_layers("layered");
    };
    let mut pair = Pair::new(&vmi, put).await;
    pair.source.agent().await;
    assert_eq!(pair.source.shell("mount | grep -c /data").await, "1");
    pair.source.shell("dd if=/dev/urandom of=/dev/vdb bs=64k seek=10 count=20; sync").await;
    let layered = pair.source.shell("md5sum /dev/vdb").await;
    assert_eq!(pair.source.shell(WRITER).await, "started");

    let vmi = moving(&vmi, "one");
    pair.begin(&vmi, &MigrationOptions { allow_auto_converge: true, ..MigrationOptions::default() }).await;
    let told = pair.moved("one").await;
    println!("the guest stood still for {:?} ms", told.downtime_ms);
    assert!(told.downtime_ms.is_some() && told.mode == "PreCopy" && !told.failed, "{told:?}");
    let progress = told.progress.unwrap();
    assert!(progress.total >= 256 << 20 && progress.transferred > 0, "{progress:?}");
    pair.target.ear.hear("the machine runs there", is(State::Running, Reason::Unknown)).await;

    pair.target.agent().await;
    let written = tokio::time::timeout(PATIENCE, async {
        while pair.target.console().matches("tick ").count() < 3 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    written.await.expect("the guest writes on");
    pair.target.shell("rm /tmp/go; while [ ! -e /tmp/ended ]; do sleep 1; done").await;
    pair.target.shell("cd /tmp; for sum in sum*; do md5sum -c $sum; done").await;
    pair.target
        .shell("sync; echo 3 > /proc/sys/vm/drop_caches; cd /data; for sum in sum*; do md5sum -c $sum; done")
        .await;

    assert_eq!(pair.target.shell("md5sum /dev/vdb").await, layered);

    // Each line of the console is either here or there, and none is missing.
    let all = pair.source.console() + &pair.target.console();
    let ticks: Vec<u32> = all
        .lines()
        // The first one follows the login prompt.
        .filter_map(|line| line.split_once("tick "))
        .map(|(_, number)| number.parse().unwrap())
        .collect();
    assert_eq!(ticks, (1..=ticks.len() as u32).collect::<Vec<_>>());

    accepted(pair.target.client.finalize_virtual_machine_migration(request(&vmi)).await);
    assert!(pair.source.succeeded().await);
    accepted(pair.target.client.kill_virtual_machine(request(&vmi)).await);
    assert!(pair.target.succeeded().await);
}

#[tokio::test]
async fn a_paused_guest_moves_paused() {
    let mut pair = Pair::idle().await;
    let vmi = moving(&idle(), "one");
    accepted(pair.source.client.pause_virtual_machine(request(&vmi)).await);
    pair.begin(&vmi, &MigrationOptions::default()).await;
    pair.moved("one").await;
    let last = pair.target.ear.reports().pop().unwrap();
    assert_eq!((last.status.status, last.status.reason), (State::Paused, Reason::User));
    accepted(pair.target.client.unpause_virtual_machine(request(&vmi)).await);
    pair.target.ear.hear("the machine runs", is(State::Running, Reason::Unknown)).await;
    accepted(pair.target.client.kill_virtual_machine(request(&vmi)).await);
    assert!(pair.source.succeeded().await && pair.target.succeeded().await);
}

#[tokio::test]
async fn a_cancelled_machine_stays_and_may_try_again() {
    let mut pair = Pair::idle().await;
    let vmi = moving(&idle(), "one");
    let none = refused(pair.source.client.cancel_virtual_machine_migration(request(&vmi)).await);
    assert!(none.contains("not migrating"), "{none}");
    pair.begin(&vmi, &slow()).await;
    // Again and again, as a handler does.
    pair.begin(&vmi, &slow()).await;
    let busy = refused(pair.source.try_migrate(&moving(&idle(), "two"), &slow()).await);
    assert!(busy.contains("one"), "{busy}");
    pair.source.ear.hear("it moves", |report| migration(report).progress.is_some()).await;
    accepted(pair.source.client.cancel_virtual_machine_migration(request(&vmi)).await);
    let told = pair.stayed("one").await;
    assert_eq!((told.abort_status.as_str(), told.uid.as_str()), ("Succeeded", "one"));
    let once = refused(pair.source.try_migrate(&vmi, &slow()).await);
    assert!(once.contains("cancelled"), "{once}");

    let spent = std::mem::replace(&mut pair.target, Pod::start(&pair.folder, "c").await);
    assert!(!spent.succeeded().await);
    pair.source.connect_to(&pair.target);
    pair.begin(&moving(&idle(), "two"), &MigrationOptions::default()).await;
    pair.moved("two").await;
    accepted(pair.target.client.kill_virtual_machine(request(&vmi)).await);
    assert!(pair.source.succeeded().await && pair.target.succeeded().await);
}

#[tokio::test]
async fn a_machine_that_takes_too_long_stays_or_runs_ahead() {
    let hurry = MigrationOptions { completion_timeout_per_gib: 2, ..slow() };
    let mut pair = Pair::idle().await;
    pair.begin(&moving(&idle(), "one"), &hurry).await;
    let told = pair.stayed("one").await;
    assert!(told.failure_reason.contains("within 2 seconds"), "{told:?}");
    let spent = std::mem::replace(&mut pair.target, Pod::start(&pair.folder, "c").await);
    assert!(!spent.succeeded().await);

    // A guest that runs ahead fetches its memory without a limit.
    pair.source.connect_to(&pair.target);
    let ahead = MigrationOptions { allow_workload_disruption: true, allow_post_copy: true, ..hurry };
    pair.begin(&moving(&idle(), "two"), &ahead).await;
    let told = pair.moved("two").await;
    assert_eq!((told.mode.as_str(), told.failed), ("PostCopy", false));
    let last = pair.target.ear.reports().pop().unwrap();
    assert_eq!((last.status.status, migration(&last).mode.as_str()), (State::Running, "PostCopy"));
    accepted(pair.target.client.kill_virtual_machine(request(&idle())).await);
    assert!(pair.source.succeeded().await && pair.target.succeeded().await);
}

#[tokio::test]
async fn a_machine_that_may_pause_moves_still() {
    let mut pair = Pair::idle().await;
    let pausing = MigrationOptions {
        bandwidth: "512Ki".into(),
        completion_timeout_per_gib: 1,
        allow_workload_disruption: true,
        ..slow()
    };
    pair.begin(&moving(&idle(), "one"), &pausing).await;
    pair.source.ear.hear("it stands still", is(State::Paused, Reason::Migration)).await;
    let over = |report: &DomainReport| migration(report).end_timestamp.is_some();
    let told = migration(&pair.source.ear.hear("it ends", over).await);
    assert_eq!(told.mode, "Paused");
    // Whether so little bandwidth suffices depends on the firmware; in any case it runs on one side.
    let (has_it, has_not) = if told.failed {
        pair.source_runs().await;
        (&mut pair.source, &pair.target)
    } else {
        (&mut pair.target, &pair.source)
    };
    has_it.ear.hear("the machine runs", is(State::Running, Reason::Unknown)).await;
    has_not.ear.hear("the machine is gone", |report| report.status.status == State::Shutoff).await;
    accepted(has_it.client.kill_virtual_machine(request(&idle())).await);
}

#[tokio::test]
async fn several_connections_compress() {
    let mut pair = Pair::idle().await;
    let wide = MigrationOptions {
        parallel_migration_threads: Some(4),
        compression: Some("zstd".into()),
        ..MigrationOptions::default()
    };
    pair.begin(&moving(&idle(), "one"), &wide).await;
    pair.moved("one").await;
    accepted(pair.target.client.kill_virtual_machine(request(&idle())).await);
    assert!(pair.source.succeeded().await && pair.target.succeeded().await);
}

#[tokio::test]
async fn whatever_befalls_the_target_the_machine_runs_on() {
    let mut pair = Pair::idle().await;
    // Nobody is prepared.
    pair.source.migrate(&moving(&idle(), "one"), &slow()).await;
    let told = pair.stayed("one").await;
    assert!(told.failure_reason.contains("cannot be reached"), "{told:?}");
    assert_eq!(told.abort_status, "");

    // The target has another idea of the machine.
    let mut other = moving(&idle(), "two");
    other["spec"]["domain"]["firmware"] = json!({ "bootloader": { "efi": { "secureBoot": false } } });
    pair.target.prepare(&other).await;
    pair.source.migrate(&moving(&idle(), "two"), &slow()).await;
    let told = pair.stayed("two").await;
    assert!(told.failure_reason.contains("firmware"), "{told:?}");

    // The target dies midway.
    let vmi = moving(&idle(), "three");
    pair.begin(&vmi, &slow()).await;
    pair.source
        .ear
        .hear("it moves", |report| migration(report).uid == "three" && migration(report).progress.is_some())
        .await;
    pair.target.kill_qemu();
    pair.stayed("three").await;
    pair.target.ear.hear("it has not arrived", is(State::Shutoff, Reason::Failed)).await;
    assert!(!pair.target.succeeded().await);
    accepted(pair.source.client.kill_virtual_machine(request(&vmi)).await);
    assert!(pair.source.succeeded().await);
}

#[tokio::test]
async fn a_target_that_falls_silent_gets_nothing() {
    let vmi = idle_on_shared_disk();
    let mut pair = Pair::new(&vmi, |pod| pod.put_shared_disk("shared")).await;
    let vmi = moving(&vmi, "one");
    pair.target.prepare(&vmi).await;
    // It has started its QEMU, and then nobody hears that the memory is there.
    pair.source.connect_badly_to(&pair.target, 2, false);
    pair.source.migrate(&vmi, &MigrationOptions::default()).await;
    let told = pair.stayed("one").await;
    assert!(told.failure_reason.contains("does not answer"), "{told:?}");
    let ran = |report: &DomainReport| report.status.status == State::Running;
    assert!(!pair.target.ear.reports().iter().any(ran));
    accepted(pair.source.client.kill_virtual_machine(request(&vmi)).await);
    assert!(pair.source.succeeded().await);
}

#[tokio::test]
async fn a_hand_over_whose_answer_is_lost_happens_once() {
    let vmi = idle_on_shared_disk();
    let mut pair = Pair::new(&vmi, |pod| pod.put_shared_disk("shared")).await;
    let vmi = moving(&vmi, "one");
    pair.target.prepare(&vmi).await;
    pair.source.connect_badly_to(&pair.target, 3, true);
    pair.source.migrate(&vmi, &MigrationOptions::default()).await;
    pair.moved("one").await;
    pair.target.ear.hear("the machine runs", is(State::Running, Reason::Unknown)).await;
    accepted(pair.target.client.kill_virtual_machine(request(&vmi)).await);
    assert!(pair.source.succeeded().await && pair.target.succeeded().await);
}

#[tokio::test]
async fn a_source_that_dies_takes_the_target_with_it() {
    let mut pair = Pair::idle().await;
    let vmi = moving(&idle(), "one");
    pair.begin(&vmi, &slow()).await;
    pair.source.ear.hear("it moves", |report| migration(report).progress.is_some()).await;
    pair.source.kill_qemu();
    pair.source.ear.hear("the source dies", is(State::Crashed, Reason::Crashed)).await;
    let over = |report: &DomainReport| !report.status.status.is_alive() && report.spec.is_some();
    let last = pair.target.ear.hear("nothing arrives", over).await;
    assert_eq!(last.status.status, State::Shutoff, "{:?}", last.status);
    assert!(!pair.source.succeeded().await);
    assert!(!pair.target.succeeded().await);
}

#[tokio::test]
async fn a_target_does_not_start_the_machine_itself() {
    let _one = ONE.lock().await;
    let folder = Folder::new();
    let mut target = Pod::start(&folder, "b").await;
    let vmi = moving(&idle(), "one");
    target.prepare(&vmi).await;
    target.prepare(&vmi).await;
    let why = refused(target.client.sync_virtual_machine(request(&vmi)).await);
    assert!(why.contains("another node"), "{why}");
}
