//! What is asked of QEMU itself.

use super::*;

#[tokio::test]
async fn measurements_are_taken() {
    let bench = Bench::start().await;
    let stats = bench.launcher.stats().await.unwrap();
    assert_eq!(stats.name, "default_web");
    assert!(stats.cpu.user + stats.cpu.system > 0);
    assert!(stats.memory.resident.unwrap() > 0);
    assert_eq!((stats.memory.domain, stats.memory.actual_balloon), (Some(16 << 20), Some(16 << 20)));
    assert_eq!(stats.vcpus.len(), 1);
    let disks: Vec<_> = stats.disks.iter().map(|disk| (disk.name.as_str(), disk.capacity)).collect();
    assert_eq!(disks, [("root", Some(4 << 20))]);
    assert!(bench.launcher.dirty_rate().await.unwrap() >= 0);
}

#[tokio::test]
async fn memory_is_dumped_and_failures_have_a_reason() {
    let bench = Bench::start().await;
    let folder = bench.folder.join("dumps");
    std::fs::create_dir(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (one, two) = (path("one.memory.dump"), path("two.memory.dump"));
    for _ in 0..2 {
        bench.launcher.dump_memory(&one).await.unwrap();
    }
    let done = |report: &DomainReport| report.status.memory_dump.as_ref().is_some_and(|dump| dump.completed);
    let dump = bench.until(done).await.status.memory_dump.unwrap();
    assert_eq!((dump.name.as_str(), dump.failed), ("one.memory.dump", false), "{dump:?}");
    assert!(std::fs::metadata(&one).unwrap().len() >= 16 << 20);

    bench.launcher.dump_memory(&two).await.unwrap();
    let second = |report: &DomainReport| {
        report.status.memory_dump.as_ref().is_some_and(|dump| dump.completed && dump.name.starts_with("two"))
    };
    assert!(!bench.until(second).await.status.memory_dump.unwrap().failed);
    assert!(!std::path::Path::new(&one).exists());

    bench.launcher.dump_memory("/proc/three.memory.dump").await.unwrap();
    let third = |report: &DomainReport| report.status.memory_dump.as_ref().is_some_and(|dump| dump.failed);
    let dump = bench.until(third).await.status.memory_dump.unwrap();
    assert!(dump.completed && !dump.failure_reason.is_empty(), "{dump:?}");
}

#[tokio::test]
async fn a_guest_without_sev_is_told_so() {
    let bench = Bench::start().await;
    let error = bench.launcher.sev_info().await.unwrap_err().to_string();
    assert!(error.contains("SEV"), "{error}");
    let error = bench.launcher.launch_measurement().await.unwrap_err().to_string();
    assert!(error.contains("launchSecurity.sev"), "{error}");
}
