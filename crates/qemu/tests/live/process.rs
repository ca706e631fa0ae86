//! Starting QEMU, and every way in which it can end.

use std::path::Path;
use std::time::{Duration, Instant};

use kubevirt_qemu::machine::RunState;
use kubevirt_qemu::process::StartError;
use kubevirt_qemu::qmp::{Event, Limits, Loss, QmpError};
use kubevirt_qemu::{Machine, Qmp};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::common::{Folder, launch, start, try_start, within};

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

fn is_there(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn starts_paused_runs_and_quits() {
    let (process, machine) = start(&[]).await;
    assert!(machine.qmp().version().at_least(7, 2), "{}", machine.qmp().version());
    assert_eq!(machine.status().await.unwrap(), RunState::Prelaunch);
    machine.resume().await.unwrap();
    assert_eq!(machine.status().await.unwrap(), RunState::Running);
    assert!(is_there(process.pid()));
    assert_eq!(process.exit(), None);

    let exit = within(process.quit(&machine, Duration::from_secs(30))).await;
    assert!(exit.is_success(), "{exit}");
    assert!(!is_there(process.pid()), "a zombie is left");
    assert!(machine.status().await.unwrap_err().is_gone());
    assert_eq!(within(machine.qmp().gone()).await, Loss::Closed);
}

#[tokio::test]
async fn a_second_monitor_is_found_by_its_path() {
    let folder = Folder::new();
    let path = folder.join("monitor");
    let monitor = format!("unix:{},server=on,wait=off", path.display());
    let (process, machine) = start(&["-qmp", &monitor]).await;
    let other = Machine::new(Qmp::connect(&path, Limits::default()).await.unwrap());
    let mut events = other.events();
    machine.resume().await.unwrap();
    assert_eq!(within(events.next()).await.unwrap().event, Event::Resume);
    assert_eq!(other.status().await.unwrap(), RunState::Running);
    within(process.end()).await;
    assert_eq!(within(other.qmp().gone()).await, Loss::Closed);
}

#[tokio::test]
async fn what_qemu_says_can_be_followed() {
    let port = "isa-debugcon,iobase=0x402,chardev=out";
    let chardev = "file,id=out,path=/dev/stdout";
    let (process, machine) = start(&["-chardev", chardev, "-device", port]).await;
    let mut output = process.follow_output();
    machine.resume().await.unwrap();
    // The firmware speaks on its debug port.
    let line = within(async {
        loop {
            let line = output.recv().await.unwrap();
            if line.contains("SeaBIOS") {
                return line;
            }
        }
    });
    let line = line.await;
    assert!(process.output().contains(&line));
    let exit = within(process.end()).await;
    assert!(exit.last_words.contains(&line) && exit.to_string().starts_with("signal 9"), "{exit}");
}

#[tokio::test]
async fn runs_in_its_sandbox() {
    let sandbox = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";
    let (process, machine) = start(&["-sandbox", sandbox]).await;
    machine.resume().await.unwrap();
    assert!(within(process.quit(&machine, Duration::from_secs(30))).await.is_success());
}

#[tokio::test]
async fn a_killed_qemu_is_noticed_at_once() {
    let (process, machine) = start(&[]).await;
    let mut events = machine.events();
    signal(process.pid(), Signal::KILL);
    let since = Instant::now();
    let exit = within(process.exited()).await;
    assert!(exit.is_killed(), "{exit}");
    assert!(since.elapsed() < Duration::from_secs(5));
    assert!(!is_there(process.pid()), "a zombie is left");
    assert_eq!(within(events.next()).await, None);
    assert!(matches!(machine.pause().await, Err(QmpError::Gone(Loss::Closed))));
    // Who asks later hears the same.
    assert_eq!(process.exited().await, exit);
    assert_eq!(process.end().await, exit);
}

#[tokio::test]
async fn a_stopped_qemu_counts_as_hung_and_is_heard_again_later() {
    let (process, machine) = start(&[]).await;
    signal(process.pid(), Signal::STOP);
    let impatient = machine.patient(Duration::from_millis(200));
    let error = impatient.status().await.unwrap_err();
    assert!(matches!(&error, QmpError::Hung { command, .. } if command == "query-status"), "{error}");
    assert_eq!(process.exit(), None);
    signal(process.pid(), Signal::CONT);
    assert_eq!(machine.status().await.unwrap(), RunState::Prelaunch);

    signal(process.pid(), Signal::STOP);
    let exit = within(process.quit(&machine, Duration::from_millis(200))).await;
    assert!(exit.is_killed(), "{exit}");
    assert!(!is_there(process.pid()));
}

#[tokio::test]
async fn wrong_arguments_are_told_in_qemus_words() {
    let error = within(try_start(&["-device", "no-such-device"])).await.unwrap_err();
    let StartError::Ended(exit) = &error else { panic!("{error}") };
    assert_eq!(exit.code, Some(1));
    assert!(error.to_string().contains("no-such-device"), "{error}");
}

#[tokio::test]
async fn a_missing_program_is_told() {
    let mut launch = launch(&[]);
    launch.program = "/nonexistent/qemu".into();
    assert!(matches!(launch.start().await, Err(StartError::NoProgram { .. })));
}

#[tokio::test]
async fn a_program_that_is_no_qemu_is_told_and_killed() {
    let mut launch = launch(&[]);
    launch.program = "sleep".into();
    launch.arguments = vec!["60".into()];
    launch.limits.reply = Duration::from_millis(300);
    // `sleep` does not know `-S`; a shell that reads nothing does.
    let error = within(launch.clone().start()).await.unwrap_err();
    assert!(matches!(error, StartError::Ended(_)), "{error}");
    launch.program = "sh".into();
    launch.arguments = vec!["-c".into(), "exec sleep 60".into()];
    let error = within(launch.start()).await.unwrap_err();
    assert!(matches!(error, StartError::Monitor(QmpError::Hung { .. })), "{error}");
}

#[tokio::test]
async fn dropping_the_process_kills_it() {
    let (process, machine) = start(&[]).await;
    let pid = process.pid();
    drop(process);
    within(machine.qmp().gone()).await;
    within(async {
        while is_there(pid) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[test]
fn the_end_of_the_runtime_kills_it_too() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (process, _machine) = runtime.block_on(start(&[]));
    let pid = process.pid();
    drop(runtime);
    // Whether the end is collected is up to the next runtime; that it comes is not.
    let ended = || match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X'])),
        Err(_) => true,
    };
    let since = Instant::now();
    while !ended() {
        assert!(since.elapsed() < Duration::from_secs(30), "it still runs");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn dies_with_whoever_started_it() {
    let starting = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (process, machine) = runtime.block_on(start(&[]));
        let pid = process.pid();
        // As if we had been killed: nobody is left to do anything.
        std::mem::forget((runtime, process, machine));
        pid
    });
    let pid = starting.join().unwrap();
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let options = WaitIdOptions::EXITED;
    let status = waitid(WaitId::Pid(pid), options).unwrap().unwrap();
    assert_eq!(status.terminating_signal(), Some(Signal::KILL.as_raw()));
}
