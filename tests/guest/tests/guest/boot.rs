//! Ways to boot, and ways to end.

use std::time::Instant;

use test_guest::{ConsoleError, Flavour, artifacts};

use crate::vm::Plan;

#[tokio::test]
async fn a_built_guest_is_found_again() {
    let first = artifacts(Flavour::Cloud).unwrap();
    assert_eq!(artifacts(Flavour::Cloud).unwrap(), first);
    let size = std::fs::metadata(&first.disk).unwrap().len();
    assert!(size <= 40 << 20, "a disk of {size} bytes");
}

#[tokio::test]
async fn the_disk_boots_with_bios_and_keeps_data() {
    let plan = Plan::new(Flavour::Cloud).await.disk().with("-device virtio-blk-pci,drive=boot,serial=SYSTEM");
    let start = Instant::now();
    let mut vm = plan.start().await;
    vm.console.expect("Welcome to the test guest").await.unwrap();
    vm.console.expect("guest login: ").await.unwrap();
    eprintln!("BIOS, disk: login after {:.1?}", start.elapsed());
    let refused = vm.console.login("root", "wrong").await.unwrap_err();
    assert!(matches!(refused, ConsoleError::Refused { .. }), "{refused}");
    vm.login().await;
    assert_eq!(vm.run("mount | grep -c ' /data type ext2 '; ls /dev/disk/by-id").await, "1\nvirtio-SYSTEM");
    assert_eq!(
        vm.console.try_run("echo out; echo err >&2; exit 3").await.unwrap(),
        (3, "out\nerr".to_owned())
    );
    let long = format!("cat <<'END'\n{}\nEND", "a line with 'quotes' and $signs\n".repeat(100));
    assert_eq!(vm.run(&long).await.lines().count(), 100);
    vm.run("echo kept >/data/file").await;
    vm.console.send_line("poweroff").await.unwrap();
    vm.ended().await;
    let disk = std::fs::read(vm.folder.join("boot.raw")).unwrap();
    assert!(disk.windows(5).any(|window| window == b"kept\n"));
}

#[tokio::test]
async fn the_disk_boots_with_uefi() {
    let variables = std::fs::read("/usr/share/OVMF/OVMF_VARS_4M.fd").unwrap();
    let plan = Plan::new(Flavour::Cloud).await;
    std::fs::write(plan.folder.join("vars"), variables).unwrap();
    let plan = plan
        .with("-drive if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd")
        .with("-drive if=pflash,format=raw,file={}/vars")
        .disk()
        .with("-device virtio-blk-pci,drive=boot");
    let start = Instant::now();
    let mut vm = plan.start().await;
    vm.console.expect("guest login: ").await.unwrap();
    eprintln!("UEFI, disk: login after {:.1?}", start.elapsed());
    vm.console.login("guest", "guest").await.unwrap();
    assert_eq!(vm.run("id -un; [ -d /sys/firmware/efi ] && echo uefi").await, "guest\nuefi");
}

#[tokio::test]
async fn the_disk_boots_with_secure_boot() {
    let variables = std::fs::read("/usr/share/OVMF/OVMF_VARS_4M.ms.fd").unwrap();
    let plan = Plan::new(Flavour::Cloud).await;
    std::fs::write(plan.folder.join("vars"), variables).unwrap();
    let plan = plan
        .with("-m 512 -machine smm=on -global driver=cfi.pflash01,property=secure,value=on")
        .with("-drive if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.secboot.fd")
        .with("-drive if=pflash,format=raw,file={}/vars")
        .disk()
        .with("-device virtio-blk-pci,drive=boot");
    let mut vm = plan.start().await;
    vm.login().await;
    assert_eq!(vm.run("dmesg | grep -c 'secureboot: Secure boot enabled'").await, "1");
}

#[tokio::test]
async fn the_power_button_ends_it() {
    let plan = Plan::new(Flavour::Cloud).await.kernel("guest.data=/dev/vda").drive("data", &vec![0; 4 << 20]);
    let start = Instant::now();
    let mut vm = plan.with("-device virtio-blk-pci,drive=data").start().await;
    vm.console.expect("guest login: ").await.unwrap();
    eprintln!("kernel: login after {:.1?}", start.elapsed());
    // Who comes late asks for the prompt again.
    vm.console.reconnect().await.unwrap();
    vm.login().await;
    assert_eq!(vm.run("mount | grep -c '/dev/vda on /data type ext2'").await, "1");
    // The one who listens to the button may still be about to start.
    vm.console.until("pidof acpid >/dev/null && echo up", "up").await.unwrap();
    vm.monitor("system_powerdown").await;
    vm.console.expect("The guest is going down.").await.unwrap();
    vm.ended().await;
}

#[tokio::test]
async fn a_panic_is_seen() {
    let plan = Plan::new(Flavour::Cloud).await.kernel("").with("-device pvpanic");
    let mut vm = plan.start().await;
    vm.login().await;
    vm.console.send_line("echo c >/proc/sysrq-trigger").await.unwrap();
    vm.console.expect("Kernel panic").await.unwrap();
    // It reboots at once, which ends QEMU here.
    vm.ended().await;
}
