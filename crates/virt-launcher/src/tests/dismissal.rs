//! A launcher that is told that no machine is wanted any more.

use super::*;
use crate::error::CommandError;
use crate::launcher::Stage;

/// A launcher that nobody asked for a machine yet.
fn waiting() -> Arc<Launcher> {
    let line = "virt-launcher --name web --namespace default --uid u1";
    Launcher::new(Arguments::try_parse_from(line.split_whitespace()).unwrap()).0
}

#[tokio::test]
async fn one_that_never_had_a_machine_ends() {
    let launcher = waiting();
    launcher.kill().await.unwrap();
    assert_eq!(launcher.stage(), Stage::Waiting);
    for _ in 0..2 {
        launcher.delete().await.unwrap();
        assert_eq!(launcher.stage(), Stage::Dismissed);
    }
    let late = launcher.sync(&vmi(), &VirtualMachineOptions::default()).await;
    assert!(matches!(late, Err(CommandError::Ended(_))), "{late:?}");
}

#[tokio::test]
async fn a_start_that_is_under_way_is_waited_for() {
    let launcher = waiting();
    let start = launcher.work.lock().await;
    let mut told = tokio::spawn({
        let launcher = launcher.clone();
        async move { launcher.delete().await }
    });
    assert!(timeout(Duration::from_millis(50), &mut told).await.is_err());
    assert_eq!(launcher.stage(), Stage::Waiting);
    launcher.set_stage(Stage::Running);
    drop(start);
    told.await.unwrap().unwrap();
    assert_eq!(launcher.stage(), Stage::Running);
}

#[tokio::test]
async fn one_that_has_a_machine_ends_with_it() {
    let bench = Bench::start().await;
    bench.launcher.set_stage(Stage::Running);
    bench.launcher.delete().await.unwrap();
    assert_eq!(bench.launcher.stage(), Stage::Running);
    timeout(PATIENCE, bench.running.process.exited()).await.unwrap();
}
