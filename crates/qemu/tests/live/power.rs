//! Running, pausing, resetting, and the events of it.

use std::time::{Duration, SystemTime};

use kubevirt_qemu::machine::{OnEvent, RunState};
use kubevirt_qemu::qmp::{Event, QmpError};
use serde_json::json;

use crate::common::{start, wait_for, within};

#[tokio::test]
async fn every_change_is_told_to_every_listener() {
    let (_process, machine) = start(&[]).await;
    let mut one = machine.events();
    let mut other = machine.events();
    machine.resume().await.unwrap();
    machine.pause().await.unwrap();
    assert_eq!(machine.status().await.unwrap(), RunState::Paused);
    machine.reset().await.unwrap();
    machine.powerdown().await.unwrap();
    for events in [&mut one, &mut other] {
        wait_for(events, |event| (*event == Event::Resume).then_some(())).await;
        wait_for(events, |event| (*event == Event::Stop).then_some(())).await;
    }
    let mut late = machine.events();
    machine.resume().await.unwrap();
    let first = within(late.next()).await.unwrap();
    let age = SystemTime::now().duration_since(first.at).unwrap_or_default();
    assert!(age < Duration::from_secs(60), "{age:?}");
    machine.reset().await.unwrap();
    let guest = wait_for(&mut late, |event| match event {
        Event::Reset { guest, .. } => Some(*guest),
        _ => None,
    });
    assert!(!guest.await);
}

#[tokio::test]
async fn the_end_is_announced() {
    let (process, machine) = start(&["-no-shutdown"]).await;
    let mut events = machine.events();
    machine.set_on_event(OnEvent { reboot: Some("shutdown"), ..OnEvent::default() }).await.unwrap();
    machine.resume().await.unwrap();
    machine.reset().await.unwrap();
    let reason = wait_for(&mut events, |event| match event {
        Event::Shutdown { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    assert!(reason.await.is_some());
    assert!(within(process.quit(&machine, Duration::from_secs(30))).await.is_success());
}

#[tokio::test]
async fn refusals_carry_class_and_words() {
    let (_process, machine) = start(&[]).await;
    let error = machine.qmp().run("make-coffee", json!({})).await.unwrap_err();
    assert!(error.is_unknown_command(), "{error}");
    let error = machine.set_link("no-such-interface", true).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    let error = machine.qmp().run("query-status", json!({ "extra": 1 })).await.unwrap_err();
    assert!(matches!(&error, QmpError::Refused { desc, .. } if desc.contains("extra")), "{error}");
    // Many at once, each its own answer.
    let asked: Vec<_> = (0..50)
        .map(|number| {
            let machine = machine.clone();
            tokio::spawn(async move {
                match number % 2 {
                    0 => machine.status().await.is_ok(),
                    _ => machine.close_fd(&format!("fd{number}")).await.unwrap_err().is_not_found(),
                }
            })
        })
        .collect();
    for one in asked {
        assert!(within(one).await.unwrap());
    }
}
