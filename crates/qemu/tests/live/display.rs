//! Pictures, VNC and memory dumps.

use std::time::Duration;

use kubevirt_qemu::machine::{DumpError, DumpFormat, ImageFormat};
use kubevirt_qemu::qmp::Event;
use tokio::io::AsyncReadExt;

use crate::common::{Folder, start, wait_for, within};

#[tokio::test]
async fn screenshots_are_png_or_ppm() {
    let folder = Folder::new();
    let (_process, machine) = start(&["-device", "VGA"]).await;
    let (png, ppm) = (folder.join("screen.png"), folder.join("screen.ppm"));
    machine.screenshot(&png, ImageFormat::Png).await.unwrap();
    assert!(std::fs::read(&png).unwrap().starts_with(b"\x89PNG\r\n"));
    machine.screenshot(&ppm, ImageFormat::Ppm).await.unwrap();
    assert!(std::fs::read(&ppm).unwrap().starts_with(b"P6"));
    assert!(machine.screenshot(&folder.join("no/where.png"), ImageFormat::Png).await.is_err());
}

#[tokio::test]
async fn viewers_come_as_open_files_and_are_announced() {
    let folder = Folder::new();
    let vnc = format!("unix:{},password=on", folder.join("vnc").display());
    let (_process, machine) = start(&["-device", "VGA", "-vnc", &vnc]).await;
    machine.set_vnc_password("secret", Some(60)).await.unwrap();
    machine.set_vnc_password("secret", None).await.unwrap();
    assert_eq!(machine.vnc_viewers().await.unwrap(), 0);
    let mut events = machine.events();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    machine.add_vnc_viewer(theirs.into()).await.unwrap();
    ours.set_nonblocking(true).unwrap();
    let mut ours = tokio::net::UnixStream::from_std(ours).unwrap();
    let mut hello = [0; 12];
    within(ours.read_exact(&mut hello)).await.unwrap();
    assert_eq!(&hello, b"RFB 003.008\n");
    drop(ours);
    wait_for(&mut events, |event| matches!(event, Event::VncConnected { .. }).then_some(())).await;
    wait_for(&mut events, |event| matches!(event, Event::VncDisconnected { .. }).then_some(())).await;
}

#[tokio::test]
async fn memory_is_dumped() {
    let folder = Folder::new();
    let (_process, machine) = start(&[]).await;
    let file = folder.join("memory");
    let to = format!("file:{}", file.display());
    let dump = machine.dump_memory(&to, &DumpFormat::Elf).await.unwrap();
    within(dump.finish()).await.unwrap();
    let dumped = std::fs::read(&file).unwrap();
    assert!(dumped.starts_with(b"\x7fELF"));
    assert!(dumped.len() > 64 << 20);

    let mut dump = machine.dump_memory(&to, &DumpFormat::KdumpZlib).await.unwrap();
    within(async { while dump.progress(Duration::from_millis(20)).await.unwrap().is_active() {} }).await;
    let progress = machine.dump_progress().await.unwrap();
    assert!(progress.total > 0 && progress.completed == progress.total, "{progress:?}");
    within(dump.finish()).await.unwrap();
    assert!(std::fs::metadata(&file).unwrap().len() < 16 << 20);
}

#[tokio::test]
async fn a_dump_that_does_not_fit_says_so() {
    let (_process, machine) = start(&[]).await;
    let dump = machine.dump_memory("file:/dev/full", &DumpFormat::Elf).await.unwrap();
    let error = within(dump.finish()).await.unwrap_err();
    assert!(matches!(error, DumpError::Failed { .. }), "{error}");
    let error = machine.dump_memory("file:/nonexistent/dump", &DumpFormat::Elf).await;
    assert!(error.is_err());
}
