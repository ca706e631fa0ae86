//! Moving machines between two pods.

use std::path::PathBuf;
use std::time::Duration;

use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::migration::{MigrationOptions, StallDetectorOptions};
use kubevirt_launcher_rpc::report::{MigrationReport, Reason, State};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::sync::SemaphorePermit;

use super::handler::PATIENCE;
use super::pod::{GUESTS, Pod, Settings, send_signal, vmi};

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

/// The machine, as it is told of once it is to be moved.
fn moving(vmi: &Value, migration: &str) -> Value {
    let mut vmi = vmi.clone();
    vmi["status"] = json!({
        "migrationMethod": "BlockMigration",
        "migrationTransport": "Unix",
        "migrationState": { "migrationUid": migration, "targetPod": "pod-b" },
    });
    vmi
}

/// A machine without anything to boot, which idles in its firmware.
fn idle() -> Value {
    vmi(json!({"spec": {
        "domain": { "memory": { "guest": "64Mi" }, "devices": { "disks": [] } }, "volumes": [],
    }}))
}

/// The same with a disk that is not copied.
fn idle_on_shared_disk() -> Value {
    let mut vmi = idle();
    let source = json!({ "path": "/somewhere/disk.img", "type": "Disk", "shared": true });
    vmi["spec"]["domain"]["devices"]["disks"] = json!([{ "name": "shared", "disk": { "bus": "virtio" } }]);
    vmi["spec"]["volumes"] = json!([{ "name": "shared", "hostDisk": source }]);
    vmi
}

/// A machine with the small guest, a scratch disk and a layer over a claim.
fn guest() -> Value {
    let disk = |name: &str| json!({ "name": name, "disk": { "bus": "virtio" } });
    vmi(json!({"spec": {
        "domain": {
            "memory": { "guest": "256Mi" },
            "firmware": { "kernelBoot": {
                "kernelArgs": format!("{} guest.data=/dev/vda", test_guest::COMMAND_LINE),
                "container": { "image": "guest", "kernelPath": "/vmlinuz", "initrdPath": "/initrd" },
            } },
            "devices": { "disks": [disk("scratch"), disk("layered")] },
        },
        "volumes": [
            { "name": "scratch", "emptyDisk": { "capacity": "64Mi" } },
            { "name": "layered", "ephemeral": { "persistentVolumeClaim": { "claimName": "claim" } } },
        ],
    }}))
}

/// A file that pods share, until it is dropped.
struct Shared(PathBuf);

impl Shared {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("kubevirt-shared-{}", std::process::id()));
        std::fs::write(&path, vec![0; 1 << 20]).unwrap();
        Self(path)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A pod whose guest has its place already. Its node lets guests fetch memory while they run.
async fn pod() -> Pod {
    // Only a kernel that is told so lets everybody handle faults of memory; the capability is the other way.
    let capabilities = vec!["+sys_ptrace"];
    Pod::with(Settings { has_place: true, capabilities, ..Settings::default() }).await
}

struct Pair {
    source: Pod,
    target: Pod,
    _places: SemaphorePermit<'static>,
}

impl Pair {
    /// A machine that runs, and a second pod that it can reach.
    async fn new(vmi: &Value, put: impl Fn(&Pod)) -> Self {
        let places = GUESTS.acquire_many(2).await.unwrap();
        let (source, target) = (pod().await, pod().await);
        put(&source);
        put(&target);
        source.sync(vmi).await.unwrap();
        source.wait_for_reason(State::Running, Reason::Unknown).await;
        source.connect_to(&target);
        Self { source, target, _places: places }
    }

    async fn idle() -> Self {
        Self::new(&idle(), |_| {}).await
    }

    /// Gives up a target that nothing has come to, and takes another.
    async fn replace_target(&mut self) {
        let mut spent = std::mem::replace(&mut self.target, pod().await);
        assert_eq!(spent.exit_code().await, 1);
        self.source.connect_to(&self.target);
    }

    /// Begins to move it.
    async fn begin(&mut self, vmi: &Value, options: &MigrationOptions) {
        self.target.prepare(vmi).await;
        self.source.migrate(vmi, options).await.unwrap();
    }

    /// What the source tells of a migration that has ended.
    async fn ended(&self, uid: &str) -> DomainReport {
        let over = |report: &DomainReport| {
            let told = migration(report);
            told.uid == uid && told.end_timestamp.is_some()
        };
        self.source.hear("the migration ends", over).await
    }

    /// Waits until the machine has moved, and answers with what the source tells of it.
    async fn moved(&mut self, uid: &str) -> MigrationReport {
        let report = self.ended(uid).await;
        assert!(!migration(&report).failed, "{:#?}", report.status);
        self.source.hear("the machine is gone", is(State::Shutoff, Reason::Migrated)).await;
        let arrived = |report: &DomainReport| migration(report).end_timestamp.is_some();
        let here = self.target.hear("the machine has arrived", arrived).await;
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
        let last = self.source.domain().await.unwrap();
        assert_eq!((last.status.status, last.status.reason), (State::Running, Reason::Unknown));
    }
}

/// Waits for the guest's agent.
async fn agent(pod: &Pod) {
    pod.hear("the guest agent", |report| report.status.agent_connected).await;
}

/// Cancels the migration that is under way.
async fn cancel(pod: &Pod) -> Result<(), String> {
    pod.call(|mut it, vmi| async move { it.cancel_virtual_machine_migration(vmi).await }).await
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
    // QEMU's emulation of CPUs races with its own log of written memory: on a crowded host a page is sometimes lost
    // on the way, and the guest's kernel panics. No launcher can mend that, so there is a second chance.
    if move_a_writer().await.is_err() {
        move_a_writer().await.unwrap();
    }
}

/// Moves it and looks for what is lost. An error if its kernel panicked.
async fn move_a_writer() -> Result<(), String> {
    let vmi = guest();
    let put = |pod: &Pod| {
        pod.kernel_boot();
        pod.write(&pod.private().join("vmi-disks/layered/disk.img"), &vec![7; 8 << 20]);
    };
    let mut pair = Pair::new(&vmi, put).await;
    agent(&pair.source).await;
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
    pair.target.hear("the machine runs there", is(State::Running, Reason::Unknown)).await;

    agent(&pair.target).await;
    let written = tokio::time::timeout(PATIENCE, async {
        loop {
            let console = pair.target.transcript();
            if console.contains("Kernel panic") {
                return Err(console);
            }
            if console.matches("tick ").count() >= 3 {
                return Ok(());
            }
            // The guest writes into a file, of which nobody tells.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    written.await.expect("the guest writes on")?;
    pair.target.shell("rm /tmp/go; while [ ! -e /tmp/ended ]; do sleep 1; done").await;
    pair.target.shell("cd /tmp; for sum in sum*; do md5sum -c $sum; done").await;
    pair.target
        .shell("sync; echo 3 > /proc/sys/vm/drop_caches; cd /data; for sum in sum*; do md5sum -c $sum; done")
        .await;

    assert_eq!(pair.target.shell("md5sum /dev/vdb").await, layered);

    // Each line of the console is either here or there, and none is missing.
    let all = pair.source.transcript() + &pair.target.transcript();
    let ticks: Vec<u32> = all
        .lines()
        // The first one follows the login prompt.
        .filter_map(|line| line.split_once("tick "))
        .map(|(_, number)| number.parse().unwrap())
        .collect();
    assert_eq!(ticks, (1..=ticks.len() as u32).collect::<Vec<_>>());

    pair.target
        .call(|mut it, vmi| async move { it.finalize_virtual_machine_migration(vmi).await })
        .await
        .unwrap();
    assert_eq!(pair.source.exit_code().await, 0);
    pair.target.kill().await;
    Ok(())
}

#[tokio::test]
async fn a_paused_guest_moves_paused() {
    let mut pair = Pair::idle().await;
    let vmi = moving(&idle(), "one");
    pair.source.call(|mut it, vmi| async move { it.pause_virtual_machine(vmi).await }).await.unwrap();
    pair.begin(&vmi, &MigrationOptions::default()).await;
    pair.moved("one").await;
    let last = pair.target.domain().await.unwrap();
    assert_eq!((last.status.status, last.status.reason), (State::Paused, Reason::User));
    pair.target.call(|mut it, vmi| async move { it.unpause_virtual_machine(vmi).await }).await.unwrap();
    pair.target.hear("the machine runs", is(State::Running, Reason::Unknown)).await;
    pair.target.kill().await;
    assert_eq!(pair.source.exit_code().await, 0);
}

#[tokio::test]
async fn a_cancelled_machine_stays_and_may_try_again() {
    let mut pair = Pair::idle().await;
    let vmi = moving(&idle(), "one");
    let none = cancel(&pair.source).await.unwrap_err();
    assert!(none.contains("not migrating"), "{none}");
    pair.begin(&vmi, &slow()).await;
    // Again and again, as a handler does.
    pair.begin(&vmi, &slow()).await;
    let busy = pair.source.migrate(&moving(&idle(), "two"), &slow()).await.unwrap_err();
    assert!(busy.contains("one"), "{busy}");
    pair.source.hear("it moves", |report| migration(report).progress.is_some()).await;
    cancel(&pair.source).await.unwrap();
    let told = pair.stayed("one").await;
    assert_eq!((told.abort_status.as_str(), told.uid.as_str()), ("Succeeded", "one"));
    let once = pair.source.migrate(&vmi, &slow()).await.unwrap_err();
    assert!(once.contains("cancelled"), "{once}");

    pair.replace_target().await;
    pair.begin(&moving(&idle(), "two"), &MigrationOptions::default()).await;
    pair.moved("two").await;
    pair.target.kill().await;
    assert_eq!(pair.source.exit_code().await, 0);
}

#[tokio::test]
async fn a_machine_that_takes_too_long_stays_or_runs_ahead() {
    let hurry = MigrationOptions { completion_timeout_per_gib: 2, ..slow() };
    let mut pair = Pair::idle().await;
    pair.begin(&moving(&idle(), "one"), &hurry).await;
    let told = pair.stayed("one").await;
    assert!(told.failure_reason.contains("within 2 seconds"), "{told:?}");
    pair.replace_target().await;

    // A guest that runs ahead fetches its memory without a limit.
    let ahead = MigrationOptions { allow_workload_disruption: true, allow_post_copy: true, ..hurry };
    pair.begin(&moving(&idle(), "two"), &ahead).await;
    let told = pair.moved("two").await;
    assert_eq!((told.mode.as_str(), told.failed), ("PostCopy", false));
    let last = pair.target.domain().await.unwrap();
    assert_eq!((last.status.status, migration(&last).mode.as_str()), (State::Running, "PostCopy"));
    pair.target.kill().await;
    assert_eq!(pair.source.exit_code().await, 0);
}

#[tokio::test]
async fn a_guest_that_ran_ahead_gets_its_memory_over_another_connection() {
    let mut pair = Pair::idle().await;
    let connection = pair.source.connect_slowly_to(&pair.target);
    let ahead = MigrationOptions {
        completion_timeout_per_gib: 1,
        allow_workload_disruption: true,
        allow_post_copy: true,
        ..slow()
    };
    pair.begin(&moving(&idle(), "one"), &ahead).await;
    pair.target.wait_for_reason(State::Running, Reason::Unknown).await;
    connection.cut();
    pair.target.wait_for_reason(State::Paused, Reason::PostcopyFailed).await;
    let told = pair.moved("one").await;
    assert_eq!((told.mode.as_str(), told.failed), ("PostCopy", false));
    let runs = |report: &DomainReport| report.status.status == State::Running;
    pair.target
        .hear("it runs again", |report| runs(report) && migration(report).end_timestamp.is_some())
        .await;
    pair.target.kill().await;
    assert_eq!(pair.source.exit_code().await, 0);
}

#[tokio::test]
async fn a_guest_that_has_stalled_moves_still() {
    let mut pair = Pair::idle().await;
    // So much bandwidth never suffices for so short a pause, until a pass counts as the last of the good ones.
    let stall = StallDetectorOptions { stall_progress_timeout: 1, ..StallDetectorOptions::default() };
    let stalling = MigrationOptions {
        bandwidth: "512Ki".into(),
        completion_timeout_per_gib: 4,
        allow_workload_disruption: true,
        stall_detector_options: Some(stall),
        ..slow()
    };
    pair.begin(&moving(&idle(), "one"), &stalling).await;
    let over = |report: &DomainReport| migration(report).end_timestamp.is_some();
    let told = migration(&pair.source.hear("it ends", over).await);
    // Whether so little bandwidth suffices depends on the firmware; in any case it runs on one side.
    let has_it = if told.failed { &mut pair.source } else { &mut pair.target };
    has_it.wait_for_reason(State::Running, Reason::Unknown).await;
    has_it.kill().await;
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
    pair.source.hear("it stands still", is(State::Paused, Reason::Migration)).await;
    let over = |report: &DomainReport| migration(report).end_timestamp.is_some();
    let told = migration(&pair.source.hear("it ends", over).await);
    assert_eq!(told.mode, "Paused");
    // Whether so little bandwidth suffices depends on the firmware; in any case it runs on one side.
    let (has_it, has_not) = if told.failed {
        pair.source_runs().await;
        (&mut pair.source, &pair.target)
    } else {
        (&mut pair.target, &pair.source)
    };
    has_it.hear("the machine runs", is(State::Running, Reason::Unknown)).await;
    has_not.hear("the machine is gone", |report| report.status.status == State::Shutoff).await;
    has_it.kill().await;
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
    pair.target.kill().await;
    assert_eq!(pair.source.exit_code().await, 0);
}

#[tokio::test]
async fn whatever_befalls_the_target_the_machine_runs_on() {
    let mut pair = Pair::idle().await;
    // Nobody is prepared.
    pair.source.migrate(&moving(&idle(), "one"), &slow()).await.unwrap();
    let told = pair.stayed("one").await;
    assert!(told.failure_reason.contains("cannot be reached"), "{told:?}");
    assert_eq!(told.abort_status, "");

    // The target has another idea of the machine.
    let mut other = moving(&idle(), "two");
    other["spec"]["domain"]["firmware"] = json!({ "bootloader": { "efi": { "secureBoot": false } } });
    pair.target.prepare(&other).await;
    pair.source.migrate(&moving(&idle(), "two"), &slow()).await.unwrap();
    let told = pair.stayed("two").await;
    assert!(told.failure_reason.contains("firmware"), "{told:?}");

    // The target dies midway.
    let vmi = moving(&idle(), "three");
    pair.begin(&vmi, &slow()).await;
    pair.source
        .hear("it moves", |report| migration(report).uid == "three" && migration(report).progress.is_some())
        .await;
    send_signal(pair.target.qemu(), Signal::KILL);
    pair.stayed("three").await;
    pair.target.hear("it has not arrived", is(State::Shutoff, Reason::Failed)).await;
    assert_eq!(pair.target.exit_code().await, 1);
    pair.source.kill().await;
}

#[tokio::test]
async fn a_target_that_falls_silent_gets_nothing() {
    let vmi = idle_on_shared_disk();
    let shared = Shared::new();
    let mut pair = Pair::new(&vmi, |pod| pod.shared_disk(&shared.0, "shared")).await;
    let vmi = moving(&vmi, "one");
    pair.target.prepare(&vmi).await;
    // It has started its QEMU, and then nobody hears that the memory is there.
    pair.source.connect_badly_to(&pair.target, 2, false);
    pair.source.migrate(&vmi, &MigrationOptions::default()).await.unwrap();
    let told = pair.stayed("one").await;
    assert!(told.failure_reason.contains("does not answer"), "{told:?}");
    let ran = |report: &DomainReport| report.status.status == State::Running;
    assert!(!pair.target.handler.as_ref().unwrap().heard.all().iter().any(ran));
    pair.source.kill().await;
}

#[tokio::test]
async fn a_hand_over_whose_answer_is_lost_happens_once() {
    let vmi = idle_on_shared_disk();
    let shared = Shared::new();
    let mut pair = Pair::new(&vmi, |pod| pod.shared_disk(&shared.0, "shared")).await;
    let vmi = moving(&vmi, "one");
    pair.target.prepare(&vmi).await;
    pair.source.connect_badly_to(&pair.target, 3, true);
    pair.source.migrate(&vmi, &MigrationOptions::default()).await.unwrap();
    pair.moved("one").await;
    pair.target.hear("the machine runs", is(State::Running, Reason::Unknown)).await;
    pair.target.kill().await;
    assert_eq!(pair.source.exit_code().await, 0);
}

#[tokio::test]
async fn a_source_that_dies_takes_the_target_with_it() {
    let mut pair = Pair::idle().await;
    let vmi = moving(&idle(), "one");
    pair.begin(&vmi, &slow()).await;
    pair.source.hear("it moves", |report| migration(report).progress.is_some()).await;
    send_signal(pair.source.qemu(), Signal::KILL);
    pair.source.hear("the source dies", is(State::Crashed, Reason::Crashed)).await;
    let over = |report: &DomainReport| !report.status.status.is_alive() && report.spec.is_some();
    let last = pair.target.hear("nothing arrives", over).await;
    assert_eq!(last.status.status, State::Shutoff, "{:?}", last.status);
    assert_eq!(pair.source.exit_code().await, 1);
    assert_eq!(pair.target.exit_code().await, 1);
}

#[tokio::test]
async fn a_target_does_not_start_the_machine_itself() {
    let target = Pod::start().await;
    let vmi = moving(&idle(), "one");
    target.prepare(&vmi).await;
    target.prepare(&vmi).await;
    let why = target.sync(&vmi).await.unwrap_err();
    assert!(why.contains("another node"), "{why}");
}
